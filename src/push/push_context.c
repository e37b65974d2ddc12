/* SPDX-License-Identifier: MIT */
#include "push/push_context.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/protobuf_read.h"
#include "os/capabilities.h"
#include "os/losable.h"
#include "os/proc.h"

enum { CONTEXT_VERSION = 2, CONTEXT_MS = 250, CONTEXT_MINUTE_MS = 1000, PIECE_BYTES = 4096 };
static const char service_variable[] = "OTEL_SERVICE_NAME=", attributes_variable[] = "OTEL_RESOURCE_ATTRIBUTES=";

/* What the mapping begins with. */
struct context_head {
	char mark[8];
	uint32_t version, payload_bytes;
	uint64_t published_ns; /* 0: it is being changed */
	uint64_t payload;      /* address */
};

/* ---- the mapping ---- */

struct context_request {
	pid_t pid;
	uint64_t address;              /* of the mapping; 0: the environment is asked for */
	struct proc_path environment; /* its file */
};

static bool copy(pid_t pid, uint64_t address, void *to, size_t size)
{
	const struct iovec here = {to, size}, there = {(void *)(uintptr_t)address, size};
	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static bool is_wanted(const char *variable)
{
	return !strncmp(variable, service_variable, sizeof(service_variable) - 1) ||
	       !strncmp(variable, attributes_variable, sizeof(attributes_variable) - 1);
}

/* Answer with those two variables, each with its NUL. */
static void environment_read(const char *path, struct losable_message *answer)
{
	char piece[PIECE_BYTES], *kept = answer->bytes;
	const int file = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	for (ssize_t got; file >= 0 && (got = read(file, piece, sizeof(piece))) > 0;)
		for (ssize_t i = 0; i < got; i++) {
			const size_t room = LOSABLE_BYTES - answer->size;
			if (length < room)
				kept[answer->size + length] = piece[i];
			length++;
			if (piece[i])
				continue;
			if (length <= room && is_wanted(kept + answer->size))
				answer->size += length;
			length = 0;
		}
	if (file >= 0)
		close(file);
}

/* In a child: pages of a stranger's memory may never come. */
static void work(const struct losable_message *request, struct losable_message *answer)
{
	struct context_request asked;
	struct context_head head, after;
	capabilities_keep(CAPABILITY(CAP_SYS_PTRACE));
	memcpy(&asked, request->bytes, sizeof(asked));
	if (!asked.address)
		environment_read(asked.environment.text, answer);
	else if (copy(asked.pid, asked.address, &head, sizeof(head)) &&
		 !memcmp(head.mark, "OTEL_CTX", sizeof(head.mark)) && head.version == CONTEXT_VERSION &&
		 head.published_ns && head.payload_bytes <= LOSABLE_BYTES &&
		 copy(asked.pid, head.payload, answer->bytes, head.payload_bytes) &&
		 copy(asked.pid, asked.address, &after, sizeof(after)) && !memcmp(&head, &after, sizeof(head)))
		answer->size = head.payload_bytes;
}

static struct losable reader = LOSABLE("xheap-context", work, CONTEXT_MINUTE_MS);

/* Return the address of the mapping, 0 if there is none. */
static uint64_t context_find(pid_t pid)
{
	static const char *const names[] = {"[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX"};
	struct proc_map *maps = NULL;
	uint64_t address = 0;
	const int count = proc_read_maps(pid, &maps);
	for (int i = 0; i < count && !address; i++)
		for (size_t j = 0; j < sizeof(names) / sizeof(*names); j++)
			if (!strncmp(maps[i].path, names[j], strlen(names[j])))
				address = maps[i].low;
	free(maps);
	return address;
}

/* ---- the message ---- */

/* KeyValue {key = 1, value = 2 {string_value = 1}} */
static void attribute_read(struct push_labels *labels, struct protobuf_rest rest)
{
	struct protobuf_field field, key = {.size = 0}, value = {.size = 0}, text;
	while (protobuf_next(&rest, &field)) {
		if (field.number == 1)
			key = field;
		if (field.number != 2)
			continue;
		struct protobuf_rest inside = protobuf_inside(&field);
		while (protobuf_next(&inside, &text))
			if (text.number == 1 && text.is_bytes)
				value = text;
	}
	if (!rest.is_damaged && key.size && value.size)
		push_labels_add_told(labels, (const char *)key.bytes, key.size, (const char *)value.bytes, value.size);
}

/* ProcessContext {resource = 1 {attributes = 1}} */
void push_context_read(struct push_labels *labels, const void *bytes, size_t size)
{
	struct protobuf_rest rest = protobuf_begin(bytes, size);
	struct protobuf_field field, attribute;
	while (protobuf_next(&rest, &field)) {
		struct protobuf_rest resource = protobuf_inside(&field);
		while (field.number == 1 && protobuf_next(&resource, &attribute))
			if (attribute.number == 1)
				attribute_read(labels, protobuf_inside(&attribute));
	}
}

/* Return how many bytes have come. */
static size_t process_ask(const struct context_request *asked, char bytes[LOSABLE_BYTES])
{
	struct context_request own = *asked;
	struct losable_message request = {.bytes = &own, .size = sizeof(own)};
	struct losable_message answer = {.bytes = bytes, .size = LOSABLE_BYTES};
	const uint32_t user = (uint32_t)proc_status_value(asked->pid, "Uid");
	return losable_ask(&reader, user, &request, &answer, CONTEXT_MS) ? 0 : answer.size;
}

void push_context_add(struct push_labels *labels, pid_t pid)
{
	char bytes[LOSABLE_BYTES];
	const struct context_request asked = {.pid = pid, .address = context_find(pid)};
	if (asked.address)
		push_context_read(labels, bytes, process_ask(&asked, bytes));
}

void push_context_add_environment(struct push_labels *labels, pid_t pid)
{
	char bytes[LOSABLE_BYTES];
	const struct context_request asked = {.pid = pid, .environment = proc_path(pid, "environ")};
	const size_t size = process_ask(&asked, bytes);
	const char *service = NULL, *attributes = NULL;
	for (size_t at = 0, length; at < size; at += length + 1) {
		length = strnlen(bytes + at, size - at);
		if (at + length == size)
			break;
		const bool is_service = !strncmp(bytes + at, service_variable, sizeof(service_variable) - 1);
		*(is_service ? &service : &attributes) = strchr(bytes + at, '=') + 1;
	}
	push_labels_add_environment_told(labels, service, attributes);
}
