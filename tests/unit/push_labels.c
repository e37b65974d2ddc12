/* SPDX-License-Identifier: MIT */
/* What profiles are of: containers and pods by the paths of cgroups that Docker, containerd and Kubernetes make, and
   which of several labels wins, and what a process may say of itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/protobuf.h"
#include "push/push_context.h"
#include "push/push_labels.h"

#define CONTAINER "8c45e1bd0c3f4e5f6a7b8c9d0e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b"
#define POD "0f6b1c2d-3e4f-5a6b-7c8d-9e0f1a2b3c4d"

static const char *value_of(const struct push_labels *labels, const char *key)
{
	for (size_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->items[i].key, key))
			return labels->items[i].value;
	return "";
}

static void expect(const char *cgroups, const char *container, const char *pod)
{
	struct push_labels labels = {.count = 0};
	push_labels_add_container(&labels, cgroups);
	assert_string_equal(value_of(&labels, "container.id"), container);
	assert_string_equal(value_of(&labels, "k8s.pod.uid"), pod);
	push_labels_fini(&labels);
}

static void test_containers(void **state)
{
	(void)state;
	expect("0::/user.slice/user-1000.slice/session-3.scope\n", "", "");
	expect("0::/system.slice/docker-" CONTAINER ".scope\n", CONTAINER, "");
	expect("12:memory:/docker/" CONTAINER "\n1:name=systemd:/docker/" CONTAINER "\n", CONTAINER, "");
	expect("0::/kubepods/burstable/pod" POD "/" CONTAINER "\n", CONTAINER, POD);
	expect("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0f6b1c2d_3e4f_5a6b_7c8d_9e0f1a2b3c4d"
	       ".slice/cri-containerd-" CONTAINER ".scope\n",
	       CONTAINER, POD);
	/* One digit more or less is no id. */
	expect("0::/docker/" CONTAINER "0\n", "", "");
	expect("0::/kubepods/pod" POD "0/x\n", "", "");
	expect("", "", "");
}

static void test_order(void **state)
{
	struct push_labels labels = {.count = 0};
	struct diag diag = {""};
	(void)state;
	setenv("OTEL_SERVICE_NAME", "named", 1);
	setenv("OTEL_RESOURCE_ATTRIBUTES", "team=other,service.version=2,bad key=1,empty=", 1);
	assert_int_equal(push_labels_take(&labels, "team=memory", &diag), 0);
	assert_int_equal(push_labels_add_environment(&labels, &diag), 0);
	push_labels_add(&labels, "service.name", "found");
	const struct push_origin origin = push_labels_settle(&labels);
	assert_string_equal(origin.service, "named");
	assert_string_equal(value_of(&labels, "team"), "memory");
	assert_string_equal(value_of(&labels, "service.version"), "2");
	assert_int_equal(origin.label_count, 2);
	push_labels_fini(&labels);
}

/* Add OTEL_RESOURCE_ATTRIBUTES, and return what the key has; NULL: the variable is left out. */
static const char *decoded(const char *variable, const char *key)
{
	static char text[64];
	struct push_labels labels = {.count = 0};
	struct diag diag = {""};
	unsetenv("OTEL_SERVICE_NAME");
	setenv("OTEL_RESOURCE_ATTRIBUTES", variable, 1);
	const int error = push_labels_add_environment(&labels, &diag);
	snprintf(text, sizeof(text), "%s", value_of(&labels, key));
	assert_true(!error || (!labels.count && strstr(diag.text, "all of OTEL_RESOURCE_ATTRIBUTES is left out")));
	assert_int_equal(push_labels_check_environment(&diag), error);
	push_labels_fini(&labels);
	return error ? NULL : text;
}

/* Values are percent-encoded; of a variable that is wrong anywhere nothing counts. */
static void test_decoding(void **state)
{
	(void)state;
	assert_string_equal(decoded("team=a%2Cb%3dc,x=1", "team"), "a,b=c");
	assert_string_equal(decoded("team=100%25", "team"), "100%");
	assert_string_equal(decoded("team=K%C3%B6ln", "team"), "K\xc3\xb6ln");
	assert_string_equal(decoded("team=a+b", "team"), "a+b");
	assert_string_equal(decoded(" team = a b \t, x=1,", "team"), "a b");
	assert_string_equal(decoded("team=%20", "team"), " ");
	assert_string_equal(decoded("te%61m=a", "team"), "a");
	assert_string_equal(decoded("team=a=b", "team"), "a=b");
	assert_string_equal(decoded("app/name=x,team=a", "team"), "a");
	assert_string_equal(decoded("", "team"), "");
	assert_string_equal(decoded(",,team=a", "team"), "a");
	assert_null(decoded("team=a,x=%", "team"));
	assert_null(decoded("team=a,x=%4", "team"));
	assert_null(decoded("team=a,x=%4g", "team"));
	assert_null(decoded("team=a,x=%\x11\x11", "team"));
	assert_null(decoded("team=a,x=%00", "team"));
	assert_null(decoded("team=a,x=%ff", "team"));
	assert_null(decoded("team=a,x=%0a", "team"));
	assert_null(decoded("team=a,x=\xff", "team"));
	assert_null(decoded("team=a,x", "team"));
	assert_null(decoded("team=a,=x", "team"));
	assert_null(decoded("x%=1,team=a", "team"));
	unsetenv("OTEL_RESOURCE_ATTRIBUTES");
}

/* An attribute of a process's resource. */
static void attribute_add(struct sink *resource, const char *key, const char *value, size_t value_size)
{
	struct sink attribute, any;
	sink_to_memory(&attribute);
	sink_to_memory(&any);
	protobuf_bytes(&any, 1, value, value_size);
	protobuf_bytes(&attribute, 1, key, strlen(key));
	protobuf_message(&attribute, 2, &any);
	protobuf_message(resource, 1, &attribute);
	sink_end(&any);
	sink_end(&attribute);
}

/* What a process says counts where nobody else has said it, and only as a text that can be shown; cut anywhere, it does
   no harm. */
static void test_context(void **state)
{
	struct push_labels labels = {.count = 0};
	struct sink resource, context;
	size_t size;
	(void)state;
	sink_to_memory(&resource);
	sink_to_memory(&context);
	attribute_add(&resource, "service.name", "told", 4);
	attribute_add(&resource, "team", "other", 5);
	attribute_add(&resource, "bad key", "1", 1);
	attribute_add(&resource, "escape", "\x1b[31m", 5);
	attribute_add(&resource, "nul", "a\0b", 3);
	attribute_add(&resource, "latin", "\xe4", 1);
	attribute_add(&resource, "city", "K\xc3\xb6ln", 5);
	protobuf_message(&context, 1, &resource);
	sink_end(&resource);
	char *bytes = sink_take(&context, &size);
	push_labels_add(&labels, "team", "memory");
	push_context_read(&labels, bytes, size);
	assert_int_equal(labels.count, 3);
	assert_string_equal(value_of(&labels, "team"), "memory");
	assert_string_equal(value_of(&labels, "service.name"), "told");
	assert_string_equal(value_of(&labels, "city"), "K\xc3\xb6ln");
	push_labels_fini(&labels);
	for (size_t cut = 0; cut < size; cut++) {
		char *piece = malloc(cut + !cut);
		memcpy(piece, bytes, cut);
		push_context_read(&labels, piece, cut);
		assert_in_range(labels.count, 0, 2);
		push_labels_fini(&labels);
		free(piece);
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_containers), cmocka_unit_test(test_order), cmocka_unit_test(test_decoding),
					   cmocka_unit_test(test_context)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
