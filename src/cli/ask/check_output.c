/* SPDX-License-Identifier: MIT */
#include "cli/ask/check_output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "action/budget/budget_check.h"
#include "action/budget/budget_github.h"
#include "action/budget/budget_json.h"
#include "action/budget/budget_junit.h"
#include "action/budget/budget_text.h"
#include "action/budget/budget_update.h"
#include "base/digits.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "cli/cli.h"
#include "export/export.h"

enum { FILE_BYTES = 1 << 16, TOKEN_BYTES = 16, UNMATCHED_MAX = 10 };

/* Lines of files and of annotations have any width. */
static void width_set(const struct budget_check *check, unsigned width)
{
	check->input->layout.width = width;
}

/* GitHub reads commands in any line of the output, and a function may have any name. So the text stands between lines
   that turn commands off and on, with a word that nobody can know. */
static void github_print(const struct budget_check *check, const char *text, struct sink *out)
{
	unsigned char bytes[TOKEN_BYTES] = {0};
	char token[2 * TOKEN_BYTES + 1], *directory = NULL;
	const char *workspace = getenv("GITHUB_WORKSPACE");
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		memset(bytes, (int)getpid(), sizeof(bytes));
	digits_of_bytes(token, bytes, sizeof(bytes));
	if (!workspace || !*workspace)
		workspace = directory = getcwd(NULL, 0);
	sink_format(out, "::stop-commands::%s\n%s::%s::\n", token, text, token);
	width_set(check, 0);
	budget_github(check, workspace ? workspace : "/", out);
	free(directory);
}

int check_output_refuse(const struct check_output *output, const char *const *paths, size_t count, const char *budget)
{
	struct diag diag = {""};
	if (output->junit && (whole_file_check(output->junit, paths, (unsigned)count, &diag) ||
			      whole_file_check(output->junit, &budget, 1, &diag)))
		return cli_fail("--junit: %s", diag.text);
	return CLI_OK;
}

static int junit_save(const struct check_output *output, const struct budget_check *check)
{
	struct whole_file file;
	struct diag diag = {""};
	struct sink out;
	unsigned width = check->input->layout.width;
	if (whole_file_open_as_is(&file, output->junit, 0666, &diag))
		return cli_fail("%s", diag.text);
	sink_to_fd(&out, file.fd, FILE_BYTES);
	width_set(check, 0);
	budget_junit(check, &out);
	width_set(check, width);
	int error = sink_end(&out);
	if (!error && !whole_file_commit(&file, &diag))
		return CLI_OK;
	if (!error)
		return cli_fail("%s", diag.text);
	whole_file_abandon(&file);
	return cli_fail("cannot write %s: %s", output->junit, strerror(-error));
}

/* ---- --update ---- */

static void unmatched_say(const struct budget_check *check)
{
	for (size_t i = 0; i < check->budget->limit_count; i++) {
		if (check->verdicts[i].state != VERDICT_UNMATCHED)
			continue;
		char *sentence = budget_sentence(check, i);
		cli_say("%s:%u stays: %s", check->budget->path, check->budget->limits[i].line, sentence);
		free(sentence);
	}
}

/* The lines that change, as they become; of a new file, as they are. Return how many there are. */
static size_t changes_put(const struct check_output *output, const struct budget_check *check, struct sink *out)
{
	size_t count = 0;
	for (size_t i = 0; i < check->budget->limit_count; i++) {
		const struct budget_limit *limit = &check->budget->limits[i];
		struct budget_change change = budget_change_of(check, i);
		if (!change.is_change)
			continue;
		char *text = (output->is_new ? budget_limit_name : budget_limit_text)(check->budget, limit);
		sink_format(out, "%s:%u  %s%s", text_shown(check->budget->path), limit->line, text_shown(text),
			    output->is_new ? " <= " : "  becomes  ");
		budget_change_put(out, limit, &change);
		sink_put(out, '\n');
		free(text);
		count++;
	}
	return count;
}

static int budget_save(const struct budget_check *check)
{
	struct whole_file file;
	struct diag diag = {""};
	struct sink out;
	if (whole_file_open_as_is(&file, check->budget->path, 0666, &diag))
		return cli_fail("%s", diag.text);
	sink_to_fd(&out, file.fd, FILE_BYTES);
	budget_update(check, &out);
	int error = sink_end(&out);
	if (!error)
		return whole_file_commit(&file, &diag) ? cli_fail("%s", diag.text) : CLI_OK;
	whole_file_abandon(&file);
	return cli_fail("cannot write %s: %s", check->budget->path, strerror(-error));
}

int check_output_update(const struct check_output *output, const struct budget_check *check)
{
	for (unsigned run = 0; run < check->input->source_count && !check->takes_incomplete; run++) {
		const struct action_source *source = &check->input->sources[run];
		if (*budget_missing(source).data)
			return cli_fail("%s is not complete: %s; a budget is learned from it only with "
					"--allow-incomplete",
					source->path, budget_missing(source).data);
	}
	unmatched_say(check);
	struct cli_output to;
	struct sink changes;
	sink_to_memory(&changes);
	size_t count = changes_put(output, check, &changes);
	char *lines = sink_take(&changes, NULL);
	int status = count || output->is_new ? budget_save(check) : CLI_OK;
	if (status == CLI_OK) {
		cli_output_open(&to, false);
		sink_format(&to.sink, "%s%s: %zu of %zu limits %s\n", lines, text_shown(check->budget->path), count,
			    check->budget->limit_count, output->is_new ? "of a new file are above 0" : "changed");
		status = cli_output_close(&to);
	}
	free(lines);
	if (status == CLI_OK && output->is_new && check->input->source_count == 1)
		cli_say("one run does not show what varies: give several TRACEs of the same program");
	return status;
}

/* A limit whose name is mistyped holds for ever, and the last line of the result may be far from its reader. With
   annotations each is a warning. */
static void unmatched_warn(const struct budget_check *check)
{
	size_t count = check->counts[VERDICT_UNMATCHED], said = 0;
	for (size_t i = 0; i < check->budget->limit_count && said < UNMATCHED_MAX; i++) {
		if (check->verdicts[i].state != VERDICT_UNMATCHED)
			continue;
		char *sentence = budget_sentence(check, i);
		cli_say("%s:%u: %s", check->budget->path, check->budget->limits[i].line, sentence);
		free(sentence);
		said++;
	}
	if (said < count)
		cli_say("and %zu more limits that match nothing", count - said);
}

int check_output_print(const struct check_output *output, const struct budget_check *check)
{
	struct cli_output to;
	struct sink text;
	bool is_text = output->format == REPORT_TEXT;
	if (output->junit && junit_save(output, check) != CLI_OK)
		return CLI_FAILED;
	cli_output_open(&to, is_text && !output->is_github);
	check->input->is_colored = to.is_colored && !output->is_github;
	sink_to_memory(&text);
	(is_text ? budget_text : budget_json)(check, &text);
	char *data = sink_take(&text, NULL);
	if (output->is_github)
		github_print(check, data, &to.sink);
	else
		sink_text(&to.sink, data);
	free(data);
	int status = cli_output_close(&to);
	if (status == CLI_OK && !output->is_github)
		unmatched_warn(check);
	return status;
}
