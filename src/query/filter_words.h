/* SPDX-License-Identifier: MIT */
/**
 * The words that say which allocations count: one table, from which options of commands, the checks of programs'
 * filters, the texts that reports repeat, and the help are made.
 *
 *     "-size" "1K" "max"  --filter_word_take()-->  filter.size_bytes = {1024, UINT64_MAX}
 *                         <--filter_word_write()--  "1024 max"
 */
#ifndef XHEAP_QUERY_FILTER_WORDS_H
#define XHEAP_QUERY_FILTER_WORDS_H

#include "base/sink.h"
#include "query/filter.h"

/** The values that follow a word. */
enum filter_values {
	FILTER_NO_VALUE,    /**< none: the word says it */
	FILTER_TIMES,       /**< two times since the trace's start, or by the clock */
	FILTER_CLASS_TIMES, /**< a set of window classes and two times */
	FILTER_MOMENT,      /**< a position, or a time */
	FILTER_SIZES,       /**< a least size, and one that no block reaches */
	FILTER_SPANS,       /**< two spans of time, as the sizes */
	FILTER_NUMBERS,     /**< one or more numbers up to UINT32_MAX, also with commas between them */
	FILTER_FRAMES,      /**< one or more patterns of frames (query/pattern.h) */
	FILTER_HEAP         /**< a heap's handle or name; the word may come again */
};

/* The words in the order of the help: id, name, other name or NULL, kind of values, taker (RANGE: all commands, as
   their range; ALL: all commands; ONE: commands that read one trace; REPORT: reports, but no listing), values for the
   help, help. A time may also be a position SEQUENCE:STEP (base/position.h). */
#define FILTER_WORDS(X) \
	X(RANGE, "range", NULL, TIMES, RANGE, "T1 T2", \
	  "events from T1 to T2; a time is in microseconds from the start, has s, ms, us or ns behind it, is a " \
	  "position SEQUENCE:STEP, or YYYY/MM/DD:HH:MM:SS") \
	X(AT, "at", NULL, MOMENT, ONE, "P", \
	  "the heap as it was at the position SEQUENCE:STEP, or at a time: blocks live then") \
	X(LIFETIME, "lifetime", NULL, SPANS, ALL, "L1 L2", "blocks that lived for at least L1 and less than L2") \
	X(SIZE, "size", NULL, SIZES, ALL, "S1 S2", \
	  "blocks of at least S1 and less than S2 bytes; also with K, M or G") \
	X(REQUIRED, "requireFrames", NULL, FRAMES, ALL, "F...", \
	  "blocks with one of these frames on the stack of their allocation") \
	X(REQUIRED_OF_FREE, "requireFreeFrames", NULL, FRAMES, ALL, "F...", \
	  "blocks with one of these frames on the stack of their free") \
	X(PIDS, "pids", "pid", NUMBERS, ALL, "N...", "blocks of these processes; -pid is the same") \
	X(THREADS, "threads", "thread", NUMBERS, ALL, "N...", "blocks of these threads") \
	X(HEAP, "heap", NULL, HEAP, ALL, "H", \
	  "blocks of the heap with this handle or name, also of a heap that lies in another one") \
	X(INNERMOST, "innermost", NULL, NO_VALUE, REPORT, NULL, \
	  "blocks that lie in others, in place of these; what remains of these is [pool overhead]") \
	X(WINDOW, "window", NULL, CLASS_TIMES, ALL, "CLASS T1 T2", \
	  "blocks that were allocated, freed inside or outside of T1 to T2: AIFI, AIFO, AOFI or AOFO, or several: " \
	  "AIFO+AOFI") \
	X(CLOSED, "closed", NULL, NO_VALUE, ALL, NULL, "blocks that were freed")

#define X(id, name, other, values, taker, value, help) FILTER_WORD_##id,
enum filter_word_id { FILTER_WORDS(X) FILTER_WORD_COUNT };
#undef X

struct filter_word {
	enum filter_word_id id;
	const char *name;  /**< without dashes */
	const char *other; /**< a second name; NULL: none */
	enum filter_values values;
	bool is_of_reports; /**< listings have all blocks: they do not take it */
};

/** All words, by id. */
extern const struct filter_word filter_words[FILTER_WORD_COUNT];

/** Two times as typed, the caller's texts: those by the clock have a meaning when the trace is open. */
struct filter_times {
	const char *words[2]; /**< NULL: not asked for */
};

/** An option that was used, for the report to repeat. */
struct filter_note {
	const char *name; /**< "size" */
	char *text;       /**< its values: "100 200" */
};

/** A filter as it was asked for. Begin it with filter_request_init(). Texts of times and heaps stay the caller's. */
struct filter_request {
	struct heap_filter filter;
	struct filter_times range;  /**< beside the filter: a report's range */
	struct filter_times window; /**< of filter.classes */
	const char *moment;         /**< of filter.moment; NULL: not asked for */
	struct filter_note *notes;  /**< what a report repeats */
	size_t note_count, note_capacity;
};

/** Begin with a filter that everything passes. */
void filter_request_init(struct filter_request *request);

/** Free the filter and the notes. */
void filter_request_fini(struct filter_request *request);

/** Return how many values the word takes; 0 also for lists. */
unsigned filter_word_count(const struct filter_word *word);

/** Return whether the word takes one value or more. */
bool filter_word_is_list(const struct filter_word *word);

/** Take the value number `place` of the word (0 in lists). Return 0, or -EINVAL with the reason in diag. */
int filter_word_take(struct filter_request *request, const struct filter_word *word, unsigned place, const char *value,
		     struct diag *diag);

/** Finish the word after its last value. Return 0, or -EINVAL with the reason in diag: it ends before it begins. */
int filter_word_finish(struct filter_request *request, const struct filter_word *word, struct diag *diag);

/** Return where the word's bounds go: of FILTER_SIZES in bytes, of FILTER_SPANS in ns; NULL for other words. */
struct heap_bounds *filter_word_bounds(struct filter_request *request, const struct filter_word *word);

/** Add a number to a word of FILTER_NUMBERS. */
void filter_word_add_number(struct filter_request *request, const struct filter_word *word, uint32_t number);

/** Return whether the request limits what the word is about. */
bool filter_word_is_asked(const struct filter_request *request, const struct filter_word *word);

/** Write the values that the request has of the word, with a space between them, so that they may be taken again. */
void filter_word_write(const struct filter_request *request, const struct filter_word *word, struct sink *out);

/** Note an option for the report to repeat, with this text, which becomes the request's. */
void filter_request_note(struct filter_request *request, const char *name, char *text);

/** Read the moment of FILTER_WORD_AT, now that the trace's start is known, into the filter. Narrow *range, which is all
 *  of a trace, to its end. Both stay as they are when the word was not used. Return 0, or -EINVAL with the reason in
 *  diag. */
int filter_word_resolve_moment(struct filter_request *request, int64_t start_realtime_ns, struct heap_range *range,
			       struct diag *diag);

/** Read the times of a word, now that the trace's start is known. *range stays as it is when the word was not used.
 *  Return 0, or -EINVAL with the reason in diag. */
int filter_word_resolve(const struct filter_request *request, const struct filter_word *word, int64_t start_realtime_ns,
			struct heap_range *range, struct diag *diag);

#endif
