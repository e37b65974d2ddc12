/* SPDX-License-Identifier: MIT */
/**
 * What happened to memory: the blocks at an address, or how a process came to its end. What is certain, what is likely
 * and what is unknown are told apart (docs/semantics.md).
 */
#ifndef XHEAP_ACTION_EXPLANATION_H
#define XHEAP_ACTION_EXPLANATION_H

#include "action/report/action.h"
#include "base/diag.h"
#include "corefile/corefile.h"
#include "query/block_history.h"
#include "symbols/symbols.h"

struct abort_meaning;

/** X(id, word of JSON, words for people): what a heap call did wrong, or what went wrong in it. */
#define EXPLAIN_FAULTS(X) \
	X(NONE, "none", "no fault") \
	X(DOUBLE_FREE, "double_free", "a double free") \
	X(INTERIOR_FREE, "interior_free", "a free of an address inside a block") \
	X(FOREIGN_FREE, "foreign_free", "a free of an address that no heap call returned") \
	X(DAMAGED_HEAP, "damaged_heap", "damaged data of the allocator: a write beyond a block, or into a freed one") \
	X(NO_MEMORY, "no_memory", "a call that failed for want of memory")

enum explain_fault {
#define X(id, word, words) EXPLAIN_##id,
	EXPLAIN_FAULTS(X)
#undef X
		EXPLAIN_FAULT_COUNT
};

/** How sure an explanation is. */
#define EXPLAIN_CERTAINTIES(X) X(UNKNOWN, "unknown") X(LIKELY, "likely") X(CERTAIN, "certain")

enum explain_certainty {
#define X(id, word) EXPLAIN_##id,
	EXPLAIN_CERTAINTIES(X)
#undef X
};

/** The words of JSON and those for people. */
extern const char *const explain_fault_keys[], *const explain_fault_words[], *const explain_certainty_words[];

/** A heap call that explains something: one that had not returned, freed what was not live, or got no memory. */
struct explain_call {
	int64_t time_ns;
	uint64_t address; /**< that it frees or resizes; 0: none */
	uint64_t size_bytes;
	uint32_t thread, stack;
	uint32_t stack_before; /**< of the thread's event before it; 0: not known */
	uint16_t entry;
	uint8_t kind;       /**< enum event_kind */
	bool is_under_way;  /**< when the process ended */
	bool is_first_free; /**< a later call freed the address again, and the trace has no block of it */
	enum explain_fault fault;
	enum explain_certainty certainty;
	struct block_history history; /**< of the address, before the call; if there is one */
};

enum { EXPLAIN_CALLS_MAX = 8 };

/** X(id, word of JSON, words for people): what has overwritten a word of the allocator's, or of its next owner. */
#define EXPLAIN_DAMAGES(X) \
	X(INTACT, "none", "nothing") \
	X(BEYOND, "beyond", "a write beyond a block") \
	X(BEFORE, "before", "a write before a block, or beyond a freed one below it") \
	X(FREED, "freed", "a write into a freed block, which was given out again")

enum explain_damage_kind {
#define X(id, word, words) EXPLAIN_##id,
	EXPLAIN_DAMAGES(X)
#undef X
};

extern const char *const explain_damage_keys[], *const explain_damage_words[];

/** A word of glibc's malloc that was overwritten. */
struct explain_damage {
	enum explain_damage_kind kind;
	uint64_t address, word;     /**< the word and its value; of a freed block: the block's address, and 0 */
	struct history_block block; /**< beyond, before or into which it was written */
	uint64_t more_count;        /**< of such words */
};

/** A register or a word of the stack, of the thread that a signal ended. */
struct explain_pointer {
	uint64_t value;
	unsigned place;               /**< enum core_register; or behind those: which word from the stack pointer on */
	struct block_history history; /**< of the value, at the end */
};

/** A frame of the stack of that thread. */
struct explain_frame {
	uint64_t pc;
	const struct trace_image *image; /**< NULL: it is in none */
	uint64_t offset;                 /**< in the image's file */
	struct symbol_frame function;    /**< without an image: empty */
};

enum { EXPLAIN_FRAMES_MAX = 64, EXPLAIN_MESSAGE_BYTES = 256 };

/** What the core of the process tells. */
struct explain_core {
	const struct core_facts *facts;   /**< NULL: there is no core */
	struct explain_pointer *pointers; /**< that point into blocks, or did */
	unsigned pointer_count;
	struct explain_frame frames[EXPLAIN_FRAMES_MAX];
	unsigned frame_count;
	uint64_t used; /**< the address that was used and should not have been */
	/** of the freed block that the use is about, or of a live one at the place of a freed one; its address is in
	    the block */
	struct block_history owner;
	bool has_use;   /**< there is such a use */
	bool is_inside; /**< the address that was used lies in the block; false: it was read from there */
	bool is_beyond; /**< `owner` is a live block, and the address lies behind it */
	enum explain_certainty certainty;    /**< of the use */
	char message[EXPLAIN_MESSAGE_BYTES]; /**< with which the C library ended the process; "": none */
	const struct abort_meaning *meaning; /**< of the message; NULL: it is none of malloc's */
	struct explain_damage damage;
};

/** What is asked. */
struct explain_question {
	uint64_t address;
	bool has_address;            /**< false: how did the process end? */
	uint32_t pid;                /**< 0: the process is found */
	const struct position *at;   /**< NULL: the end of the process, or of the trace */
	const struct corefile *core; /**< of the process; NULL: none */
	const char *core_path;
	struct symbols *symbols; /**< of the trace; needed with a core */
};

/** The answer. End it with explanation_fini(). Zero it to begin. */
struct explanation {
	struct action_input *input;
	const struct action_source *source;
	struct explain_question question;
	uint32_t process;
	/* Of an address. */
	struct block_history history;
	struct history_chain earlier, later; /**< reallocs of its block */
	/* Of an end. */
	struct explain_call calls[EXPLAIN_CALLS_MAX]; /**< those with faults first, the surest one before others */
	unsigned call_count;
	uint64_t under_way_count; /**< calls that had not returned when the process ended */
	uint64_t fault_count;     /**< earlier frees of what was not live */
	struct explain_core core;
	bool is_exact;        /**< the trace has every call and every block of the process */
	uint32_t other_count; /**< processes beside this one that ended by a signal */
};

/** Answer the question about the first source of the input. Return 0, or a negative errno with the reason in `diag`:
    -ENOENT if there is nothing to explain. */
int explanation_make(struct explanation *explanation, struct action_input *input,
		     const struct explain_question *question, struct diag *diag);

/** Free what the answer has of its own. */
void explanation_fini(struct explanation *explanation);

/** Return the call that explains the end best; NULL: there is none with a fault. */
const struct explain_call *explanation_call(const struct explanation *explanation);

/** Write the answer for people. */
void explanation_text(const struct explanation *explanation, struct sink *out);

/** Write the explanation of an end in one line, without a line feed: what the call did, and with which block. */
void explanation_line(const struct explanation *explanation, struct sink *out);

/** Write the answer as JSON: docs/schema/explain.json. */
void explanation_json(const struct explanation *explanation, struct sink *out);

#endif
