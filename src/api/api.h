/* SPDX-License-Identifier: MIT */
/** Types and functions that the calls of xheap.h share. */
#ifndef XHEAP_API_API_H
#define XHEAP_API_API_H

#include <pthread.h>
#include <stdbool.h>

#include "analysis/analysis.h"
#include "base/diag.h"
#include "query/filter_words.h"
#include "xheap/xheap.h"

#define API __attribute__((visibility("default")))

/* ---- results ---- */

/** Run work(context), which returns 0, XHEAP_END, or a negative errno with the reason in diag; the result as a status,
 *  reported to `error` and to the callbacks. Nothing in it ends the program: neither missing memory nor a broken
 *  assertion. */
int api_run(const xheap_callbacks *callbacks, xheap_error *error, int (*work)(void *context, struct diag *diag),
	    void *context);

/** Run end(context), which frees a handle. Nothing in it ends the program. If an assertion is broken, some memory stays
 *  allocated. */
void api_end(void (*end)(void *context), void *context);

/** An assertion of ours is broken: the call of the API ends here, with this text. */
_Noreturn void api_give_up(const char *file, unsigned line, const char *claim);

/* ---- structs that grow ---- */

/** Copy what the caller filled, `what`, to `own`, which has the defaults, as far as it goes. Both begin with size.
 *  -EINVAL: it has something that is not known here. */
int api_take(void *own, size_t own_size, const void *given, const char *what, struct diag *diag);

/** Give the caller's struct of `size` bytes these defaults. */
void api_give(void *to, size_t size, const void *defaults, size_t defaults_size);

/** Defaults as a row: what the _init function of a struct does. */
#define API_INIT(type, ...) \
	API void type##_init(type *to, size_t size) \
	{ \
		api_give(to, size, &(type){.size = sizeof(type), __VA_ARGS__}, sizeof(type)); \
	}

/* ---- traces ---- */

struct xheap_trace {
	pthread_mutex_t lock; /**< of what is made when it is needed: table and names */
	unsigned references;
	xheap_callbacks callbacks;
	char *path, *session; /**< session: whose trace it is, or NULL */
	struct opened_options options;
	struct opened_trace *opened; /**< has the names, too */
	struct trace *trace;         /**< that of `opened` */
	struct heap_table *table;    /**< the same; NULL: not made yet */
	bool is_spoiled;             /**< the names, given up in their middle */
	xheap_trace_info info;
	struct {
		xheap_process *processes;
		xheap_thread *threads;
		xheap_image *images;
		xheap_heap *heaps;
		xheap_function *functions;
		xheap_gap *gaps;
		xheap_sample *samples;
		xheap_option *options;
	} lists;
};

/** Count one more handle that needs the trace. */
void api_trace_hold(struct xheap_trace *trace);

/** Count one less; free the trace after the last one. */
void api_trace_release(struct xheap_trace *trace);

/** api_run() with the trace's lock. */
int api_run_locked(struct xheap_trace *trace, xheap_error *error, int (*work)(void *context, struct diag *diag),
		   void *context);

/** Return how the trace's callbacks hear of progress. */
struct analysis_caller api_trace_caller(struct xheap_trace *trace);

/** With the lock held, in api_run(): set *out to the names, which stay the trace's. Return 0 or a negative errno. */
int api_trace_names(struct xheap_trace *trace, bool with_lines, struct heap_names **out, struct diag *diag);

/** With the lock held: return the frames of a node of the names; they hold the trace. */
xheap_frames *api_frames_new(struct xheap_trace *trace, const struct heap_names *names, uint32_t node);

/** -EBADMSG when rows of the table could not be read. */
int api_trace_check(const struct xheap_trace *trace, struct diag *diag);

#endif
