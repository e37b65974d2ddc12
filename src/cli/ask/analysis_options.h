/* SPDX-License-Identifier: MIT */
/** How commands ask (src/analysis): the option -noIndex; notes and reasons become messages. */
#ifndef XHEAP_CLI_ANALYSIS_OPTIONS_H
#define XHEAP_CLI_ANALYSIS_OPTIONS_H

#include "analysis/analysis.h"
#include "base/option.h"

/** The row -noIndex, for every command that reads the table of a trace: a group with offset 0. */
extern const struct option analysis_rows[];

/** Announce no new index on standard error: the command writes for a program. */
void asking_be_silent(void);

/** Return who asks: notes are printed, progress is shown on a terminal. */
struct analysis_caller asking_caller(void);

/** As the progress of a report: show on a terminal how much of the answer is written. */
void asking_show_writing(uint64_t done, uint64_t all);

/** Return how the command opens traces. */
struct opened_options asking_opened_options(void);

/** Return a request about one trace, a window of it, or several. Notes are printed. */
struct analysis_request asking_request(const struct window_word *words, unsigned count);

/** Print why a question failed, unless notes have said it. Return CLI_NO if nothing matches what is required, else
    CLI_FAILED; `error` if it is an exit status, which is above 0. */
int asking_fail(int error, const struct diag *diag);

/** Open the traces of a request. CLI_OK, or CLI_FAILED after a message. */
int asking_open(struct analysis *analysis, const struct analysis_request *request);

/** Return the first trace of the request that is a sample; NULL: none is. */
const struct opened_trace *asking_sample(const struct analysis *analysis);

/** Have Python's objects count where they are blocks and nothing else is asked: the line that needed an arena has made
    few of the objects in it. With filters, what remains of arenas is not known. Return whether they count. */
bool asking_count_objects(struct filter_request *asked, const struct heap_table *table);

/** Refuse to look for innermost blocks in a sample. CLI_OK, or CLI_FAILED after a message. */
int asking_check_innermost(const struct analysis *analysis);

/** As analysis_run(). CLI_OK, or another exit status after messages. */
int asking_run(struct analysis *analysis, int (*make)(void *context, struct diag *diag), void (*undo)(void *context),
	       void *context);

/** Print which patterns of an option, named with its dash, match no frame of the names. CLI_OK, or CLI_NO if none of
    them does. */
int asking_check_patterns(const struct heap_patterns *patterns, const char *option, struct heap_names *names);

/** Refuse to write the output over a trace, or an index of it. Return 0, or a negative errno with the reason in
    `diag`. */
int asking_check_output(const char *output, const char *trace_path, struct diag *diag);

/** Open a trace. CLI_OK and the caller's *opened, or CLI_FAILED after a message. */
int asking_open_trace(struct opened_trace **opened, const char *path);

/** How an answer is printed. */
struct answer_form {
	bool wants_pager; /**< it is for reading */
	bool is_gzip;     /**< it is a file of gzip by itself */
};

/** Print an answer to the file `output`, compressed if its name says so (export/compression.h), or to standard output
    if it is NULL: write(context, out, is_colored). The files that names were read from may not be written. CLI_OK, or
    CLI_FAILED after a message. */
int asking_print(const struct analysis *analysis, const char *output, struct answer_form form,
		 void (*write)(void *context, struct sink *out, bool is_colored), void *context);

/** The answer of a command about one trace. `context` is the argument of its functions. */
struct cli_answer {
	void (*settle)(void *context); /**< the trace is open, and the question may depend on it; NULL: it does not */
	int (*make)(void *context, struct diag *diag); /**< as of analysis_run() */
	void (*undo)(void *context);
	void (*write)(void *context, struct sink *out);
	int (*judge)(void *context); /**< called when it is printed; returns an exit status. NULL: CLI_OK */
	void *context;
	const char *output; /**< a file; NULL: standard output */
	bool is_text;       /**< it is for reading */
};

/** Open the request's trace and make the answer. CLI_OK with an answer to undo, or another exit status after messages.
    analysis_close() *analysis in any case. */
int asking_make(struct analysis *analysis, const struct analysis_request *request, const struct cli_answer *answer);

/** Print an answer that asking_make() has made. Return its exit status, or another one after messages. */
int asking_finish(struct analysis *analysis, const struct cli_answer *answer);

/** Make the answer, print and undo it, and close *analysis. Return the exit status of the answer, or another one after
    messages. */
int asking_show(struct analysis *analysis, const struct analysis_request *request, const struct cli_answer *answer);

/** Set *table to the table of an opened trace, which keeps it. CLI_OK, or CLI_FAILED after a message. */
int asking_opened_table(struct opened_trace *opened, struct heap_table **table);

#endif
