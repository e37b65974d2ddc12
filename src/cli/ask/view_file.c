/* SPDX-License-Identifier: MIT */
#include "cli/ask/view_file.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/whole_file.h"
#include "cli/ask/analysis_options.h"
#include "cli/cli.h"
#include "export/compression.h"
#include "server/alone/alone_file.h"

enum { SAVE_BYTES = 1 << 16 };

static int page_write(const struct view_file *view, const struct stat *output, struct sink *out, struct diag *diag)
{
	const struct analysis_caller caller = asking_caller();
	const struct alone_plan plan = {.paths = view->paths,
					.path_count = view->path_count,
					.runs = view->runs,
					.options = asking_opened_options(),
					.most_bytes = view->most_bytes,
					.output = output};
	int error = alone_file_write(&plan, out, &caller, diag);
	cli_progress_end();
	return error;
}

static int page_print(const struct view_file *view)
{
	struct diag diag = {""};
	return page_write(view, NULL, cli_stdout(), &diag) ? cli_fail("%s", diag.text) : cli_stdout_flush();
}

/* A page shows what the trace has: nobody else may read it, as nobody may read the trace. */
static int page_save(const struct view_file *view, struct diag *diag)
{
	struct whole_file file;
	struct stat status;
	struct sink out;
	int error = compression_refuse(view->output, diag);
	for (unsigned i = 0; i < view->path_count && !error; i++)
		error = asking_check_output(view->output, view->paths[i], diag);
	bool is_there = !stat(view->output, &status);
	error = error ? error : whole_file_open_as_is(&file, view->output, 0600, diag);
	if (error)
		return error;
	sink_to_fd(&out, file.fd, SAVE_BYTES);
	error = page_write(view, is_there ? &status : NULL, &out, diag);
	int write_error = sink_end(&out);
	if (!error && write_error)
		error = diag_fail(diag, -write_error, "cannot write %s: %s", view->output, strerror(-write_error));
	if (!error)
		return whole_file_commit(&file, diag);
	whole_file_abandon(&file);
	return error;
}

int view_file_save(const struct view_file *view)
{
	struct diag diag = {""};
	if (!view->output)
		return page_print(view);
	if (page_save(view, &diag))
		return cli_fail("%s", diag.text);
	cli_say("%s opens in a browser", text_shown(view->output));
	return CLI_OK;
}
