/* SPDX-License-Identifier: MIT */
#include "action/budget/budget_junit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "action/actions/stacks.h"
#include "action/budget/budget_check.h"
#include "action/budget/budget_text.h"
#include "base/sink.h"
#include "base/text.h"
#include "trace/reader.h"
#include "trace/trace.h"

/* ---- XML ---- */

static const char replacement[] = "\xef\xbf\xbd";

/* U+FFFE and U+FFFF are no characters. */
static bool is_no_character(const unsigned char *at, unsigned length)
{
	return length == 3 && at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe;
}

/* What stands for the character; NULL: itself. */
static const char *entity_of(unsigned char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\t':
		return "&#9;";
	case '\n':
		return "&#10;";
	default:
		return c < ' ' ? replacement : NULL;
	}
}

/* Write a text so that it may stand in an element or in an attribute between "". U+FFFD replaces what XML has no way
   to write: bytes that are not UTF-8, and control characters but tab and line feed. */
static void xml_text(struct sink *out, const char *text)
{
	for (const unsigned char *at = (const unsigned char *)text; *at;) {
		unsigned length = text_utf8_length(at);
		const char *entity = !length || is_no_character(at, length) ? replacement : entity_of(*at);
		if (entity)
			sink_text(out, entity);
		else
			sink_bytes(out, (const char *)at, length);
		at += length ? length : 1;
	}
}

/* Write ` name="text"`. */
static void xml_attribute(struct sink *out, const char *name, const char *text)
{
	sink_format(out, " %s=\"", name);
	xml_text(out, text);
	sink_put(out, '"');
}

#define SUITE "xheap check"
enum { NS_PER_S = 1000000000 };

struct case_counts {
	unsigned all, failed, skipped;
};

static bool is_trace_failure(const struct budget_check *check)
{
	return !check->takes_incomplete || check->is_strict;
}

static struct case_counts cases_count(const struct budget_check *check)
{
	unsigned limits = (unsigned)check->budget->limit_count, skipped = 0, failed = 0;
	for (size_t i = 0; i < check->budget->limit_count; i++) {
		bool is_failure = budget_check_is_failure(check, &check->verdicts[i]);
		failed += is_failure;
		skipped += !is_failure && check->verdicts[i].state != VERDICT_OK;
	}
	unsigned traces = check->input->source_count + (check->baseline ? check->baseline->source_count : 0);
	return (struct case_counts){limits + traces, failed + (is_trace_failure(check) ? check->incomplete_count : 0),
				    skipped + (is_trace_failure(check) ? 0 : check->incomplete_count)};
}

static void case_begin(struct sink *out, const char *class, const char *name)
{
	sink_text(out, "<testcase");
	xml_attribute(out, "classname", class);
	xml_attribute(out, "name", name);
	xml_attribute(out, "time", "0");
	sink_text(out, ">");
}

/* A case that did not pass. `kind`: the state. */
static void fault_begin(struct sink *out, bool is_failure, const char *kind, const char *message)
{
	sink_text(out, is_failure ? "<failure" : "<skipped");
	if (is_failure)
		xml_attribute(out, "type", kind);
	xml_attribute(out, "message", message);
	sink_put(out, '>');
}

static void fault_end(struct sink *out, bool is_failure)
{
	sink_text(out, is_failure ? "</failure>" : "</skipped>");
}

static void trace_put(struct sink *out, const struct budget_check *check, const struct action_source *source)
{
	struct text missing = budget_missing(source);
	case_begin(out, SUITE ".traces", source->path);
	if (*missing.data) {
		fault_begin(out, is_trace_failure(check), "incomplete", missing.data);
		fault_end(out, is_trace_failure(check));
	}
	sink_text(out, "</testcase>\n");
}

static void stacks_put(struct sink *out, const struct budget_check *check, const struct budget_limit *limit,
		       const struct verdict *verdict)
{
	for (size_t i = 0; i < verdict->stack_count; i++) {
		char *lines = action_stack_lines(check->input, verdict->stacks[i].node);
		sink_text(out, budget_number_text(limit, verdict->stacks[i].number).data);
		sink_text(out, budget_before_text(check, limit, &verdict->stacks[i]).data);
		xml_text(out, "\n");
		xml_text(out, lines);
		free(lines);
	}
}

static void limit_put(struct sink *out, const struct budget_check *check, size_t number)
{
	const struct budget_limit *limit = &check->budget->limits[number];
	const struct verdict *verdict = &check->verdicts[number];
	bool is_failure = budget_check_is_failure(check, verdict);
	char *name = budget_limit_name(check->budget, limit), *sentence = budget_sentence(check, number);
	case_begin(out, SUITE ".limits", name);
	if (verdict->state != VERDICT_OK) {
		fault_begin(out, is_failure, verdict_words[verdict->state], sentence);
		if (!check->baseline) {
			xml_text(out, check->budget->path);
			sink_format(out, ":%u: ", limit->line);
		}
		xml_text(out, sentence);
		xml_text(out, "\n");
		stacks_put(out, check, limit, verdict);
		fault_end(out, is_failure);
	}
	sink_text(out, "</testcase>\n");
	free(sentence);
	free(name);
}

/* When the first trace began, in UTC. */
static void suite_times_put(struct sink *out, const struct budget_check *check)
{
	const struct action_source *source = &check->input->sources[0];
	time_t start = (time_t)(trace_dictionary(source->trace)->start_realtime_ns / NS_PER_S);
	char text[64] = "1970-01-01T00:00:00";
	struct tm parts;
	if (gmtime_r(&start, &parts))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	xml_attribute(out, "timestamp", text);
	snprintf(text, sizeof(text), "%.3f", (double)source->table->duration_ns / NS_PER_S);
	xml_attribute(out, "time", text);
}

void budget_junit(const struct budget_check *check, struct sink *out)
{
	struct case_counts cases = cases_count(check);
	sink_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite");
	xml_attribute(out, "name", SUITE);
	sink_format(out,
		    " package=\"xheap\" id=\"0\" hostname=\"localhost\" tests=\"%u\" failures=\"%u\" errors=\"0\" "
		    "skipped=\"%u\"",
		    cases.all, cases.failed, cases.skipped);
	suite_times_put(out, check);
	sink_text(out, ">\n<properties>\n<property");
	xml_attribute(out, "name", check->baseline ? "baseline" : "budget");
	xml_attribute(out, "value", check->budget->path);
	sink_text(out, "/>\n</properties>\n");
	for (unsigned i = 0; check->baseline && i < check->baseline->source_count; i++)
		trace_put(out, check, &check->baseline->sources[i]);
	for (unsigned run = 0; run < check->input->source_count; run++)
		trace_put(out, check, &check->input->sources[run]);
	for (size_t i = 0; i < check->budget->limit_count; i++)
		limit_put(out, check, i);
	sink_text(out, "<system-out></system-out>\n<system-err></system-err>\n</testsuite>\n</testsuites>\n");
}
