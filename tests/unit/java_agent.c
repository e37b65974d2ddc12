/* SPDX-License-Identifier: MIT */
/* The agent that a JVM loads, in a JVM that says what the test wants: what it writes names each piece of code by the
   methods there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "java/jvm_tools.h"
#include "session/jit/perf_map.h"

enum { METHODS = 40, PLACES = 30, CODE_BYTES = 512, ROUNDS = 300, LONG_BYTES = 5000, TABLE_SIZE = 160 };

/* Methods are numbers from 1 on; the last one has no name any more, and that before it a very long one. */
static char long_name[LONG_BYTES + 1];
static unsigned texts_held;

static char *text_give(const char *text)
{
	texts_held++;
	return strdup(text);
}

static int method_name_get(jvm_tools tools, jvm_method method, char **name, char **signature, char **generic)
{
	char text[16];
	uintptr_t number = (uintptr_t)method;
	(void)tools;
	assert_null(generic);
	if (number == METHODS)
		return 23;
	snprintf(text, sizeof(text), "m%d", (int)number);
	*name = text_give(number == METHODS - 1 ? long_name : text);
	*signature = text_give(number % 2 ? "(I[[Ljava/lang/String;)V" : "()J");
	return 0;
}

static int method_class_get(jvm_tools tools, jvm_method method, jvm_class *class)
{
	(void)tools;
	*class = method;
	return 0;
}

static int class_signature_get(jvm_tools tools, jvm_class class, char **signature, char **generic)
{
	(void)tools;
	(void)class;
	assert_null(generic);
	*signature = text_give("Lshop/Cart$Item;");
	return 0;
}

static int memory_free(jvm_tools tools, void *memory)
{
	(void)tools;
	texts_held--;
	free(memory);
	return 0;
}

static const void *const *callbacks;
static bool is_enabled[JVM_EVENT_FIRST + JVM_CALLBACK_COUNT];
static int refusal;

static int callbacks_take(jvm_tools tools, const void *given, int bytes)
{
	(void)tools;
	assert_int_equal(bytes % (int)sizeof(void *), 0);
	callbacks = given;
	return 0;
}

static int mode_take(jvm_tools tools, int mode, int event, void *thread, ...)
{
	(void)tools;
	assert_int_equal(mode, JVM_ENABLE);
	assert_null(thread);
	is_enabled[event] = true;
	return 0;
}

static int capabilities_take(jvm_tools tools, const void *capabilities)
{
	(void)tools;
	(void)capabilities;
	return refusal;
}

static const void *table[TABLE_SIZE] = {[jvm_set_event_mode_place] = (const void *)mode_take,
					[jvm_deallocate_place] = (const void *)memory_free,
					[jvm_get_class_signature_place] = (const void *)class_signature_get,
					[jvm_get_method_name_place] = (const void *)method_name_get,
					[jvm_get_method_class_place] = (const void *)method_class_get,
					[jvm_set_callbacks_place] = (const void *)callbacks_take,
					[jvm_add_capabilities_place] = (const void *)capabilities_take};
static const jvm_functions tools_functions = (jvm_functions)table;

static int env_get(jvm_machine machine, jvm_tools *tools, int version)
{
	(void)machine;
	assert_int_equal(version, JVM_TOOLS_VERSION);
	*tools = &tools_functions;
	return 0;
}

static const void *machine_table[] = {[jvm_get_env_place] = (const void *)env_get};
static const jvm_functions machine_functions = (jvm_functions)machine_table;

/* ---- what is wanted ---- */

static void name_wanted(char *text, size_t room, jvm_method method)
{
	uintptr_t number = (uintptr_t)method;
	if (number == METHODS)
		snprintf(text, room, "(unloaded)");
	else
		snprintf(text, room, "shop.Cart$Item.m%d(%s)", (int)number,
			 number % 2 ? "int, java.lang.String[][]" : "");
}

/* A code of CODE_BYTES at an address of its own; the method that was compiled is 1. */
struct code {
	uintptr_t start;
	struct jvm_place places[PLACES];
	jvm_method methods[PLACES][METHODS];
	struct jvm_inlined inlined;
};

static void code_make(struct code *code, int round)
{
	memset(code, 0, sizeof(*code));
	code->start = 0x100000 + (uintptr_t)round * CODE_BYTES;
	code->inlined = (struct jvm_inlined){.record = {.kind = JVM_RECORD_INLINED}, .places = code->places};
	for (uintptr_t at = code->start; code->inlined.count < PLACES;) {
		at += 1 + (uintptr_t)(rand() % 40);
		if (at > code->start + CODE_BYTES)
			break;
		struct jvm_place *place = &code->places[code->inlined.count];
		jvm_method *methods = code->methods[code->inlined.count++];
		place->address = (const void *)at;
		place->methods = methods;
		/* Few methods, so that neighbours often have the same ones. */
		place->count = 1 + rand() % 3;
		if (rand() % 20 == 0)
			place->count = METHODS;
		for (int i = 0; i < place->count - 1; i++)
			methods[i] = (jvm_method)(uintptr_t)(2 + rand() % (rand() % 10 ? 3 : METHODS - 1));
		methods[place->count - 1] = (jvm_method)1;
	}
}

static const struct jvm_place *place_of(const struct code *code, uintptr_t byte)
{
	for (int i = 0; i < code->inlined.count; i++)
		if (byte < (uintptr_t)code->places[i].address)
			return &code->places[i];
	return NULL;
}

static void expect_names(const struct code *code, uintptr_t byte, const struct jit_names *names)
{
	const struct jvm_place *place = place_of(code, byte);
	const jvm_method only[] = {(jvm_method)1}, *methods = place ? place->methods : only;
	unsigned count = place ? (unsigned)place->count : 1, shown = count < JIT_DEPTH_MAX ? count : JIT_DEPTH_MAX;
	assert_int_equal(names->count, shown);
	for (unsigned i = 0; i < shown; i++) {
		char wanted[80];
		jvm_method method = i == shown - 1 ? methods[count - 1] : methods[i];
		name_wanted(wanted, sizeof(wanted), method);
		if (method == (jvm_method)(METHODS - 1))
			assert_int_equal(strncmp(names->items[i].function, "shop.Cart$Item.xxxxx", 20), 0);
		else
			assert_string_equal(names->items[i].function, wanted);
	}
}

/* Each byte of each code has one line at last, whose names are those of its place. */
static void expect_map(const char *path, const struct code *codes)
{
	static struct jit_names names;
	static char line[JIT_NAMES_BYTES + 80];
	FILE *file = fopen(path, "r");
	uintptr_t next = codes[0].start;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		uint64_t start, size;
		size_t name, length = strlen(line);
		assert_true(length && line[length - 1] == '\n');
		if (strstr(line, "Stub:"))
			continue;
		assert_true(perf_map_parse(line, length - 1, &start, &size, &name));
		assert_int_equal(start, next);
		next = start + size;
		perf_map_names(&names, line + name, length - 1 - name);
		const struct code *code = &codes[(start - codes[0].start) / CODE_BYTES];
		assert_true(next <= code->start + CODE_BYTES);
		for (uintptr_t byte = start; byte < next; byte++)
			expect_names(code, byte, &names);
	}
	assert_int_equal(next, codes[ROUNDS - 1].start + CODE_BYTES);
	fclose(file);
}

static void methods_are_named(void **state)
{
	typedef void method_compiled(jvm_tools, jvm_method, int, const void *, int, const void *, const void *);
	typedef void code_generated(jvm_tools, const char *, const void *, int);
	struct code *codes = calloc(ROUNDS, sizeof(*codes));
	char path[40];
	(void)state;
	memset(long_name, 'x', LONG_BYTES);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	assert_int_equal(Agent_OnLoad(&machine_functions, NULL, NULL), 0);
	assert_true(is_enabled[JVM_METHOD_COMPILED] && is_enabled[JVM_CODE_GENERATED]);
	for (int i = 0; i < ROUNDS; i++) {
		/* Something else comes before it in the chain of records. */
		struct jvm_record first = {.kind = 1, .next = &codes[i].inlined.record};
		code_make(&codes[i], i);
		((method_compiled *)callbacks[JVM_METHOD_COMPILED - JVM_EVENT_FIRST])(
			&tools_functions, (jvm_method)1, CODE_BYTES, (const void *)codes[i].start, 0, NULL, &first);
	}
	((code_generated *)callbacks[JVM_CODE_GENERATED - JVM_EVENT_FIRST])(&tools_functions, long_name,
									      (const void *)16, 16);
	expect_map(path, codes);
	assert_int_equal(texts_held, 0);
	unlink(path);
	free(codes);
}

static void a_jvm_that_refuses(void **state)
{
	(void)state;
	refusal = 98;
	assert_int_equal(Agent_OnLoad(&machine_functions, NULL, NULL), 0);
	assert_int_equal(Agent_OnAttach(&machine_functions, NULL, NULL), 0);
	refusal = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(methods_are_named), cmocka_unit_test(a_jvm_that_refuses)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
