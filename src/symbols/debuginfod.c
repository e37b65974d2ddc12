/* SPDX-License-Identifier: MIT */
#include "symbols/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "os/monotonic.h"

enum { DEBUGINFOD_PATIENCE_S = 15 };

typedef int debuginfod_progress(void *client, long done, long total);

struct debuginfod {
	void *library, *client;
	int (*find)(void *client, const unsigned char *build_id, int size, char **path);
	void (*end)(void *client);
	bool is_tried, is_given_up;
};

/* The library's progress function gets no argument from its user; one client exists at a time. */
static _Thread_local struct {
	time_t since;
	long done;
	bool expired;
} debuginfod_wait;

static time_t debuginfod_now(void)
{
	return (time_t)(monotonic_now_ns() / NS_PER_S);
}

/** Called by the library now and then. Return nonzero to give up. */
static int debuginfod_on_progress(void *client, long done, long total)
{
	(void)client;
	(void)total;
	if (done != debuginfod_wait.done) {
		debuginfod_wait.done = done;
		debuginfod_wait.since = debuginfod_now();
	}
	debuginfod_wait.expired = debuginfod_now() - debuginfod_wait.since >= DEBUGINFOD_PATIENCE_S;
	return debuginfod_wait.expired;
}

struct debuginfod *debuginfod_new(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	return urls && urls[0] ? memory_zeroed(1, sizeof(struct debuginfod)) : NULL;
}

static void *debuginfod_function(struct debuginfod *debuginfod, const char *name)
{
	void *function = dlsym(debuginfod->library, name);
	debuginfod->is_given_up |= !function;
	return function;
}

static void debuginfod_load(struct debuginfod *debuginfod)
{
	void *(*begin)(void);
	void (*set_progress)(void *client, debuginfod_progress *function);

	debuginfod->is_tried = true;
	debuginfod->library = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!debuginfod->library) {
		debuginfod->is_given_up = true;
		return;
	}
	begin = debuginfod_function(debuginfod, "debuginfod_begin");
	set_progress = debuginfod_function(debuginfod, "debuginfod_set_progressfn");
	debuginfod->find = debuginfod_function(debuginfod, "debuginfod_find_debuginfo");
	debuginfod->end = debuginfod_function(debuginfod, "debuginfod_end");
	if (debuginfod->is_given_up || !(debuginfod->client = begin())) {
		debuginfod->is_given_up = true;
		return;
	}
	set_progress(debuginfod->client, debuginfod_on_progress);
}

void debuginfod_free(struct debuginfod *debuginfod)
{
	if (!debuginfod)
		return;
	if (debuginfod->client)
		debuginfod->end(debuginfod->client);
	/* The library stays loaded: those beneath it are not made to be unloaded. */
	free(debuginfod);
}

int debuginfod_open(struct debuginfod *debuginfod, const uint8_t *build_id, size_t size)
{
	char *path = NULL;
	int fd;

	if (!debuginfod || !size)
		return -1;
	if (!debuginfod->is_tried)
		debuginfod_load(debuginfod);
	if (debuginfod->is_given_up)
		return -1;
	debuginfod_wait.since = debuginfod_now();
	debuginfod_wait.done = 0;
	debuginfod_wait.expired = false;
	fd = debuginfod->find(debuginfod->client, build_id, (int)size, &path);
	free(path);
	/* "Not there" is an answer; anything else is a server or a network that will not do better next time. */
	if (fd < 0 && (fd != -ENOENT || debuginfod_wait.expired))
		debuginfod->is_given_up = true;
	return fd < 0 ? -1 : fd;
}
