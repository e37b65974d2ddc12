/* SPDX-License-Identifier: MIT */
#include "cli/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool cache_directory(char path[CACHE_PATH_BYTES], const char *name)
{
	const char *const parts[] = {"/xheap/", name};
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int length = cache && *cache == '/' ? snprintf(path, CACHE_PATH_BYTES / 2, "%s", cache)
		     : home && *home == '/' ? snprintf(path, CACHE_PATH_BYTES / 2, "%s/.cache", home)
					    : 0;
	if (length <= 0 || length >= CACHE_PATH_BYTES / 2)
		return false;
	mkdir(path, 0700);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		strcat(path, parts[i]);
		mkdir(path, 0700);
	}
	strcat(path, "/");
	return true;
}
