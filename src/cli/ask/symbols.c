/* SPDX-License-Identifier: MIT */
/*
 * xheap symbols: puts the names of a trace's code into it, so that it can be read where the images are not. The work is
 * shared out in parts of images; each thread has its own handles of the files. The names go into a copy of the
 * trace, which replaces the trace when it is complete.
 */
#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "base/whole_file.h"
#include "cli/ask/symbol_cache.h"
#include "cli/input.h"
#include "cli/option_parser.h"
#include "os/monotonic.h"
#include "query/symbol_roots.h"
#include "symbols/package.h"
#include "symbols/symbols.h"
#include "trace/code_rows.h"
#include "trace/reader.h"
#include "trace/reopen.h"
#include "trace/trace.h"
#include "trace/writer.h"

enum { THREADS_MAX = 64, PROGRESS_NS = 100000000, COPY_CHUNK = 1 << 24, JOB_FRAMES = 2048 };

/* Frames of one image. */
struct symbol_job {
	uint32_t image;
	bool is_first; /* of the image's jobs */
	uint32_t *frames;
	uint32_t count;
	struct found_file *found; /* one for each frame */
	bool has_symbols, is_trusted;
	struct symbol_cache cache; /* what is found in it lives in it */
};

struct found_file {
	const struct trace_function *functions;
	size_t count;
	bool is_cached;
};

struct work {
	const struct trace_dictionary *dictionary;
	struct symbol_job *jobs;
	uint32_t job_count, next; /* next: the first that nobody has taken */
	uint32_t done;            /* addresses */
	bool with_cache;
	bool is_second; /* the trace has images that had no symbols when they were searched first */
};

struct symbols_options {
	struct input input;
	uint64_t threads;
	bool is_again, without_cache;
};

/* ---- sharing out ---- */

static int job_compare(const void *a, const void *b)
{
	const struct symbol_job *left = a, *right = b;
	return (left->count < right->count) - (left->count > right->count);
}

static void job_begin(struct work *work, size_t *capacity, uint32_t image, bool is_first)
{
	if (work->job_count >= *capacity) {
		*capacity = memory_capacity(*capacity, (size_t)work->job_count + 1);
		work->jobs = memory_resize(work->jobs, *capacity, sizeof(*work->jobs));
	}
	work->jobs[work->job_count++] =
		(struct symbol_job){.image = image,
				    .is_first = is_first,
				    .frames = memory_zeroed(JOB_FRAMES, sizeof(uint32_t)),
				    .found = memory_zeroed(JOB_FRAMES, sizeof(struct found_file))};
}

/* Return which frames have symbols in the trace: none of an image without symbols, which may have some now. For the
   caller to free. */
static bool *stored_frames(struct work *work, const struct trace_dictionary *dictionary)
{
	bool *is_stored = memory_zeroed(dictionary->frame_count, sizeof(*is_stored));
	bool *is_nameless = memory_zeroed((size_t)dictionary->image_count + 1, sizeof(*is_nameless));
	for (uint32_t i = 0; i < dictionary->named_count; i++)
		if (dictionary->nameds[i].image < dictionary->image_count)
			is_nameless[dictionary->nameds[i].image] = dictionary->nameds[i].by == TRACE_NAMED_BY_NOTHING;
	for (uint32_t i = 0; i < dictionary->symbol_count; i++) {
		uint32_t frame = dictionary->symbols[i].frame, image = dictionary->frames[frame].image;
		is_stored[frame] = image >= dictionary->image_count || !is_nameless[image];
	}
	for (uint32_t i = 0; i < dictionary->image_count; i++)
		work->is_second |= is_nameless[i];
	free(is_nameless);
	return is_stored;
}

/* Jobs for the frames that have no symbols yet, of one image each. */
static void work_make(struct work *work, const struct trace_dictionary *dictionary, bool is_again)
{
	/* the one that is being filled */
	uint32_t *job_of = memory_resize(NULL, dictionary->image_count, sizeof(*job_of));
	size_t capacity = 0;
	*work = (struct work){.dictionary = dictionary};
	bool *is_stored = is_again ? memory_zeroed(dictionary->frame_count, sizeof(*is_stored))
				   : stored_frames(work, dictionary);
	memset(job_of, 0xff, dictionary->image_count * sizeof(*job_of));
	for (uint32_t i = 0; i < dictionary->frame_count; i++) {
		uint32_t image = dictionary->frames[i].image;
		if (image >= dictionary->image_count || is_stored[i])
			continue;
		if (job_of[image] == UINT32_MAX || work->jobs[job_of[image]].count == JOB_FRAMES) {
			job_begin(work, &capacity, image, job_of[image] == UINT32_MAX);
			job_of[image] = work->job_count - 1;
		}
		struct symbol_job *job = &work->jobs[job_of[image]];
		job->frames[job->count++] = i;
	}
	if (work->job_count)
		qsort(work->jobs, work->job_count, sizeof(*work->jobs), job_compare);
	free(is_stored);
	free(job_of);
}

static void work_fini(struct work *work)
{
	for (uint32_t i = 0; i < work->job_count; i++) {
		free(work->jobs[i].frames);
		free(work->jobs[i].found);
		symbol_cache_close(&work->jobs[i].cache);
	}
	free(work->jobs);
}

struct symbol_worker {
	struct work *work;
	struct symbols *symbols; /* texts of what was found live in it */
	struct arena functions;  /* and what was found */
	pthread_t thread;
};

static const char *text_or_empty(const char *text)
{
	return text ? text : "";
}

/* Read the names from the files of the image. */
static struct found_file look_up(struct symbol_worker *worker, const struct trace_image *image, uint64_t offset)
{
	const struct symbol_frame *frames;
	size_t count = symbols_resolve(worker->symbols, image->path, image->build_id, image->build_id_size, offset,
				       true, &frames);
	struct trace_function *functions = arena_new(&worker->functions, struct trace_function, count);
	for (size_t i = 0; i < count; i++) {
		const struct symbol_frame *from = &frames[i];
		bool is_mangled = from->mangled && from->function && strcmp(from->mangled, from->function) != 0;
		functions[i] = (struct trace_function){.function = text_or_empty(from->function),
						       .mangled = is_mangled ? from->mangled : "",
						       .file = text_or_empty(from->file),
						       .line = from->line,
						       .is_inlined = from->inlined};
	}
	return (struct found_file){functions, count, false};
}

static void *worker_run(void *argument)
{
	struct symbol_worker *worker = argument;
	struct work *work = worker->work;
	uint32_t at;
	while ((at = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED)) < work->job_count) {
		struct symbol_job *job = &work->jobs[at];
		const struct trace_image *image = &work->dictionary->images[job->image];
		if (work->with_cache)
			symbol_cache_open(&job->cache, image);
		uint32_t cached = 0;
		for (uint32_t i = 0; i < job->count; i++) {
			uint64_t offset = work->dictionary->frames[job->frames[i]].offset;
			struct found_file *found = &job->found[i];
			found->functions = symbol_cache_find(&job->cache, offset, &found->count);
			found->is_cached = found->functions != NULL;
			cached += found->is_cached;
			if (!found->is_cached)
				*found = look_up(worker, image, offset);
			__atomic_fetch_add(&work->done, 1, __ATOMIC_RELAXED);
		}
		/* Only images that have symbols are in the cache. */
		job->has_symbols =
			cached == job->count ||
			symbols_image_has_symbols(worker->symbols, image->path, image->build_id, image->build_id_size);
		/* Other users' files may say anything about what has their build-id. */
		job->is_trusted =
			cached < job->count &&
			symbols_image_is_trusted(worker->symbols, image->path, image->build_id, image->build_id_size);
	}
	return NULL;
}

/* A line on a terminal, until all is done. */
static void progress_show(struct work *work, uint32_t all)
{
	if (isatty(STDERR_FILENO) != 1)
		return;
	for (uint32_t done = 0; done < all;) {
		monotonic_pause(PROGRESS_NS);
		done = __atomic_load_n(&work->done, __ATOMIC_RELAXED);
		cli_progress("%s of %s addresses", text_count(done).data, text_count(all).data);
	}
	cli_progress_end();
}

static uint32_t work_count(const struct work *work)
{
	uint32_t all = 0;
	for (uint32_t i = 0; i < work->job_count; i++)
		all += work->jobs[i].count;
	return all;
}

static int work_do(struct work *work, struct symbol_worker *workers, unsigned count)
{
	assert(count > 0);
	unsigned started = 0;
	for (unsigned i = 0; i < count; i++) {
		workers[i] = (struct symbol_worker){.work = work, .symbols = symbols_new()};
		symbol_roots_add(workers[i].symbols, work->dictionary, 0);
	}
	while (started < count && thread_begin(&workers[started].thread, worker_run, &workers[started]))
		started++;
	if (!started)
		worker_run(&workers[0]);
	else
		progress_show(work, work_count(work));
	for (unsigned i = 0; i < started; i++)
		pthread_join(workers[i].thread, NULL);
	return 0;
}

/* ---- writing ---- */

/* The owner and the mode of the file that the copy stands for. */
static int keep_owner(int copy, const struct stat *of, const char *path, struct diag *diag)
{
	struct stat own;
	if (fstat(copy, &own) != 0)
		return diag_errno(diag, "cannot read %s", path);
	if ((own.st_uid != of->st_uid || own.st_gid != of->st_gid) && fchown(copy, of->st_uid, of->st_gid) != 0)
		return diag_errno(diag, "%s is another user's and would become yours; copy it first", path);
	return fchmod(copy, of->st_mode & 07777) ? diag_errno(diag, "cannot set the mode of a copy of %s", path) : 0;
}

static int copy_file(const char *from, int to, struct diag *diag)
{
	struct stat status;
	int in = open(from, O_RDONLY | O_CLOEXEC);
	if (in < 0 || fstat(in, &status) != 0)
		return diag_errno(diag, "cannot read %s", from);
	int error = keep_owner(to, &status, from, diag);
	for (ssize_t moved = 1; !error && moved > 0;) {
		moved = copy_file_range(in, NULL, to, NULL, COPY_CHUNK, 0);
		if (moved < 0)
			error = diag_errno(diag, "cannot copy %s", from);
	}
	close(in);
	return error;
}

static int trace_write(const struct work *work, const char *path, struct diag *diag)
{
	struct writer *writer;
	int error = writer_reopen(&writer, path, NULL, diag);
	if (error)
		return error;
	for (uint32_t i = 0; i < work->job_count; i++) {
		const struct symbol_job *job = &work->jobs[i];
		writer_add_named(writer, &(struct trace_named){job->image, job->has_symbols ? TRACE_NAMED_BY_SYMBOLS
											    : TRACE_NAMED_BY_NOTHING});
		for (uint32_t k = 0; k < job->count; k++)
			writer_add_symbol(writer, job->frames[k], job->found[k].functions,
					  (uint32_t)job->found[k].count);
	}
	error = writer_flush(writer, diag);
	int end_error = writer_close(writer, NULL, diag);
	return error ? error : end_error;
}

/* For the next trace of these images. */
static void cache_write(const struct work *work)
{
	for (uint32_t i = 0; i < work->job_count; i++) {
		const struct symbol_job *job = &work->jobs[i];
		struct symbol_cache_row *rows = memory_zeroed(job->count, sizeof(*rows));
		size_t count = 0;
		for (uint32_t k = 0; k < job->count && job->has_symbols && job->is_trusted; k++)
			if (!job->found[k].is_cached)
				rows[count++] = (struct symbol_cache_row){
					work->dictionary->frames[job->frames[k]].offset, job->found[k].functions,
					(uint32_t)job->found[k].count};
		if (count)
			symbol_cache_add(&work->dictionary->images[job->image], rows, count);
		free(rows);
	}
}

/* A copy with the symbols takes the trace's place: at any moment there is a whole one. */
static int trace_replace(const struct work *work, const char *path)
{
	struct diag diag = {""};
	struct whole_file file;
	if (whole_file_open_as_is(&file, path, 0600, &diag))
		return cli_fail("%s", diag.text);
	int error = copy_file(path, file.fd, &diag);
	error = error ? error : trace_write(work, file.temporary, &diag);
	if (error)
		whole_file_abandon(&file);
	else
		error = whole_file_commit(&file, &diag);
	return error ? cli_fail("%s", diag.text) : CLI_OK;
}

/* ---- telling ---- */

static void missing_print(const struct trace_image *image)
{
	const char *path = image->path;
	char package[PACKAGE_NAME_BYTES];
	symbols_packages(&path, 1, &package);
	fprintf(stderr, "xheap: no symbols for %s, build-id ", text_shown(image->path));
	for (uint32_t i = 0; i < image->build_id_size; i++)
		fprintf(stderr, "%02x", image->build_id[i]);
	if (!image->build_id_size)
		fputs("none", stderr);
	if (package[0])
		fprintf(stderr, ": install debug symbols (-dbgsym, -dbg) of %s", package);
	putc('\n', stderr);
}

static void summary_print(const struct work *work, const char *path, int64_t time_ns)
{
	uint64_t all = 0, named = 0, with_line = 0, missing = 0;
	for (uint32_t i = 0; i < work->job_count; i++) {
		const struct symbol_job *job = &work->jobs[i];
		for (uint32_t k = 0; k < job->count; k++, all++) {
			named += job->found[k].count && *job->found[k].functions[0].function;
			with_line += job->found[k].count && job->found[k].functions[0].line;
		}
		if (job->has_symbols || !job->is_first)
			continue;
		missing_print(&work->dictionary->images[job->image]);
		missing++;
	}
	if (missing && !getenv("DEBUGINFOD_URLS"))
		fputs("xheap: or set DEBUGINFOD_URLS, as https://debuginfod.debian.net, and run this again with "
		      "-again\n",
		      stderr);
	cli_say("%s: %s addresses, %s with a function, %s with a line, in %s", path, text_count(all).data,
		text_count(named).data, text_count(with_line).data, text_duration(time_ns).data);
}

/* ---- the command ---- */

static int set_path(void *context, char *word)
{
	return input_take_path(&((struct symbols_options *)context)->input, word);
}

/* Whether any of the images has symbols. */
static bool has_found(const struct work *work)
{
	bool has_symbols = false;
	for (uint32_t i = 0; i < work->job_count; i++)
		has_symbols |= work->jobs[i].has_symbols;
	return has_symbols;
}

static int symbols_add(const struct symbols_options *options, const char *path,
		       const struct trace_dictionary *dictionary)
{
	struct work work;
	struct symbol_worker workers[THREADS_MAX];
	int64_t began_ns = (int64_t)monotonic_now_ns();
	if (!dictionary->is_complete)
		return cli_fail("%s is not complete: %s; see xheap recover", path, dictionary->cut_reason);
	work_make(&work, dictionary, options->is_again);
	work.with_cache = !options->is_again && !options->without_cache;
	unsigned count = options->threads < work.job_count ? (unsigned)options->threads : work.job_count;
	int status = CLI_OK;
	if (!work.job_count) {
		cli_say("%s has its symbols already; -again finds them anew", path);
	} else {
		work_do(&work, workers, count);
		status = work.is_second && !has_found(&work) ? CLI_OK : trace_replace(&work, path);
		if (status == CLI_OK)
			summary_print(&work, path, (int64_t)monotonic_now_ns() - began_ns);
		if (status == CLI_OK && work.with_cache)
			cache_write(&work);
		for (unsigned i = 0; i < count; i++) {
			symbols_free(workers[i].symbols);
			arena_fini(&workers[i].functions);
		}
	}
	work_fini(&work);
	return status;
}

#define AT(member) OPTION_AT(struct symbols_options, member)

static const struct option symbols_rows[] = {
	{"threads", .type = VALUE_NUMBER, AT(threads), .value = "N", .least = 1, .most = THREADS_MAX,
	 .initial_help = "one for each processor", .help = "work with N threads"},
	{"again", .type = VALUE_ON, AT(is_again),
	 .help = "find names anew that are in the trace or in the cache already"},
	{"noCache", .type = VALUE_ON, AT(without_cache),
	 .help = "do not use names that were found before, in ~/.cache/xheap/symbols"},
	{.type = VALUE_END},
};
static const struct option_group symbols_groups[] = {{symbols_rows, 0, false}, {NULL, 0, false}};
static const struct option_grammar grammar = {.command = "symbols", .groups = symbols_groups, .dashes = "-"};

static int symbols_run(int argc, char **argv)
{
	struct symbols_options options = {.threads = thread_processors(THREADS_MAX)};
	struct diag diag = {""};
	struct trace *trace;
	if (options_parse(&grammar, argc, argv, &options, set_path, NULL))
		return CLI_FAILED;
	char *path = cli_trace_path(options.input.path);
	if (!path)
		return CLI_FAILED;
	int status = trace_open(&trace, path, &diag) ? cli_fail("%s", diag.text) : CLI_OK;
	if (status == CLI_OK) {
		status = symbols_add(&options, path, trace_dictionary(trace));
		trace_close(trace);
	}
	free(path);
	return status;
}

const struct command command_symbols = {
	.name = "symbols",
	.usage = "[FILE] [OPTIONS]",
	.summary = "store the names of functions in a trace, for reports on another machine",
	.run = symbols_run,
	.options = &grammar,
	.help = "The functions, inlined functions, files and lines of all frames are stored in the trace. Reports "
		"need\n"
		"neither the images nor their debug information then. Images without symbols are named, with the "
		"packages\n"
		"to install.\n"
		"Without FILE: the newest xheap.*.xht here.\n\n"
		"Example:\n  xheap symbols xheap.jq.4711.xht\n",
};
