/* SPDX-License-Identifier: MIT */
/*
 * An agent that a JVM loads: it writes the names of compiled methods to the process's perf map, /tmp/perf-PID.map, at
 * once, and of code into which methods were put which ones: "OUTER->INNER". It runs in the program that is recorded:
 * whatever fails here costs names, and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "java/jvm_tools.h"

enum {
	NAME_BYTES = 512,   /* of a method; the end of a longer one is cut off */
	LINE_BYTES = 4000,  /* of a line's names: outer ones that have no room are left out */
	NAMES_MAX = 256,    /* methods of one code whose names are known at a time */
	BUFFER_BYTES = 1 << 16,
	DEPTH_MAX = 16,
	/* Beyond that much in all, methods are named without those that were put into them. */
	WHOLE_BYTES = 128 << 20
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int map = -1;
static bool has_failed;
static uint64_t written;
static char buffer[BUFFER_BYTES];
static size_t buffered;

/* Names of the methods of the code at hand. */
static struct known_method {
	jvm_method method;
	char text[NAME_BYTES];
} known[NAMES_MAX];
static unsigned known_count;

/* ---- the map ---- */

/* Open the map, without what an earlier process of this number wrote. */
static int map_open(void)
{
	char path[40];
	struct stat status;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_nlink == 1 &&
	    ftruncate(fd, 0) == 0)
		return fd;
	close(fd);
	errno = EEXIST;
	return -1;
}

static void buffer_write(void)
{
	for (size_t at = 0; at < buffered && !has_failed;) {
		ssize_t bytes = write(map, buffer + at, buffered - at);
		has_failed = bytes == 0 || (bytes < 0 && errno != EINTR);
		at += bytes > 0 ? (size_t)bytes : 0;
	}
	written += buffered;
	buffered = 0;
}

/* Begin to write about one code; end it by code_end(). Return false if nothing can be written. */
static bool code_begin(void)
{
	pthread_mutex_lock(&lock);
	if (map < 0 && !has_failed) {
		map = map_open();
		has_failed = map < 0;
		if (has_failed)
			fprintf(stderr, "xheap: no names of Java's methods: cannot write /tmp/perf-%d.map: %s\n",
				(int)getpid(), strerror(errno));
	}
	known_count = 0;
	if (has_failed)
		pthread_mutex_unlock(&lock);
	return !has_failed;
}

static void code_end(void)
{
	buffer_write();
	pthread_mutex_unlock(&lock);
}

static void line_put(const char *start, const char *end, const char *names)
{
	if (end <= start)
		return;
	if (buffered + LINE_BYTES + 64 > sizeof(buffer))
		buffer_write();
	buffered += (size_t)snprintf(buffer + buffered, sizeof(buffer) - buffered, "%lx %lx %.*s\n", (long)start,
				     (long)(end - start), LINE_BYTES, names);
}

/* ---- names ---- */

/* Append a text of a JVM's, where packages are divided by '/'. A name may have any other characters. */
static void text_put(char *text, size_t *bytes, const char *more, size_t length)
{
	for (size_t i = 0; i < length && *bytes < NAME_BYTES - 1; i++)
		text[(*bytes)++] = more[i] == '/' ? '.' : (unsigned char)more[i] < ' ' ? '?' : more[i];
}

static void word_put(char *text, size_t *bytes, const char *word)
{
	text_put(text, bytes, word, strlen(word));
}

/* Append a type of a signature as Java writes it. Return what follows, NULL: it is none. */
static const char *type_put(char *text, size_t *bytes, const char *signature)
{
	static const char letters[] = "ZBCSIJFDV";
	static const char *const words[] = {"boolean", "byte", "char",   "short", "int",
					    "long",    "float", "double", "void"};
	unsigned arrays = 0;
	while (*signature == '[') {
		arrays++;
		signature++;
	}
	const char *letter = *signature ? strchr(letters, *signature) : NULL;
	const char *end = *signature == 'L' ? strchr(signature, ';') : NULL;
	if (!letter && !end)
		return NULL;
	if (letter)
		word_put(text, bytes, words[letter - letters]);
	else
		text_put(text, bytes, signature + 1, (size_t)(end - signature - 1));
	for (; arrays; arrays--)
		word_put(text, bytes, "[]");
	return (letter ? signature : end) + 1;
}

/* "shop.Cart.load(int, byte[])" */
static void method_put(char *text, const char *class, const char *name, const char *signature)
{
	size_t bytes = 0;
	type_put(text, &bytes, class);
	word_put(text, &bytes, ".");
	word_put(text, &bytes, name);
	word_put(text, &bytes, "(");
	const char *at = signature + 1;
	for (bool is_first = true; at && *at && *at != ')'; is_first = false) {
		word_put(text, &bytes, is_first ? "" : ", ");
		at = type_put(text, &bytes, at);
	}
	word_put(text, &bytes, ")");
	text[bytes] = 0;
}

/* Write the method's name into the text, which stays as it is if the JVM has none. */
static void method_ask(jvm_tools tools, jvm_method method, char *text)
{
	jvm_class class;
	char *name, *signature, *class_name;
	if (JVM_CALL(jvm_get_method_name, tools, method, &name, &signature, NULL))
		return;
	if (!JVM_CALL(jvm_get_method_class, tools, method, &class) &&
	    !JVM_CALL(jvm_get_class_signature, tools, class, &class_name, NULL)) {
		method_put(text, class_name, name, signature);
		JVM_CALL(jvm_deallocate, tools, class_name);
	}
	JVM_CALL(jvm_deallocate, tools, name);
	JVM_CALL(jvm_deallocate, tools, signature);
}

static const char *method_name(jvm_tools tools, jvm_method method)
{
	for (unsigned i = 0; i < known_count; i++)
		if (known[i].method == method)
			return known[i].text;
	if (known_count == NAMES_MAX)
		known_count = 0;
	struct known_method *new = &known[known_count++];
	new->method = method;
	strcpy(new->text, "(unloaded)");
	method_ask(tools, method, new->text);
	return new->text;
}

/* Write "OUTER->INNER" of a place: the innermost ones, as many as have room, and the outermost one. */
static void place_names(jvm_tools tools, const struct jvm_place *place, char names[LINE_BYTES + 1])
{
	char *at = names + LINE_BYTES;
	*at = 0;
	for (int i = 0; i < place->count; i++) {
		if (i >= DEPTH_MAX - 1 && i < place->count - 1)
			continue;
		const char *name = method_name(tools, place->methods[i]);
		size_t bytes = strlen(name), arrow = *at ? 2 : 0;
		if (at - names < (ptrdiff_t)(bytes + arrow))
			break;
		at -= arrow;
		memcpy(at, "->", arrow);
		at -= bytes;
		memcpy(at, name, bytes);
	}
	memmove(names, at, strlen(at) + 1);
}

/* ---- events ---- */

static const struct jvm_inlined *inlined_of(const struct jvm_record *record)
{
	while (record && record->kind != JVM_RECORD_INLINED)
		record = record->next;
	return (const struct jvm_inlined *)record;
}

/* Write the last line of a piece that has other methods than the next one, and begin that. */
static void piece_end(const char **begin, const char *end, char *last, const char *next)
{
	if (strcmp(last, next) != 0) {
		line_put(*begin, end, last);
		*begin = end;
		strcpy(last, next);
	}
}

/* A line for each piece of the code that has other methods than the one before it. */
static void pieces_put(jvm_tools tools, jvm_method method, const char *start, const char *end,
		       const struct jvm_inlined *inlined)
{
	char names[LINE_BYTES + 1], last[LINE_BYTES + 1];
	const char *begin = start, *at = start;
	strcpy(last, method_name(tools, method));
	for (int i = 0; i < inlined->count; i++) {
		const char *until = inlined->places[i].address;
		if (until <= at || until > end || inlined->places[i].count <= 0)
			continue;
		place_names(tools, &inlined->places[i], names);
		piece_end(&begin, at, last, names);
		at = until;
	}
	piece_end(&begin, at, last, method_name(tools, method));
	line_put(begin, end, last);
}

static void method_compiled(jvm_tools tools, jvm_method method, int size, const void *address, int pieces,
			    const void *addresses, const void *more)
{
	const struct jvm_inlined *inlined = inlined_of(more);
	const char *start = address;
	(void)pieces;
	(void)addresses;
	if (!code_begin())
		return;
	if (inlined && written < WHOLE_BYTES)
		pieces_put(tools, method, start, start + size, inlined);
	else
		line_put(start, start + size, method_name(tools, method));
	code_end();
}

/* Code of the JVM's own: the interpreter, and stubs, which reports fold by the beginning of their names. */
static void code_generated(jvm_tools tools, const char *name, const void *address, int size)
{
	char text[NAME_BYTES];
	(void)tools;
	if (!code_begin())
		return;
	snprintf(text, sizeof(text), "%s%s", strcmp(name, "Interpreter") != 0 ? "Stub:" : "", name);
	line_put(address, (const char *)address + size, text);
	code_end();
}

/* ---- the agent ---- */

static bool agent_begin(jvm_machine machine, jvm_tools *tools)
{
	static const void *callbacks[JVM_CALLBACK_COUNT];
	uint8_t capabilities[JVM_CAPABILITY_BYTES] = {[JVM_CAPABILITY_BYTE] = JVM_CAPABILITY_BIT};
	if (JVM_CALL(jvm_get_env, machine, tools, JVM_TOOLS_VERSION) ||
	    JVM_CALL(jvm_add_capabilities, *tools, capabilities)) {
		fprintf(stderr, "xheap: no names of Java's methods: this JVM has no events of compiled methods\n");
		return false;
	}
	callbacks[JVM_METHOD_COMPILED - JVM_EVENT_FIRST] = (const void *)method_compiled;
	callbacks[JVM_CODE_GENERATED - JVM_EVENT_FIRST] = (const void *)code_generated;
	return !JVM_CALL(jvm_set_callbacks, *tools, callbacks, (int)sizeof(callbacks)) &&
	       !JVM_CALL(jvm_set_event_mode, *tools, JVM_ENABLE, JVM_METHOD_COMPILED, NULL) &&
	       !JVM_CALL(jvm_set_event_mode, *tools, JVM_ENABLE, JVM_CODE_GENERATED, NULL);
}

/* 0 in any case: without names the program runs as well. */
int Agent_OnLoad(jvm_machine machine, const char *options, void *reserved)
{
	jvm_tools tools;
	(void)options;
	(void)reserved;
	agent_begin(machine, &tools);
	return 0;
}

int Agent_OnAttach(jvm_machine machine, const char *options, void *reserved)
{
	jvm_tools tools;
	(void)options;
	(void)reserved;
	if (agent_begin(machine, &tools)) {
		JVM_CALL(jvm_generate_events, tools, JVM_CODE_GENERATED);
		JVM_CALL(jvm_generate_events, tools, JVM_METHOD_COMPILED);
	}
	return 0;
}
