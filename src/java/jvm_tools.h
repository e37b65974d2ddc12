/* SPDX-License-Identifier: MIT */
/**
 * The part of a JVM's tool interface, JVM TI 1.0, that the agent uses: places in its tables of functions, which stay
 * the same in each version. (The headers of a JDK declare all of it, and are no small dependency.)
 * From: JVM Tool Interface Version 17.0.0, chapters "Functions", "Events" and "Compiled Method Load";
 * jvmticmlr.h of OpenJDK for what follows a method's code.
 */
#ifndef XHEAP_JAVA_JVM_TOOLS_H
#define XHEAP_JAVA_JVM_TOOLS_H

#include <stdint.h>

typedef void *jvm_method, *jvm_class;
/** A table of functions, and what begins with its address. */
typedef void *const *jvm_functions;
typedef const jvm_functions *jvm_tools, *jvm_machine;

enum {
	JVM_TOOLS_VERSION = 0x30010000,
	JVM_ENABLE = 1,
	JVM_CAPABILITY_BYTES = 16,
	/** can_generate_compiled_method_load_events */
	JVM_CAPABILITY_BYTE = 3,
	JVM_CAPABILITY_BIT = 8
};

/** Events; callbacks begin with that of the first one. */
enum { JVM_EVENT_FIRST = 50, JVM_METHOD_COMPILED = 68, JVM_CODE_GENERATED = 70, JVM_CALLBACK_COUNT = 40 };

/** Places of the functions below. */
enum {
	jvm_get_env_place = 6, /**< of the machine's table */
	jvm_set_event_mode_place = 1,
	jvm_deallocate_place = 46,
	jvm_get_class_signature_place = 47,
	jvm_get_method_name_place = 63,
	jvm_get_method_class_place = 64,
	jvm_set_callbacks_place = 121,
	jvm_generate_events_place = 122,
	jvm_add_capabilities_place = 141
};

/** Call one of them, NAME, of the table that `from` begins with. */
#define JVM_CALL(name, from, ...) (((name *)(*(from))[name##_place])((from), ##__VA_ARGS__))

/** All of them return 0 if they succeed. */
typedef int jvm_get_env(jvm_machine machine, jvm_tools *tools, int version);
typedef int jvm_set_event_mode(jvm_tools tools, int mode, int event, void *thread, ...);
typedef int jvm_deallocate(jvm_tools tools, void *memory);
typedef int jvm_get_class_signature(jvm_tools tools, jvm_class class, char **signature, char **generic);
typedef int jvm_get_method_name(jvm_tools tools, jvm_method method, char **name, char **signature, char **generic);
typedef int jvm_get_method_class(jvm_tools tools, jvm_method method, jvm_class *class);
typedef int jvm_set_callbacks(jvm_tools tools, const void *callbacks, int bytes);
typedef int jvm_generate_events(jvm_tools tools, int event);
typedef int jvm_add_capabilities(jvm_tools tools, const void *capabilities);

/** A record of a chain, which the JVM hands over with a compiled method. */
struct jvm_record {
	int kind;
	int major, minor;
	const struct jvm_record *next;
};

enum { JVM_RECORD_INLINED = 2 };

/** Which methods are at a place of the code, the innermost first. A call's place is where it returns to. */
struct jvm_place {
	const void *address;
	int count;
	const jvm_method *methods;
	const void *reserved_positions; /**< in the methods' own code */
};

struct jvm_inlined {
	struct jvm_record record;
	int count;
	const struct jvm_place *places;
};

/** The JVM calls the first one of a library that it loads as it starts, and the second one of a library that it loads
    later. */
__attribute__((visibility("default"))) int Agent_OnLoad(jvm_machine machine, const char *options, void *reserved);
__attribute__((visibility("default"))) int Agent_OnAttach(jvm_machine machine, const char *options, void *reserved);

#endif
