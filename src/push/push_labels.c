/* SPDX-License-Identifier: MIT */
#include "push/push_labels.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum { CONTAINER_DIGITS = 64, POD_CHARACTERS = 36, TOLD_MAX = 1024, SHOWN_BYTES = 64 };
static const char service_name[] = "service.name";

static char *text_keep(struct push_labels *labels, const char *text, size_t length)
{
	char *copy = arena_alloc(&labels->arena, 1, length + 1);
	memcpy(copy, text, length);
	copy[length] = 0;
	return copy;
}

static void add_bytes(struct push_labels *labels, const char *key, size_t key_length, const char *value,
		      size_t value_length)
{
	for (size_t i = 0; i < labels->count; i++)
		if (!strncmp(labels->items[i].key, key, key_length) && !labels->items[i].key[key_length])
			return;
	if (!key_length || !value_length)
		return;
	memory_grow(labels->items, labels->count, labels->capacity);
	labels->items[labels->count++] =
		(struct report_label){text_keep(labels, key, key_length), text_keep(labels, value, value_length)};
}

void push_labels_add(struct push_labels *labels, const char *key, const char *value)
{
	add_bytes(labels, key, strlen(key), value, strlen(value));
}

/* Keys as OpenTelemetry has them. */
static bool key_is_good(const char *key, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)key[i]) && !strchr("._-", key[i]))
			return false;
	return length > 0;
}

static bool value_is_good(const char *value, size_t length)
{
	const unsigned char *text = (const unsigned char *)value;
	uint32_t code;
	for (size_t at = 0; at < length;) {
		const unsigned sequence = text_utf8_length(text + at);
		if (!text_is_harmless(text + at, sequence, &code))
			return false;
		at += sequence;
	}
	return length > 0;
}

int push_labels_check_value(const char *value, struct diag *diag)
{
	return value_is_good(value, strlen(value))
		       ? 0
		       : diag_fail(diag, EINVAL, "a value is UTF-8, not empty, and has no control characters");
}

int push_labels_take(struct push_labels *labels, const char *word, struct diag *diag)
{
	const size_t length = strcspn(word, "=");
	if (!word[length] || !word[length + 1] || !key_is_good(word, length))
		return diag_fail(diag, EINVAL, "KEY=VALUE; a key has letters, digits and any of . _ -");
	const char *value = word + length + 1;
	if (push_labels_check_value(value, diag))
		return -EINVAL;
	add_bytes(labels, word, length, value, strlen(value));
	return 0;
}

void push_labels_add_told(struct push_labels *labels, const char *key, size_t key_length, const char *value,
			  size_t value_length)
{
	if (key_length > TOLD_MAX || value_length > TOLD_MAX || !key_is_good(key, key_length))
		return;
	/* With a NUL behind it. */
	const char *text = text_keep(labels, value, value_length);
	if (value_is_good(text, value_length))
		add_bytes(labels, key, key_length, text, value_length);
}

/* ---- the environment ---- */

static const char attributes_name[] = "OTEL_RESOURCE_ATTRIBUTES";

/* Cut blanks off both ends, in place. */
static char *text_trim(char *text)
{
	static const char blanks[] = " \t";
	text += strspn(text, blanks);
	size_t length = strlen(text);
	while (length && strchr(blanks, text[length - 1]))
		length--;
	text[length] = 0;
	return text;
}

/* Read one attribute, which the call changes. OpenTelemetry allows empty values and keys that no label has: such an
   attribute is left out by itself. Return NULL, or what is wrong with it. */
static const char *attribute_take(struct push_labels *labels, char *attribute)
{
	char *value = strchr(attribute, '=');
	if (!value)
		return "there is no =";
	*value++ = 0;
	char *key = text_trim(attribute);
	value = text_trim(value);
	if (!*key)
		return "there is no key before =";
	if (!text_decode_percent(key) || !text_decode_percent(value))
		return "a % that two hexadecimal digits follow stands for another character, and %25 for itself";
	if (*value && !value_is_good(value, strlen(value)))
		return "the value is no UTF-8, or has control characters";
	if (key_is_good(key, strlen(key)))
		push_labels_add(labels, key, value);
	return NULL;
}

/* Read OTEL_RESOURCE_ATTRIBUTES into no labels. Of a value that is wrong anywhere nothing counts, by OpenTelemetry's
   specification of resources. */
static int attributes_take(struct push_labels *labels, const char *value, struct diag *diag)
{
	const char *wrong = NULL;
	char *copy = value ? text_keep(labels, value, strlen(value)) : NULL;
	for (char *at = copy, *next; at && !wrong; at = next) {
		const size_t place = (size_t)(at - copy), length = strcspn(at, ",");
		next = at[length] ? at + length + 1 : NULL;
		at[length] = 0;
		if (at[strspn(at, " \t")])
			wrong = attribute_take(labels, at);
		if (wrong) {
			char shown[SHOWN_BYTES];
			snprintf(shown, sizeof(shown), "%.*s", (int)length, value + place);
			diag_fail(diag, EINVAL, "all of %s is left out: in \"%s\" %s", attributes_name,
				  text_make_harmless(shown), wrong);
		}
	}
	return wrong ? -EINVAL : 0;
}

int push_labels_add_environment(struct push_labels *labels, struct diag *diag)
{
	struct push_labels attributes = {.count = 0};
	const char *service = getenv("OTEL_SERVICE_NAME");
	if (service && value_is_good(service, strlen(service)))
		push_labels_add(labels, service_name, service);
	int error = attributes_take(&attributes, getenv(attributes_name), diag);
	for (size_t i = 0; !error && i < attributes.count; i++)
		push_labels_add(labels, attributes.items[i].key, attributes.items[i].value);
	push_labels_fini(&attributes);
	return error;
}

void push_labels_add_environment_told(struct push_labels *labels, const char *service, const char *attributes)
{
	struct push_labels told = {.count = 0};
	struct diag diag = {""};
	if (service)
		push_labels_add_told(labels, service_name, strlen(service_name), service, strlen(service));
	const bool are_good = !attributes_take(&told, attributes, &diag);
	for (size_t i = 0; are_good && i < told.count; i++) {
		const struct report_label *label = &told.items[i];
		push_labels_add_told(labels, label->key, strlen(label->key), label->value, strlen(label->value));
	}
	push_labels_fini(&told);
}

int push_labels_check_environment(struct diag *diag)
{
	struct push_labels labels = {.count = 0};
	int error = push_labels_add_environment(&labels, diag);
	push_labels_fini(&labels);
	return error;
}

/* ---- what is found ---- */

/* A run of exactly so many of these characters. NULL: there is none. */
static const char *run_find(const char *text, const char *characters, size_t wanted)
{
	for (const char *at = text; *at;) {
		const size_t length = strspn(at, characters);
		if (length == wanted)
			return at;
		at += length ? length : 1;
	}
	return NULL;
}

void push_labels_add_container(struct push_labels *labels, const char *cgroups)
{
	static const char digits[] = "0123456789abcdef", pod_characters[] = "0123456789abcdef-_", before_pod[] = "pod";
	const char *container = run_find(cgroups, digits, CONTAINER_DIGITS), *pod = cgroups;
	if (container)
		add_bytes(labels, "container.id", strlen("container.id"), container, CONTAINER_DIGITS);
	/* "kubepods" is no pod. */
	while ((pod = strstr(pod, before_pod))) {
		pod += strlen(before_pod);
		if (strspn(pod, pod_characters) != POD_CHARACTERS)
			continue;
		char uid[POD_CHARACTERS + 1];
		snprintf(uid, sizeof(uid), "%s", pod);
		/* systemd's names of units have '_' for '-'. */
		for (char *at = uid; *at; at++)
			*at = *at == '_' ? '-' : *at;
		push_labels_add(labels, "k8s.pod.uid", uid);
	}
}

struct push_origin push_labels_settle(struct push_labels *labels)
{
	push_labels_add(labels, service_name, "unknown_service");
	for (size_t i = 0; i < labels->count; i++) {
		if (strcmp(labels->items[i].key, service_name) != 0)
			continue;
		const struct report_label service = labels->items[i];
		labels->items[i] = labels->items[0];
		labels->items[0] = service;
	}
	return (struct push_origin){labels->items[0].value, labels->items + 1, labels->count - 1};
}

void push_labels_fini(struct push_labels *labels)
{
	arena_fini(&labels->arena);
	free(labels->items);
	*labels = (struct push_labels){.count = 0};
}
