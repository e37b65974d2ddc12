/* SPDX-License-Identifier: MIT */
#include "push/push_profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "action/actions/action_table.h"
#include "analysis/analysis.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "os/cgroups.h"
#include "push/push_context.h"
#include "push/push_past.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { NS_OF_SECOND = 1000000000, FILE_BYTES = 1 << 16, HOST_BYTES = 256, NAME_PART_BYTES = 64 };
static const char host_key[] = "host.name";

/* ---- what it is of ---- */

/* The process that speaks for the session: of the first program, the first one that lives, else the last that did. So
   after a restart it is the new one. NULL: none was recorded. */
static const struct trace_process *process_of(const struct trace_dictionary *dictionary)
{
	const struct trace_process *found = NULL;
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		const struct trace_process *process = &dictionary->processes[i];
		if (trace_process_is_untraced(process) || !process->image || !*process->image ||
		    (found && strcmp(process->image, found->image) != 0))
			continue;
		found = process;
		if (process->end == TRACE_END_OPEN)
			break;
	}
	return found;
}

/* The file of its program. Another version may have the same path; what was forked has the files of its parent. */
static const struct trace_image *program_of(const struct trace_dictionary *dictionary,
					    const struct trace_process *process)
{
	const struct trace_image *found = NULL;
	for (uint32_t i = 0; i < dictionary->image_count; i++)
		if (!strcmp(dictionary->images[i].path, process->image))
			found = &dictionary->images[i];
	for (uint32_t i = 0; i < dictionary->mapping_count; i++) {
		const struct trace_mapping *mapping = &dictionary->mappings[i];
		if (mapping->process == process - dictionary->processes && mapping->image < dictionary->image_count &&
		    !strcmp(dictionary->images[mapping->image].path, process->image))
			found = &dictionary->images[mapping->image];
	}
	return found;
}

/* Keep what the process has said now; what it said before, if it says nothing and is the same one. */
static void told_keep(struct push_labels *kept, struct push_labels *told, bool is_other)
{
	if (told->count || is_other) {
		push_labels_fini(kept);
		*kept = *told;
	} else {
		push_labels_fini(told);
	}
}

/* Ask the process what it is. Once it has ended it cannot be asked, and is still the same. */
static void process_ask(struct push_maker *maker, const struct trace_process *process)
{
	struct push_labels environment = {.count = 0}, context = {.count = 0};
	const bool is_other = maker->told_pid != process->pid;
	if (process->end == TRACE_END_OPEN) {
		push_context_add_environment(&environment, (pid_t)process->pid);
		push_context_add(&context, (pid_t)process->pid);
	}
	told_keep(&maker->environment, &environment, is_other);
	told_keep(&maker->context, &context, is_other);
	maker->told_pid = process->pid;
}

static void labels_add_all(struct push_labels *labels, const struct push_labels *more)
{
	for (size_t i = 0; i < more->count; i++)
		push_labels_add(labels, more->items[i].key, more->items[i].value);
}

static void labels_add_process(struct push_labels *labels, const struct trace_dictionary *dictionary,
			       const struct trace_process *process)
{
	push_labels_add(labels, "service.name", text_shown(text_file_name(process->image)));
	const struct trace_image *program = program_of(dictionary, process);
	char *digits = program ? export_build_id(program) : NULL;
	push_labels_add(labels, "service.version", digits ? digits : "");
	free(digits);
	char *cgroups = process->end == TRACE_END_OPEN ? cgroups_of((pid_t)process->pid) : NULL;
	if (cgroups)
		push_labels_add_container(labels, cgroups);
	free(cgroups);
}

static void labels_make(struct push_labels *labels, struct push_maker *maker,
			const struct trace_dictionary *dictionary)
{
	const struct trace_process *process = process_of(dictionary);
	char host[HOST_BYTES] = "", instance[2 * HOST_BYTES];
	const char *trace_host = dictionary->host ? dictionary->host : "";
	labels_add_all(labels, maker->labels);
	/* The command has said what is wrong with it. */
	struct diag diag = {""};
	if (!maker->loaded)
		push_labels_add_environment(labels, &diag);
	if (!maker->loaded && process)
		process_ask(maker, process);
	labels_add_all(labels, &maker->environment);
	if (maker->loaded)
		snprintf(host, sizeof(host), "%.*s", (int)strcspn(trace_host, " "), trace_host);
	else
		gethostname(host, sizeof(host) - 1);
	snprintf(instance, sizeof(instance), "%s/%s", host, maker->session);
	push_labels_add(labels, host_key, host);
	push_labels_add(labels, "service.instance.id", instance);
	labels_add_all(labels, &maker->context);
	if (process)
		labels_add_process(labels, dictionary, process);
}

static void label_number(struct push_labels *labels, const char *key, int64_t number)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRId64, number);
	push_labels_add(labels, key, text);
}

/* A server keeps profiles by session and time; a file has to say both itself. So a copy is known as one, and so is a
   session that began anew under the same name. */
static void labels_add_push(struct push_labels *labels, const struct push_maker *maker, int64_t start_ns,
			    int64_t pushed_ns)
{
	label_number(labels, PUSH_LABEL_START, start_ns);
	label_number(labels, PUSH_LABEL_TIME, pushed_ns);
	label_number(labels, PUSH_LABEL_NUMBER, (int64_t)maker->queue->counts.pushed);
}

/* ---- one profile ---- */

struct profile {
	struct push_maker *maker;
	struct analysis analysis;
	struct report report;
	struct report_part part;
	struct push_origin origin;
	struct push_past_key key;
	char *directory;  /* that the place is; NULL: it is none */
	const char *made; /* path of the file that it becomes, from the queue on */
	int64_t from_s, until_s, pushed_ns;
};

static void profile_write(void *context, struct sink *out)
{
	struct profile *profile = context;
	const struct push_maker *maker = profile->maker;
	push_place_writer(maker->place)(&profile->report, out);
	if (push_place_is_clickhouse(maker->place))
		return;
	push_past_write(maker->queue->directory, &profile->key, &maker->past, profile->made,
			maker->queue->counts.pushed + 1);
}

/* What an earlier process of this session has pushed is in no profile of this one. */
static int past_take(struct profile *profile, int64_t start_ns, struct diag *diag)
{
	struct push_maker *maker = profile->maker;
	uint64_t number = 0;
	/* A relative path is another place elsewhere. */
	if (!push_place_is_remote(maker->place))
		profile->directory = realpath(maker->place->address, NULL);
	profile->key =
		(struct push_past_key){profile->directory ? profile->directory : maker->place->address, start_ns};
	/* In a database, pushers are told apart, and each says all. */
	if (maker->has_past || push_place_is_clickhouse(maker->place))
		return 0;
	maker->has_past = true;
	const int error = push_past_read(maker->queue->directory, &profile->key, &maker->past, &number, diag);
	/* Of a queue, pushed is what was sent. */
	if (!push_place_is_remote(maker->place) && number > maker->queue->counts.pushed)
		maker->queue->counts.pushed = number;
	if (maker->needs_past && !maker->past.stacks.count)
		return diag_fail(diag, ENODATA,
				 "nothing is known of pushes of this session to this place: all of it may be there");
	return error;
}

/* Write a part of a file's name. */
static void path_add(struct sink *path, const char *part)
{
	for (const char *at = part; *at && at < part + NAME_PART_BYTES; at++)
		sink_put(path, *at == '/' || (at == part && *at == '.') ? '_' : *at);
}

static const char *host_of(const struct push_origin *origin)
{
	for (size_t i = 0; i < origin->label_count; i++)
		if (!strcmp(origin->labels[i].key, host_key))
			return origin->labels[i].value;
	return "";
}

/* Many hosts may write into one directory, each at any time: the name is of the host, too. */
static int profile_save(struct profile *profile, struct diag *diag)
{
	struct whole_file file;
	struct sink path, out;
	sink_to_memory(&path);
	sink_format(&path, "%s/", profile->maker->place->address);
	path_add(&path, profile->origin.service);
	sink_put(&path, '.');
	path_add(&path, host_of(&profile->origin));
	/* The time of the trace's last event may be that of the profile before. */
	sink_format(&path, ".%s.%" PRId64 ".%" PRIu64 ".pb.gz", profile->maker->session,
		    profile->pushed_ns / NS_OF_SECOND, profile->maker->queue->counts.pushed);
	char *text = sink_take(&path, NULL);
	int error = whole_file_open(&file, text, 0600, diag);
	if (!error) {
		profile->made = file.path;
		sink_to_fd(&out, file.fd, FILE_BYTES);
		profile_write(profile, &out);
		error = sink_end(&out);
		if (error)
			diag_fail(diag, -error, "cannot write %s: %s", text, strerror(-error));
		if (error)
			whole_file_abandon(&file);
		else
			error = whole_file_commit(&file, diag);
	}
	profile->maker->queue->counts.pushed += !error;
	profile->maker->queue->counts.dropped += error != 0;
	free(text);
	return error;
}

static int profile_queue(struct profile *profile, struct diag *diag)
{
	struct sink url;
	sink_to_memory(&url);
	push_place_url(profile->maker->place, &profile->origin, profile->from_s, profile->until_s, &url);
	char *text = sink_take(&url, NULL), made[PUSH_ITEM_NAME_BYTES];
	push_queue_name_next(profile->maker->queue, made);
	profile->made = made;
	int error = push_queue_add(profile->maker->queue, text, profile_write, profile, diag);
	free(text);
	return error;
}

/* These pushes are told from those of other commands by a number of their own. One that was dropped leaves the server
   without what later ones go on from. */
static void clickhouse_begin(struct push_maker *maker)
{
	struct clickhouse_past *past = &maker->clickhouse;
	past->name = maker->session;
	while (!past->session)
		if (getrandom(&past->session, sizeof(past->session), 0) < 0)
			past->session = (uint64_t)time(NULL) << 32 | (uint32_t)getpid();
	past->is_lost = maker->queue->counts.dropped != maker->dropped;
	maker->dropped = maker->queue->counts.dropped;
}

/* A trace that is loaded again is the same push. */
static void clickhouse_begin_load(struct push_maker *maker, const struct trace_dictionary *dictionary, int64_t until_ns)
{
	const uint64_t hash = XXH3_64bits(maker->session, strlen(maker->session));
	const char *host = dictionary->host ? dictionary->host : "";
	maker->clickhouse.name = maker->session;
	maker->clickhouse.session =
		XXH3_64bits_withSeed(host, strlen(host), hash ^ (uint64_t)dictionary->start_realtime_ns);
	maker->clickhouse.time_ns = until_ns;
}

/* Make the profile where it belongs. */
static int profile_put(struct profile *profile, const struct trace_dictionary *dictionary, struct diag *diag)
{
	struct push_maker *maker = profile->maker;
	if (maker->loaded) {
		const int64_t length_ns = profile->analysis.sources[0].window->range.to_ns;
		clickhouse_begin_load(maker, dictionary, dictionary->start_realtime_ns + length_ns);
		profile_write(profile, maker->loaded);
		return 0;
	}
	clickhouse_begin(maker);
	maker->clickhouse.time_ns = profile->pushed_ns;
	const int error =
		push_place_is_remote(maker->place) ? profile_queue(profile, diag) : profile_save(profile, diag);
	push_past_settle(maker->queue->directory, !error);
	return error;
}

static int profile_make(void *context, struct diag *diag)
{
	struct profile *profile = context;
	struct push_maker *maker = profile->maker;
	const struct trace_dictionary *dictionary = trace_dictionary(profile->analysis.sources[0].trace);
	struct push_labels labels = {.count = 0};
	struct diag past_diag = {""};
	struct timespec now;
	/* Nobody knows yet what it will be of, and it has nothing. */
	if (!maker->loaded && !process_of(dictionary)) {
		maker->is_made = true;
		return 0;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	profile->pushed_ns = (int64_t)now.tv_sec * NS_OF_SECOND + now.tv_nsec;
	const int past_error = past_take(profile, dictionary->start_realtime_ns, &past_diag);
	if (past_error == -ENODATA) {
		*diag = past_diag;
		return past_error;
	}
	/* First: nobody else says which push it is. */
	if (!push_place_is_remote(maker->place))
		labels_add_push(&labels, maker, dictionary->start_realtime_ns, profile->pushed_ns);
	labels_make(&labels, maker, dictionary);
	profile->origin = push_labels_settle(&labels);
	const int64_t start_ns = dictionary->start_realtime_ns;
	profile->from_s = (start_ns + maker->past.until_ns) / NS_OF_SECOND;
	profile->until_s = (start_ns + profile->analysis.sources[0].window->range.to_ns) / NS_OF_SECOND;
	profile->report = (struct report){.diff = {.input = &profile->analysis.input, .runs = {1, 0}},
					  .parts = &profile->part,
					  .part_count = 1,
					  .past = &maker->past,
					  .without_trace_ids = push_place_has_series(maker->place),
					  .clickhouse = &maker->clickhouse,
					  .labels = labels.items,
					  .label_count = labels.count};
	/* All of them take the same. */
	export_prepare(&profile->report, REPORT_PPROF, 0);
	int error = profile_put(profile, dictionary, diag);
	maker->is_made = !error;
	if (!error && past_error) {
		*diag = past_diag;
		error = past_error;
	}
	report_fini(&profile->report);
	push_labels_fini(&labels);
	return error;
}

/* A table that was made anew cannot be damaged. */
static void profile_undo(void *context)
{
	(void)context;
}

int push_profile_make(struct push_maker *maker, const char *trace, struct diag *diag)
{
	struct window_word word = {.path = (char *)trace};
	struct heap_cull cull = {.frames = {0}};
	struct profile profile = {.maker = maker, .part = {.action = &action_stacks}};
	maker->is_made = false;
	heap_cull_use_default(&cull);
	const struct analysis_request request = {.source_count = 1,
						 .words = &word,
						 .options = {.is_small = true},
						 .parts = &profile.part,
						 .part_count = 1,
						 .cull = &cull,
						 .forgets_ended = true,
						 .without_peak = true,
						 .with_lines = maker->with_lines,
						 .layout = {.has_full_names = true}};
	int error = analysis_open(&profile.analysis, &request, diag);
	if (!error)
		error = analysis_run(&profile.analysis, profile_make, profile_undo, &profile, diag);
	analysis_close(&profile.analysis);
	free(profile.directory);
	heap_cull_fini(&cull);
	return error;
}

void push_maker_fini(struct push_maker *maker)
{
	export_past_fini(&maker->past);
	clickhouse_past_fini(&maker->clickhouse);
	push_labels_fini(&maker->environment);
	push_labels_fini(&maker->context);
}
