/* SPDX-License-Identifier: MIT */
#include "server/http/reply.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sink.h"

static size_t all_bytes;

struct reply *reply_new(unsigned status, const char *type, char *bytes, size_t size)
{
	struct reply *reply = memory_zeroed(1, sizeof(*reply));
	*reply = (struct reply){1, status, type, bytes, size};
	__atomic_add_fetch(&all_bytes, size, __ATOMIC_RELAXED);
	return reply;
}

struct reply *reply_line(unsigned status, const char *text)
{
	struct sink line;
	size_t size;
	sink_to_memory(&line);
	sink_format(&line, "%s\n", text);
	char *bytes = sink_take(&line, &size);
	return reply_new(status, "text/plain; charset=utf-8", bytes, size);
}

struct reply *reply_hold(struct reply *reply)
{
	__atomic_add_fetch(&reply->references, 1, __ATOMIC_RELAXED);
	return reply;
}

void reply_release(struct reply *reply)
{
	if (!reply || __atomic_sub_fetch(&reply->references, 1, __ATOMIC_ACQ_REL))
		return;
	__atomic_sub_fetch(&all_bytes, reply->size, __ATOMIC_RELAXED);
	free(reply->bytes);
	free(reply);
}

size_t replies_size(void)
{
	return __atomic_load_n(&all_bytes, __ATOMIC_RELAXED);
}
