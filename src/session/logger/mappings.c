/* SPDX-License-Identifier: MIT */
/*
 * First the mappings, from /proc/PID/maps; then their resident pages, in the order of addresses:
 *
 *     lines of maps -> pieces (a mapping, cut where the recorder's memory or a thread's stack ends)
 *     runs of pages -> resident bytes of each piece -> sums by kind, and the largest joined pieces
 *                   -> the runs where blocks may lie
 *
 * A page that is in no piece was mapped in between; it is left out.
 */
#include "session/logger/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/order.h"
#include "os/pages.h"
#include "os/proc.h"
#include "trace/memory_rows.h"

enum {
	PIECES_MAX = 1 << 19,
	LINES_BYTES = 1 << 16,
	LINE_MAX = 4400,     /* addresses and a path */
	FILES_MAX = 8,       /* of the largest mappings, those with files */
	THREAD_BYTES = 2304, /* above the base of a thread's storage: what the C library keeps there */
	PAGE = TRACE_PAGE_BYTES,
	KIND_NONE = UINT8_MAX /* no resident memory of the process: devices, and pages of the kernel */
};
/* Pieces with less between them are read together. */
#define GAP_MAX (UINT64_C(1) << 20)

/* Part of a mapping. */
struct mapping_piece {
	uint64_t low, high, resident_bytes;
	uint32_t name; /* place in the texts */
	uint8_t kind;
};

struct reading_mappings {
	const struct mappings_request *question;
	struct mapping_piece *pieces;
	uint32_t piece_count, piece_capacity;
	char *texts;
	uint32_t text_size, text_capacity;
	uint64_t mapping_count;
	/* stack pointers of threads that sleep, sorted */
	uint64_t pointers[MAPPINGS_THREADS_MAX];
	uint32_t pointer_count;
	uint64_t guard_end; /* of the last mapping, if nobody may access it */
	/* Lines come in the order of addresses: which span, base, pointer and piece are next. */
	uint32_t span_at, base_at, pointer_at, at;
	bool is_short; /* of memory, or there are too many pieces */
	struct trace_pages pages;
	struct trace_page_run *runs;
	uint32_t run_capacity, run_piece; /* run_piece: of the last run */
	uint64_t run_end;                 /* of the last run */
};

/* ---- the kind of a mapping ---- */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Rows are tried in their order. The kernel counts no page of devices, and none of huge pages of its own pool. */
static const struct {
	const char *begin;
	uint8_t kind;
} path_kinds[] = {
	{"[heap]", TRACE_MAPPING_BREAK},
	{"[stack", TRACE_MAPPING_STACKS},
	{"[anon:", TRACE_MAPPING_ANONYMOUS},
	{"[anon_shmem:", TRACE_MAPPING_SHARED},
	{"[vvar", KIND_NONE},

	{"[", TRACE_MAPPING_OTHER},
	{"/memfd:", TRACE_MAPPING_SHARED},
	{"/SYSV", TRACE_MAPPING_SHARED},
	{"/dev/shm/", TRACE_MAPPING_SHARED},
	{"/dev/zero", TRACE_MAPPING_SHARED},
	{"/dev/", KIND_NONE},
	{"/anon_hugepage", KIND_NONE},
	{"/", TRACE_MAPPING_FILES},
	{"anon_inode:", KIND_NONE},
	{"socket:", KIND_NONE},
};

static uint8_t kind_of(const char *permissions, const char *path)
{
	uint8_t kind = TRACE_MAPPING_ANONYMOUS;
	for (size_t i = 0; *path && i < sizeof(path_kinds) / sizeof(path_kinds[0]); i++)
		if (begins(path, path_kinds[i].begin)) {
			kind = path_kinds[i].kind;
			break;
		}
	return kind == TRACE_MAPPING_ANONYMOUS && permissions[2] == 'x' ? TRACE_MAPPING_CODE : kind;
}

/* ---- pieces ---- */

/* Return the place of a name; neighbours often have the same one. */
static uint32_t name_add(struct reading_mappings *reading, uint8_t kind, const char *path)
{
	const struct mapping_piece *last = reading->piece_count ? &reading->pieces[reading->piece_count - 1] : NULL;
	bool has_name = kind == TRACE_MAPPING_FILES || kind == TRACE_MAPPING_SHARED || kind == TRACE_MAPPING_OTHER ||
			begins(path, "[anon:");
	size_t size = strlen(path) + 1;
	if (!has_name || size == 1)
		return 0;
	if (last && strcmp(reading->texts + last->name, path) == 0)
		return last->name;
	if (!grow_to(reading->texts, reading->text_size + size, reading->text_capacity)) {
		reading->is_short = true;
		return 0;
	}
	memcpy(reading->texts + reading->text_size, path, size);
	reading->text_size += (uint32_t)size;
	return reading->text_size - (uint32_t)size;
}

static void piece_add(struct reading_mappings *reading, uint64_t low, uint64_t high, uint8_t kind, const char *path)
{
	if (low >= high)
		return;
	uint32_t name = name_add(reading, kind, path);
	if (reading->piece_count == PIECES_MAX ||
	    !grow_by_one(reading->pieces, reading->piece_count, reading->piece_capacity)) {
		reading->is_short = true;
		return;
	}
	reading->pieces[reading->piece_count++] =
		(struct mapping_piece){.low = low, .high = high, .name = name, .kind = kind};
}

/* Return the next of sorted addresses that is not below `low`, if it is below `high`; 0: there is none. */
static uint64_t address_next(const uint64_t *addresses, uint32_t count, uint32_t *at, uint64_t low, uint64_t high)
{
	while (*at < count && addresses[*at] < low)
		++*at;
	return *at < count && addresses[*at] < high ? addresses[*at] : 0;
}

/*
 * Add memory without a file. Stacks in it end above the bases of their threads' storage, and reach down to the
 * mapping's begin, since a guard page lies there, or to the next stack. Of a thread whose base is not known, since it
 * was not recorded yet, the whole mapping is a stack if a guard lies below it: a coroutine's stack may lie in a heap.
 */
static void anonymous_add(struct reading_mappings *reading, uint64_t low, uint64_t high, uint8_t kind, const char *path)
{
	const struct mappings_request *question = reading->question;
	bool is_guarded = reading->guard_end == low && low;
	uint64_t base;
	while (kind == TRACE_MAPPING_ANONYMOUS &&
	       (base = address_next(question->thread_bases, question->thread_count, &reading->base_at, low, high))) {
		uint64_t end = (base + THREAD_BYTES + PAGE - 1) / PAGE * PAGE;
		end = end < high ? end : high;
		piece_add(reading, low, end, TRACE_MAPPING_STACKS, "");
		low = end;
		is_guarded = false;
	}
	if (kind == TRACE_MAPPING_ANONYMOUS && is_guarded &&
	    address_next(reading->pointers, reading->pointer_count, &reading->pointer_at, low, high))
		kind = TRACE_MAPPING_STACKS;
	piece_add(reading, low, high, kind, path);
}

/* Add a mapping, without the recorder's memory in it, which the kernel may have joined with the program's. */
static void mapping_add(struct reading_mappings *reading, uint64_t low, uint64_t high, uint8_t kind, const char *path)
{
	const struct mappings_request *question = reading->question;
	for (; reading->span_at < question->recorder_count; reading->span_at++) {
		const struct inject_span *span = &question->recorder[reading->span_at];
		uint64_t from = span->low > low ? span->low : low, to = span->high < high ? span->high : high;
		if (span->low >= high)
			break;
		if (from >= to)
			continue;
		anonymous_add(reading, low, from, kind, path);
		piece_add(reading, from, to, TRACE_MAPPING_RECORDER, "");
		low = to;
		/* It may go on in the next mapping. */
		if (span->high > high)
			break;
	}
	anonymous_add(reading, low, high, kind, path);
}

static void line_take(struct reading_mappings *reading, const char *line)
{
	uint64_t low, high;
	char permissions[8] = "";
	int path_at = 0;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %n", &low, &high, permissions, &path_at) != 3 ||
	    strlen(permissions) < 4 || !path_at)
		return;
	reading->mapping_count++;
	/* The page of the kernel's own addresses has no pages to read. */
	if (low > INT64_MAX)
		return;
	mapping_add(reading, low, high, kind_of(permissions, line + path_at), line + path_at);
	reading->guard_end = begins(permissions, "---") ? high : 0;
}

/* Read all lines. The kernel gives whole lines, and not all at once. */
static int lines_read(struct reading_mappings *reading)
{
	char *text = malloc(LINES_BYTES + LINE_MAX + 1);
	size_t kept = 0;
	ssize_t size = -1;
	int fd = proc_open(reading->question->pid, "maps", O_RDONLY), error = fd < 0 ? -errno : text ? 0 : -ENOMEM;
	while (!error && (size = read(fd, text + kept, LINES_BYTES)) > 0) {
		char *line = text, *end;
		text[kept + (size_t)size] = 0;
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = 0;
			line_take(reading, line);
		}
		kept = strlen(line);
		/* A longer line is no line of that file. */
		kept = kept > LINE_MAX ? 0 : kept;
		memmove(text, line, kept);
	}
	error = !error && size < 0 ? -errno : error;
	if (fd >= 0)
		close(fd);
	free(text);
	return error;
}

/* ---- pages ---- */

static bool may_have_blocks(uint8_t kind)
{
	return kind == TRACE_MAPPING_BREAK || kind == TRACE_MAPPING_ANONYMOUS || kind == TRACE_MAPPING_CODE ||
	       kind == TRACE_MAPPING_SHARED;
}

/* Add resident pages of the piece at hand, to the last run if they go on there. */
static void run_add(struct reading_mappings *reading, uint64_t low, uint64_t high)
{
	struct trace_pages *pages = &reading->pages;
	/* A mapping that grew while they were read is there twice: its pages count once. */
	low = low > reading->run_end ? low : reading->run_end;
	if (low >= high)
		return;
	bool is_next = pages->spread && reading->run_piece == reading->at;
	if (is_next && reading->run_end == low && !pages->left_out_bytes) {
		reading->runs[pages->spread - 1].count += (high - low) / PAGE;
	} else if (pages->spread < MAPPINGS_RUNS_MAX && !pages->left_out_bytes &&
		   grow_by_one(reading->runs, pages->spread, reading->run_capacity)) {
		reading->runs[pages->spread++] = (struct trace_page_run){.skipped = (low - reading->run_end) / PAGE,
									 .count = (high - low) / PAGE,
									 .kind = reading->pieces[reading->at].kind,
									 .is_next = is_next};
	} else {
		pages->left_out_bytes += high - low;
		return;
	}
	reading->run_piece = reading->at;
	reading->run_end = high;
}

static void run_take(void *cookie, const struct pages_run *run)
{
	struct reading_mappings *reading = cookie;
	while (reading->at < reading->piece_count) {
		struct mapping_piece *piece = &reading->pieces[reading->at];
		uint64_t from = run->low > piece->low ? run->low : piece->low,
			 to = run->high < piece->high ? run->high : piece->high;
		if (from < to && piece->kind != KIND_NONE) {
			uint64_t bytes = to - from;
			reading->pages.swapped_bytes += run->is_swapped ? bytes : 0;
			reading->pages.huge_bytes += run->is_huge ? bytes : 0;
			piece->resident_bytes += run->is_swapped ? 0 : bytes;
			if (!run->is_swapped && may_have_blocks(piece->kind))
				run_add(reading, from, to);
		}
		if (run->high < piece->high)
			return;
		reading->at++;
	}
}

/* Read the pages of pieces that lie near each other together: a process may have tens of thousands of them. */
static int pages_take(struct reading_mappings *reading)
{
	struct pages pages;
	int error = pages_open(&pages, reading->question->pid);
	for (uint32_t i = 0, next; i < reading->piece_count && !error; i = next) {
		for (next = i + 1; next < reading->piece_count &&
				   reading->pieces[next].low - reading->pieces[next - 1].high < GAP_MAX;)
			next++;
		reading->at = i;
		error = pages_each(&pages, reading->pieces[i].low, reading->pieces[next - 1].high, run_take, reading);
	}
	if (pages.has_no_scan)
		reading->pages.huge_bytes = TRACE_HUGE_UNKNOWN;
	pages_close(&pages);
	reading->is_short |= error == -ETIME;
	return error == -ETIME ? 0 : error;
}

/* ---- the answer ---- */

static void sums_make(const struct reading_mappings *reading, struct trace_resident *row)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < reading->piece_count; i++)
		if (reading->pieces[i].kind != KIND_NONE) {
			row->bytes[reading->pieces[i].kind] += reading->pieces[i].resident_bytes;
			sum += reading->pieces[i].resident_bytes;
		}
	row->mapping_count = reading->mapping_count;
	if (reading->is_short && reading->question->resident_bytes > sum)
		row->bytes[TRACE_MAPPING_UNREAD] = reading->question->resident_bytes - sum;
}

/* Join neighbours of one kind and name. Mappings of one file may be apart by bytes that are in none. */
static void pieces_join(struct reading_mappings *reading)
{
	uint32_t kept = 0;
	for (uint32_t i = 1; i < reading->piece_count; i++) {
		struct mapping_piece *last = &reading->pieces[kept], *next = &reading->pieces[i];
		bool is_near = next->low == last->high || (next->kind == TRACE_MAPPING_FILES && next->name);
		if (is_near && next->kind == last->kind && next->name == last->name) {
			last->high = next->high;
			last->resident_bytes += next->resident_bytes;
		} else {
			reading->pieces[++kept] = *next;
		}
	}
	reading->piece_count = reading->piece_count ? kept + 1 : 0;
}

static int piece_compare(const void *a, const void *b)
{
	const struct mapping_piece *left = a, *right = b;
	if (left->resident_bytes != right->resident_bytes)
		return left->resident_bytes < right->resident_bytes ? 1 : -1;
	return (left->low > right->low) - (left->low < right->low);
}

COMPARE_BY(part_compare, struct trace_resident_part, base)

/* Take the largest pieces in the order of addresses: those where blocks may lie, and some files. */
static void parts_take(struct reading_mappings *reading, struct mappings_answer *answer)
{
	uint32_t files = 0, count = 0;
	qsort(reading->pieces, reading->piece_count, sizeof(*reading->pieces), piece_compare);
	for (uint32_t i = 0; i < reading->piece_count && count < MAPPINGS_PARTS_MAX; i++) {
		const struct mapping_piece *piece = &reading->pieces[i];
		bool is_file = piece->kind == TRACE_MAPPING_FILES;
		bool is_wanted = is_file ? files < FILES_MAX : may_have_blocks(piece->kind);
		if (!is_wanted || !piece->resident_bytes)
			continue;
		files += is_file;
		answer->parts[count++] = (struct trace_resident_part){.kind = piece->kind,
								      .base = piece->low,
								      .end = piece->high,
								      .resident_bytes = piece->resident_bytes,
								      .name = reading->texts + piece->name};
	}
	qsort(answer->parts, count, sizeof(*answer->parts), part_compare);
	answer->row.spread = count;
}

void mappings_read(const struct mappings_request *question, struct mappings_answer *answer)
{
	struct reading_mappings reading = {.question = question};
	if (grow_to(reading.texts, 0, reading.text_capacity))
		reading.texts[reading.text_size++] = 0;
	reading.pointer_count = proc_stack_pointers(question->pid, reading.pointers, MAPPINGS_THREADS_MAX);
	qsort(reading.pointers, reading.pointer_count, sizeof(*reading.pointers), compare_u64);
	struct proc_life before, after;
	bool is_there = proc_read_life(question->pid, &before);
	answer->error = !is_there ? -ESRCH : reading.text_size ? lines_read(&reading) : -ENOMEM;
	if (!answer->error)
		answer->error = pages_take(&reading);
	/* The memory of a process goes when it ends or executes another image, page by page. */
	if (!answer->error && !(proc_read_life(question->pid, &after) && before.start_time == after.start_time &&
				before.stack_start == after.stack_start && !proc_has_ended(question->pid)))
		answer->error = -ESRCH;
	if (!answer->error) {
		sums_make(&reading, &answer->row);
		pieces_join(&reading);
		parts_take(&reading, answer);
		answer->texts = reading.texts;
		answer->pages = reading.pages;
		answer->runs = reading.runs;
		reading.texts = NULL;
		reading.runs = NULL;
	}
	free(reading.runs);
	free(reading.texts);
	free(reading.pieces);
}

void mappings_answer_fini(struct mappings_answer *answer)
{
	free(answer->texts);
	free(answer->runs);
	*answer = (struct mappings_answer){.error = 0};
}
