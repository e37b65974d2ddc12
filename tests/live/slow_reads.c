/* SPDX-License-Identifier: MIT */
/* A library to preload into the logger: each read of another process's memory takes up to DELAY_US longer, so that what
   is read changes meanwhile. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

enum { DELAY_US = 300 };

/* Offsets above this are addresses of a process. */
static const off_t FIRST_ADDRESS = 1ll << 32;

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
	static ssize_t (*original)(int, void *, size_t, off_t);
	if (!original)
		original = (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread64");
	if (at > FIRST_ADDRESS)
		usleep((useconds_t)(random() % DELAY_US));
	return original(fd, data, size, at);
}
