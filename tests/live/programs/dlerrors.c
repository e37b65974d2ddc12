/* SPDX-License-Identifier: MIT */
/*
 * dlerrors: fails to open a library, and then calls a function of the allocator for the first time. Who looks for that
 * function by dlsym() only then gives back the text of the error.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

int main(void)
{
	for (int i = 0; i < 2; i++)
		if (dlopen("/nonexistent/library.so", RTLD_NOW))
			return 1;
	free(memalign(64, 100));
	return 0;
}
