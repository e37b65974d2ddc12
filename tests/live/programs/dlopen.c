/* SPDX-License-Identifier: MIT */
/* dlopen DIR loop: shared objects come and go at the same addresses, other code each time; dlopen DIR space: with a
 * libc of its own; dlopen DIR forked: a forked child opens one, and its child another. */
#include <dlfcn.h>

#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

static void *load(const char *directory, const char *name, int space)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	void *handle = space ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL) : dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		fprintf(stderr, "%s\n", dlerror());
	EXPECT(handle);
	return handle;
}

static void test_loop(const char *directory)
{
	static const char *const names[] = {"plugin_one.so", "plugin_two.so"};
	void *(*last)(int) = NULL;
	int reused = 0;

	for (int i = 0; i < 200; i++) {
		void *handle = load(directory, names[i % 2], 0);
		void *(*run)(int) = (void *(*)(int))dlsym(handle, "plugin_run");
		EXPECT(run);
		free(run(20));
		reused += run == last;
		last = run;
		EXPECT(!dlclose(handle));
	}
	EXPECT(reused > 100);
}

static void test_space(const char *directory)
{
	for (int i = 0; i < 3; i++) {
		void *handle = load(directory, "plugin_space.so", 1);
		void *(*run)(int) = (void *(*)(int))dlsym(handle, "plugin_run");
		EXPECT(run);
		EXPECT(run(300));
		free(malloc(10));
	}
}

static void run_plugin(const char *directory, const char *name)
{
	void *handle = load(directory, name, 0);
	void *(*run)(int) = (void *(*)(int))dlsym(handle, "plugin_run");

	EXPECT(run);
	free(run(20));
}

static void test_forked(const char *directory)
{
	int status = 1;
	pid_t child = fork();

	EXPECT(child >= 0);
	if (child == 0) {
		run_plugin(directory, "plugin_one.so");
		child = fork();
		if (child == 0) {
			run_plugin(directory, "plugin_two.so");
			_exit(0);
		}
		EXPECT(waitpid(child, &status, 0) == child && status == 0);
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
	EXPECT(argc == 3);
	if (!strcmp(argv[2], "loop"))
		test_loop(argv[1]);
	else if (!strcmp(argv[2], "forked"))
		test_forked(argv[1]);
	else
		test_space(argv[1]);
	puts("ok");
	return 0;
}
