/* SPDX-License-Identifier: MIT */
#include "cli/fleet/fleet_html.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/whole_file.h"
#include "cells/cells.h"
#include "cli/cli.h"
#include "export/compression.h"
#include "fleet/fleet_page.h"
#include "server/alone/alone_page.h"
#include "server/answer/parts.h"

enum { SAVE_BYTES = 1 << 16 };

/* Make the page with as many intervals as there is room for. */
static int page_make(struct alone_page *page, const struct fleet_page *about, struct fleet_series *series,
		     struct diag *diag)
{
	/* A page draws so many cells in the time of a picture. */
	while (series->curve_count * series->bounds.count > CELLS_MAX / 2 &&
	       series->bounds.count > FLEET_SERIES_INTERVALS_LEAST)
		fleet_series_halve(series);
	for (;;) {
		struct sink facts, cells, plain;
		sink_to_memory(&facts);
		sink_to_memory(&cells);
		sink_to_memory(&plain);
		fleet_page_write(about, &facts, &cells);
		parts_begin(&plain, 1);
		parts_add(&plain, &facts, &cells);
		const int error = alone_page_pack(page, &plain, diag);
		sink_end(&facts);
		sink_end(&cells);
		sink_end(&plain);
		if (error || alone_page_size(page) <= ALONE_FILE_MOST)
			return error;
		if (series->bounds.count <= FLEET_SERIES_INTERVALS_LEAST)
			return diag_fail(diag, EFBIG,
					 "the page would have %s, more than %s: ask for less by --top, --service or "
					 "--last",
					 text_bytes(alone_page_size(page)).data, text_bytes(ALONE_FILE_MOST).data);
		fleet_series_halve(series);
	}
}

/* What hosts do is for those to see who may read what they push. */
static int page_save(const struct alone_page *page, const char *output, struct diag *diag)
{
	struct whole_file file;
	struct sink out;
	int error = whole_file_open(&file, output, 0600, diag);
	if (error)
		return error;
	sink_to_fd(&out, file.fd, SAVE_BYTES);
	alone_page_write(page, &out);
	const int write_error = sink_end(&out);
	if (!write_error)
		return whole_file_commit(&file, diag);
	whole_file_abandon(&file);
	return diag_fail(diag, -write_error, "cannot write %s: %s", output, strerror(-write_error));
}

static int page_put(const struct alone_page *page, const char *output, struct diag *diag)
{
	if (strcmp(output, "-") != 0)
		return page_save(page, output, diag);
	alone_page_write(page, cli_stdout());
	return 0;
}

int fleet_html_save(const struct fleet_place *place, const struct fleet_question *question, const char *output)
{
	struct fleet_answer answer = {.rows = NULL}, growth = {.rows = NULL};
	struct fleet_series series = {.stack_count = 0};
	struct alone_page page = {.packed = NULL};
	struct diag diag = {""};
	const struct fleet_page about = {place->name, question, &answer, &growth, &series};
	struct fleet_question grown = *question;
	grown.asked = FLEET_GROWTH;
	/* Before a place is asked that takes its time. */
	int error = compression_refuse(output, &diag);
	error = error ? error : fleet_follow(place, question, &answer, &series, &diag);
	error = error ? error : fleet_ask(place, &grown, &growth, &diag);
	error = error ? error : page_make(&page, &about, &series, &diag);
	error = error ? error : page_put(&page, output, &diag);
	if (!error && answer.missing)
		cli_say("not complete: %s passed over; %s: %s", text_count(answer.missing).data,
			text_shown(answer.notes[0].what), text_shown(answer.notes[0].why));
	alone_page_fini(&page);
	fleet_series_fini(&series);
	fleet_answer_fini(&answer);
	fleet_answer_fini(&growth);
	if (error)
		return cli_fail("fleet top: %s", diag.text);
	if (!strcmp(output, "-"))
		return cli_stdout_flush();
	cli_say("%s opens in a browser", text_shown(output));
	return CLI_OK;
}
