/* SPDX-License-Identifier: MIT */
/* xheap image list and show: the options, and what became of the starts. */
#include "cli/image/image_list.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/formats.h"
#include "cli/option_parser.h"
#include "image/image_files.h"
#include "image/image_recording.h"
#include "image/image_status.h"
#include "image/watch_message.h"
#include "os/monotonic.h"

static const struct {
	const char *name, *key;
} outcomes[] = {
#define X(id, name) {name, #id},
	CONTROL_OUTCOMES(X)
#undef X
};

static const char *const end_texts[] = {
#define X(id, text) text,
	WATCH_ENDS(X)
#undef X
};

struct image_list {
	int format;
};

static const struct option list_rows[] = {
	FORMAT_OPTION(struct image_list, format, report_formats_without_csv),
	{.type = VALUE_END},
};

static const struct option_group list_groups[] = {{list_rows, 0, false}, {NULL, 0, false}};
const struct option_grammar image_list_grammar = {
	.command = "image list", .groups = list_groups, .dashes = "--", .takes_abbreviations = true};

static const struct image_count *count_of(const struct image_status *status, const char *image)
{
	static const struct image_count none;
	for (size_t i = 0; i < status->count; i++)
		if (!strcmp(status->counts[i].image, image))
			return &status->counts[i];
	return &none;
}

static bool is_untraced(int outcome)
{
	return control_outcome_is_untraced((enum control_outcome)outcome);
}

static uint64_t untraced(const struct image_count *count)
{
	uint64_t sum = 0;
	for (int i = 0; i < CONTROL_OUTCOME_COUNT; i++)
		sum += is_untraced(i) ? count->outcomes[i] : 0;
	return sum;
}

static void time_text(int64_t time_ns, char *text, size_t size)
{
	time_t time_s = (time_t)(time_ns / (int64_t)NS_PER_S);
	strftime(text, size, "%Y-%m-%d %H:%M:%S", localtime(&time_s));
}

static const char *state_of(const struct image_option *option)
{
	return !option->is_enabled                             ? "disabled"
	       : !option->flags                                ? "TracingFlags is 0"
	       : !image_option_is_in_force(option, time(NULL)) ? "its time is over"
							       : "on";
}

/* ---- text ---- */

static void option_text_line(const struct image_option *option, const struct image_count *count)
{
	char last[40];
	uint64_t missing = untraced(count), files, bytes;
	printf("%s: %s, %s traced, %s untraced", text_shown(image_option_title(option)), state_of(option),
	       text_count(count->outcomes[CONTROL_OUTCOME_TRACED]).data, text_count(missing).data);
	if (count->outcomes[CONTROL_OUTCOME_UNSELECTED])
		printf(", %s not selected", text_count(count->outcomes[CONTROL_OUTCOME_UNSELECTED]).data);
	if (count->outcomes[CONTROL_OUTCOME_FOLLOWED])
		printf(", %s followed", text_count(count->outcomes[CONTROL_OUTCOME_FOLLOWED]).data);
	if (count->outcomes[CONTROL_OUTCOME_SCRIPT])
		printf(", %s of scripts (--scripts records them)",
		       text_count(count->outcomes[CONTROL_OUTCOME_SCRIPT]).data);
	if (count->shared)
		printf(", %s in the common trace", text_count(count->shared).data);
	image_option_traces(option, &files, &bytes);
	if (files)
		printf(", %s trace%s of %s", text_count(files).data, files == 1 ? "" : "s", text_bytes(bytes).data);
	if (count->last_ns) {
		time_text(count->last_ns, last, sizeof(last));
		printf(", last start %s", last);
	}
	putchar('\n');
	for (int i = 0; i < CONTROL_OUTCOME_COUNT; i++)
		if (is_untraced(i) && count->outcomes[i])
			printf("  untraced: %s of %s%s\n", text_count(count->outcomes[i]).data, outcomes[i].name,
			       i == CONTROL_OUTCOME_LATE || i == CONTROL_OUTCOME_NO_LOGGER
				       ? " (xheap image watch --deadline MILLISECONDS allows more time)"
				       : "");
	if (missing && count->last_why[0])
		printf("  the last reason: %s\n", text_shown(count->last_why));
}

static void intervals_text(const struct image_status *status)
{
	uint64_t kept = status->interval_count < IMAGE_INTERVAL_MAX ? status->interval_count : IMAGE_INTERVAL_MAX;
	for (uint64_t i = status->interval_count - kept; i < status->interval_count; i++) {
		const struct image_interval *interval = &status->intervals[i % IMAGE_INTERVAL_MAX];
		char from[40], to[40] = "now";
		time_text(interval->from_ns, from, sizeof(from));
		if (interval->to_ns)
			time_text(interval->to_ns, to, sizeof(to));
		printf("no watcher from %s to %s%s%s\n", from, to, interval->to_ns ? ", for " : "",
		       interval->to_ns ? text_duration(interval->to_ns - interval->from_ns).data : "");
	}
}

static bool is_known(const struct image_status *status, uint64_t unwatched)
{
	return unwatched < status->unwatched_count && unwatched < IMAGE_UNWATCHED_MAX &&
	       status->unwatched[unwatched].place[0];
}

/* Return the name of a process; "ended" if it is gone. */
static struct text process_name(pid_t pid)
{
	struct text name = {"ended"};
	char path[40], line[40] = "";
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	FILE *file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		snprintf(name.data, sizeof(name.data), "%.20s", text_shown(line));
	}
	if (file)
		fclose(file);
	return name;
}

/* File systems on which no NAME is seen. */
static void unwatched_text(const struct image_status *status)
{
	uint64_t i = 0;
	if (status->unwatched_count)
		puts("programs that start from these places, of this system, of containers or of services, are not "
		     "recorded:");
	for (; is_known(status, i); i++) {
		const struct image_unwatched *unwatched = &status->unwatched[i];
		printf("not watched: %s", text_shown(unwatched->place));
		if (unwatched->pid)
			printf(" as process %d (%s) sees it, in mounts of its own", (int)unwatched->pid,
			       process_name(unwatched->pid).data);
		printf(": %s\n", text_shown(unwatched->why));
	}
	if (i < status->unwatched_count)
		printf("not watched: %s %s\n", text_count(status->unwatched_count - i).data,
		       i                              ? "more"
		       : status->unwatched_count == 1 ? "place, which only root may know"
						      : "places, which only root may know");
}

static void list_text(const struct image_options *options, const struct image_status *status)
{
	for (size_t i = 0; i < options->count; i++)
		option_text_line(&options->items[i], count_of(status, image_option_title(&options->items[i])));
	if (!options->count)
		puts("no image is registered; xheap image add NAME registers one");
	for (size_t i = 0; i < options->mistake_count; i++)
		printf("not in force: %s\n", text_shown(options->mistakes[i].why.text));
	if (!image_status_is_kept(status) && options->count)
		puts("nobody watches: systemctl enable --now xheap-images, or xheap image watch");
	if (image_status_is_kept(status))
		unwatched_text(status);
	if (status->overflows)
		printf("%s time%s starts did not fit into the kernel's queue: they ran untraced, and are not counted\n",
		       text_count(status->overflows).data, status->overflows == 1 ? "" : "s");
	if (status->refused_marks)
		printf("%s mark%s could not be set: some starts are not seen\n", text_count(status->refused_marks).data,
		       status->refused_marks == 1 ? "" : "s");
	intervals_text(status);
}

/* ---- JSON ---- */

static void add_value(void *json, const char *key, const char *value)
{
	json_text(json, key, value);
}

enum { KEY_BYTES = 40 };

/* Write the name of an outcome as a key: with '_' in place of each blank. */
static const char *outcome_key(enum control_outcome outcome, char key[KEY_BYTES])
{
	snprintf(key, KEY_BYTES, "%s", outcomes[outcome].name);
	for (char *at = key; *at; at++)
		*at = *at == ' ' ? '_' : *at;
	return key;
}

static void option_json(struct json *json, const struct image_option *option, const struct image_count *count)
{
	uint64_t files, bytes;
	char key[KEY_BYTES];
	json_begin_object(json, NULL);
	json_text(json, "image", image_option_title(option));
	json_text(json, "file", option->file);
	json_text(json, "state", state_of(option));
	json_begin_object(json, "values");
	image_option_each(option, add_value, json);
	json_end_object(json);
	json_number(json, "traced", (int64_t)count->outcomes[CONTROL_OUTCOME_TRACED]);
	json_number(json, "untraced", (int64_t)untraced(count));
	json_begin_object(json, "starts");
	for (int i = 0; i < CONTROL_OUTCOME_COUNT; i++)
		json_number(json, outcome_key((enum control_outcome)i, key), (int64_t)count->outcomes[i]);
	json_end_object(json);
	image_option_traces(option, &files, &bytes);
	json_number(json, "in_common_trace", (int64_t)count->shared);
	json_number(json, "traces", (int64_t)files);
	json_number(json, "trace_bytes", (int64_t)bytes);
	json_text(json, "last_reason", count->last_why);
	json_number(json, "last_start_ns", count->last_ns);
	json_end_object(json);
}

static void unwatched_json(struct json *json, const struct image_status *status)
{
	json_number(json, "not_watched_count", (int64_t)status->unwatched_count);
	json_begin_array(json, "not_watched");
	for (uint64_t i = 0; is_known(status, i); i++) {
		json_begin_object(json, NULL);
		json_text(json, "place", status->unwatched[i].place);
		json_number(json, "namespace", (int64_t)status->unwatched[i].namespace);
		json_number(json, "pid", status->unwatched[i].pid);
		json_text(json, "why", status->unwatched[i].why);
		json_end_object(json);
	}
	json_end_array(json);
}

static void list_json(const struct image_options *options, const struct image_status *status)
{
	struct json json = {.out = cli_stdout(), .line_depth = 3};
	uint64_t kept = status->interval_count < IMAGE_INTERVAL_MAX ? status->interval_count : IMAGE_INTERVAL_MAX;
	bool is_kept = image_status_is_kept(status);
	json_begin_object(&json, NULL);
	json_number(&json, "keeper", is_kept ? status->keeper : 0);
	json_number(&json, "watcher", is_kept ? status->watcher : 0);
	json_number(&json, "in_force", is_kept && status->is_in_force);
	json_number(&json, "early", is_kept && status->is_early);
	json_number(&json, "refused_marks", (int64_t)status->refused_marks);
	json_number(&json, "queue_overflows", (int64_t)status->overflows);
	json_number(&json, "other_mount_namespaces", (int64_t)status->namespaces);
	json_number(&json, "sessions", is_kept ? (int64_t)status->sessions : 0);
	unwatched_json(&json, status);
	json_begin_array(&json, "images");
	for (size_t i = 0; i < options->count; i++)
		option_json(&json, &options->items[i], count_of(status, image_option_title(&options->items[i])));
	json_end_array(&json);
	json_begin_array(&json, "mistakes");
	for (size_t i = 0; i < options->mistake_count; i++)
		json_text(&json, NULL, options->mistakes[i].why.text);
	json_end_array(&json);
	json_number(&json, "interval_count", (int64_t)status->interval_count);
	json_begin_array(&json, "intervals");
	for (uint64_t i = status->interval_count - kept; i < status->interval_count; i++) {
		const struct image_interval *interval = &status->intervals[i % IMAGE_INTERVAL_MAX];
		json_begin_object(&json, NULL);
		json_number(&json, "from_ns", interval->from_ns);
		json_number(&json, "to_ns", interval->to_ns);
		json_text(&json, "why", interval->end < WATCH_END_COUNT ? end_texts[interval->end] : "");
		json_end_object(&json);
	}
	json_end_array(&json);
	json_end_object(&json);
	json_end(&json);
}

/* ---- the verbs ---- */

int image_list_run(int count, char **arguments)
{
	struct image_list list = {.format = REPORT_TEXT};
	struct image_options options = {0};
	struct image_status status;
	char **rest;
	int result = options_parse(&image_list_grammar, count, arguments, &list, NULL, &rest);
	if (result == CLI_OK && *rest)
		result = cli_fail("image list: %s: not expected here", *rest);
	if (result != CLI_OK)
		return result;
	image_options_read(&options);
	image_status_read(&status);
	(list.format == REPORT_JSON ? list_json : list_text)(&options, &status);
	image_status_fini(&status);
	image_options_fini(&options);
	return CLI_OK;
}

int image_show_run(int count, char **arguments)
{
	struct image_options options = {0};
	struct image_status status;
	if (count != 2 || arguments[1][0] == '-')
		return cli_fail("image show: one image is expected");
	image_options_read(&options);
	image_status_read(&status);
	const struct image_option *option = image_options_find(&options, arguments[1]);
	const struct image_mistake *mistake = option ? NULL : image_options_find_mistake(&options, arguments[1]);
	int result =
		option    ? CLI_OK
		: mistake ? cli_fail("image show: %s", mistake->why.text)
			  : cli_fail("image show: %s is not registered; xheap image list shows what is", arguments[1]);
	if (option) {
		option_text_line(option, count_of(&status, image_option_title(option)));
		image_option_write(option, stdout);
	}
	image_status_fini(&status);
	image_options_fini(&options);
	return result;
}
