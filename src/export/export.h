/* SPDX-License-Identifier: MIT */
/**
 * The formats that reports are written in. A format is a file with its writer, and a row here: -format, its checks and
 * the dispatch follow.
 */
#ifndef XHEAP_EXPORT_H
#define XHEAP_EXPORT_H

#include "export/report.h"

/** What a format is like. */
enum export_flag {
	EXPORT_ONE_ACTION = 1 << 0, /**< it holds the rows of one action */
	/** it holds all stacks, whole and in its own order: the action is stacks, and no rows are made */
	EXPORT_ALL_STACKS = 1 << 1,
	EXPORT_CAVEATS = 1 << 2, /**< it says what keeps the numbers from being exact, and an answer from being empty */
	EXPORT_LINES = 1 << 3,   /**< it has lines of sources: frames are by line */
	EXPORT_BINARY = 1 << 4,  /**< no text: never for a terminal */
	EXPORT_EACH_BLOCK = 1 << 5, /**< it has the blocks one by one */
	EXPORT_SUMS_MANY = 1 << 6,  /**< above EXPORT_BLOCKS_MAX blocks it has sums of them */
	EXPORT_GZIP = 1 << 7,       /**< it is a file of gzip by itself (export/compression.h) */
	EXPORT_OF_END = 1 << 8      /**< it has what is not freed, unless another moment or key is asked for */
};

enum { EXPORT_BLOCKS_MAX = 2000000 };

/** X(id, name, flags, writer) */
#define REPORT_FORMATS(X) \
	X(TEXT, "text", EXPORT_CAVEATS, report_text) \
	X(CSV, "csv", EXPORT_ONE_ACTION, report_csv) \
	X(JSON, "json", EXPORT_CAVEATS, report_json) \
	X(FOLDED, "folded", EXPORT_ALL_STACKS | EXPORT_OF_END, report_collapsed)

/** The formats of other tools, which are over one source: X(id, name, flags, writer, the tool, what it cannot say) */
#define TOOL_FORMATS(X) \
	X(PPROF, "pprof", EXPORT_ALL_STACKS | EXPORT_LINES | EXPORT_BINARY | EXPORT_GZIP | EXPORT_OF_END, \
	  export_pprof, "pprof and what reads its profiles: Pyroscope, Parca", "peaks, lifetimes or times") \
	X(OTLP, "otlp", EXPORT_ALL_STACKS | EXPORT_LINES | EXPORT_BINARY | EXPORT_OF_END, export_otlp, \
	  "a Collector of OpenTelemetry: POST it to /v1development/profiles", "peaks, lifetimes or times") \
	X(SPEEDSCOPE, "speedscope", EXPORT_ALL_STACKS, export_speedscope, "speedscope", "lifetimes or times") \
	X(CALLGRIND, "callgrind", EXPORT_ALL_STACKS | EXPORT_LINES, export_callgrind, \
	  "KCachegrind, QCachegrind, callgrind_annotate", "lifetimes or times; its calls are allocations") \
	X(FIREFOX, "firefox", EXPORT_ALL_STACKS | EXPORT_LINES | EXPORT_EACH_BLOCK | EXPORT_SUMS_MANY, export_firefox, \
	  "profiler.firefox.com", "peaks of stacks") \
	X(HEAPTRACK, "heaptrack", EXPORT_ALL_STACKS | EXPORT_LINES | EXPORT_EACH_BLOCK, export_heaptrack, \
	  "heaptrack_gui, heaptrack_print", "threads, addresses or resident memory") \
	X(DHAT, "dhat", EXPORT_ALL_STACKS | EXPORT_LINES | EXPORT_EACH_BLOCK, export_dhat, "dh_view.html of Valgrind", \
	  "times of blocks or accesses to them")

enum report_format {
#define X(id, ...) REPORT_##id,
	REPORT_FORMATS(X) TOOL_FORMATS(X)
#undef X
		REPORT_FORMAT_COUNT
};

/** The writer of each format. The sink has the error, if there is one. */
#define X(id, name, flags, writer, ...) void writer(const struct report *report, struct sink *out);
REPORT_FORMATS(X)
TOOL_FORMATS(X)
#undef X

/** Write a push for ClickHouse (export/clickhouse.h). It is of no use as a file. */
void export_clickhouse(const struct report *report, struct sink *out);

/** The formats, by enum report_format. */
extern const struct export_format {
	const char *name; /**< as a value of -format */
	unsigned flags;   /**< of enum export_flag */
	void (*write)(const struct report *report, struct sink *out);
	const char *tool;  /**< what opens it; NULL: a format of reports */
	const char *lacks; /**< what of a trace it cannot say */
} export_formats[REPORT_FORMAT_COUNT];

/** Make what the format needs: the rows of the parts (report_make()), or the names of all stacks. End the report with
    report_fini(). Afterwards all files are known that names are read from. */
void export_prepare(struct report *report, enum report_format format, uint64_t top);

#endif
