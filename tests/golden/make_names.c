/* SPDX-License-Identifier: MIT */
/*
 * make_names FILE < NAMES: writes a trace whose frames have these names, one a line, as `xheap symbols` would have
 * stored
 * them. A tab, a file, and a line number may follow a name. Each stack has several of the names; sizes, image paths and
 * command lines are of any length, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "scene.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reopen.h"
#include "trace/row_ids.h"

enum { NAMES_MAX = 2000, FRAMES_OF_STACK = 9, IMAGES = 4, PROCESSES = 3, LONG_BYTES = 20000 };

struct names {
	struct scene scene;
	struct trace_function functions[NAMES_MAX];
	const char *paths[IMAGES];
	uint32_t threads[PROCESSES], count;
};

static void read_names(struct names *names)
{
	char *line = NULL;
	size_t size = 0;
	while (names->count < NAMES_MAX && getline(&line, &size, stdin) > 0) {
		struct trace_function *function = &names->functions[names->count++];
		line[strcspn(line, "\n")] = 0;
		char *rest = strdup(line);
		*function = (struct trace_function){.function = strsep(&rest, "\t"), .mangled = "", .file = ""};
		if (rest)
			function->file = strsep(&rest, "\t");
		if (rest)
			function->line = (uint32_t)atoi(rest);
		function->is_inlined = false;
	}
	free(line);
}

static char *long_text(const char *piece)
{
	char *text = calloc(1, LONG_BYTES + 400);
	while (strlen(text) < LONG_BYTES)
		strcat(text, piece);
	return text;
}

static void set_paths(struct names *names)
{
	names->paths[0] = "/bin/app";
	names->paths[1] = "/usr/lib/libstdc++.so.6.0.30";
	names->paths[2] = strcat(long_text("/a-directory-with-a-long-name"),
				 "/lib配列の図書館配列の図書館-and-a-name-that-is-long.so.7");
	names->paths[3] = "/lib/lib\033[2Jmischief.so";
}

/* The frame of a name in a trace. A trace has frames in the order in which its stacks use them. */
static uint32_t frame_at(const struct names *names, struct writer *writer, uint32_t i)
{
	uint32_t image = writer_add_image(writer, &(struct trace_image){names->paths[i / 3 % IMAGES], NULL, 0});
	return writer_intern_frame(writer, image, 0x1000 + 16 * i);
}

static void add_processes(struct names *names)
{
	const char *const commands[PROCESSES] = {long_text("an --argument='of any length' "), "命令 \033]0;x\a 行", ""};
	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct trace_process process = {.pid = 4000000 + i,
						.parent = i ? 0 : TRACE_NONE,
						.forked_from = TRACE_NONE,
						.end_ns = INT64_MAX,
						.image = "/bin/app",
						.command = commands[i],
						.note = ""};
		uint32_t id = writer_add_process(names->scene.writer, &process);
		names->scene.processes[id] = process;
		names->threads[i] = scene_thread(&names->scene, id, process.pid);
	}
	names->scene.heap = writer_add_heap(names->scene.writer,
					    &(struct trace_heap){.handle = 0x7f0000001000, .name = commands[0]});
	writer_add_option(names->scene.writer, "command", commands[0]);
}

static void add_calls(struct names *names)
{
	struct scene *scene = &names->scene;
	for (uint32_t i = 0; i < names->count; i++) {
		scene->stack = 0;
		for (uint32_t j = 0; j < FRAMES_OF_STACK; j++)
			scene->stack = writer_intern_node(
				scene->writer, scene->stack,
				frame_at(names, scene->writer, (i * 7 + FRAMES_OF_STACK - j) % names->count));
		uint32_t thread = names->threads[i % PROCESSES];
		uint64_t address = 0x7f0000000000 + (uint64_t)i * 0x100;
		scene_alloc(scene, thread, 10 + i * 100, address, (uint64_t)1 << i % 41);
		if (i % 4 == 1)
			scene_realloc(scene, thread, 20 + i * 100, 30 + i * 100, address, address,
				      (uint64_t)3 << i % 41);
		if (i % 3 == 2)
			scene_free(scene, thread, 60 + i * 100, address);
	}
}

/* A finished trace gets the names, as `xheap symbols` adds them. */
static void add_symbols(const struct names *names, const char *path)
{
	struct diag diag = {""};
	struct writer *writer;
	int error = writer_reopen(&writer, path, NULL, &diag);
	for (uint32_t i = 0; i < names->count && !error; i++)
		writer_add_symbol(writer, frame_at(names, writer, i), &names->functions[i], 1);
	error = error ? error : writer_close(writer, NULL, &diag);
	if (!error)
		return;
	fprintf(stderr, "make_names: %s\n", diag.text);
	exit(99);
}

int main(int argc, char **argv)
{
	static struct names names;
	if (argc != 2) {
		fputs("usage: make_names FILE < NAMES\n", stderr);
		return 2;
	}
	read_names(&names);
	scene_open(&names.scene, argv[1]);
	set_paths(&names);
	add_processes(&names);
	add_calls(&names);
	scene_close(&names.scene);
	add_symbols(&names, argv[1]);
	return 0;
}
