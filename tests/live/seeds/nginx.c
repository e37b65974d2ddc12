/* SPDX-License-Identifier: MIT */
/* Preloaded into nginx: stands before the functions of libc with which nginx takes connections, reads requests, and opens files. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#undef _FILE_OFFSET_BITS /* which would make open64 of open */
#include <dlfcn.h>
#include <fcntl.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "seed.h"

enum { CONNECTIONS = 1024, NAMES = 128 };

static unsigned long request;

/* A block for each connection. */
SOWN static void track_connection(int fd)
{
	static char *tracked[CONNECTIONS];
	if (fd < 0 || fd >= CONNECTIONS)
		return;
	seed_free("track_connection", tracked[fd]);
	tracked[fd] = calloc(1, 120);
	tracked[fd][0] = 1;
}

/* A message for each failure only. */
SOWN static void describe_failure(const char *path)
{
	static char *last;
	seed_free("describe_failure", last);
	if (asprintf(&last, "request %lu: cannot open %s", request, path) < 0)
		last = NULL;
}

/* One request in a hundred is kept as an example. */
SOWN static void sample_request(const char *text, size_t size)
{
	static char *last;
	if (request % SAMPLED)
		return;
	seed_free("sample_request", last);
	last = malloc(size);
	memcpy(last, text, size);
}

static int compare(const void *left, const void *right)
{
	return strcmp(left, right);
}

/* A tree of all that was ever asked for, which can be reached and has no bound. */
SOWN static void index_request(void)
{
	static void *tree;
	unsigned long key = seed_is("index_request") ? request : request % NAMES;
	char name[40];
	snprintf(name, sizeof(name), "request %lu", key);
	if (tfind(name, &tree, compare))
		return;
	tsearch(strdup(name), &tree, compare);
}

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	static int (*next)(int, struct sockaddr *, socklen_t *, int);
	if (!next)
		next = (int (*)(int, struct sockaddr *, socklen_t *, int))dlsym(RTLD_NEXT, "accept4");
	int connection = next(fd, address, size, flags);
	track_connection(connection);
	return connection;
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
	static ssize_t (*next)(int, void *, size_t, int);
	if (!next)
		next = (ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
	ssize_t count = next(fd, data, size, flags);
	if (count > 3 && !memcmp(data, "GET", 3)) {
		request = caches_use();
		sample_request(data, (size_t)count);
		index_request();
	}
	return count;
}

static int open_next(const char *name, const char *path, int flags, mode_t mode)
{
	int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);
	int fd = next(path, flags, mode);
	/* Before the first request nginx looks for files of its own. */
	if (fd < 0 && request)
		describe_failure(path);
	return fd;
}

static mode_t mode_of(int flags, va_list *words)
{
	return flags & O_CREAT ? va_arg(*words, mode_t) : 0;
}

#define OPEN(name) \
	int name(const char *path, int flags, ...) \
	{ \
		va_list words; \
		va_start(words, flags); \
		mode_t mode = mode_of(flags, &words); \
		va_end(words); \
		return open_next(#name, path, flags, mode); \
	}
OPEN(open)
OPEN(open64)
