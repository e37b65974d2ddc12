/* SPDX-License-Identifier: MIT */
/* xheap-images: what watches image options, with nothing of the commands that read traces. The service runs it, and so
   does xheap image watch. */
#include <stdlib.h>

#include "base/memory.h"
#include "base/signal_cleanup.h"
#include "base/whole_file.h"
#include "cli/image/watch_options.h"
#include "cli/option_help.h"

void command_print_help_of(const char *words, FILE *out)
{
	fprintf(out, "xheap-images [OPTIONS]\nthe same as xheap %s\n\n", words);
	options_print_help(&watch_grammar, out);
}

static void end_without_memory(size_t size_bytes)
{
	exit(cli_fail("out of memory: %zu bytes were needed", size_bytes));
}

static void say_line(const char *text)
{
	cli_say("%s", text);
}

int main(int count, char **arguments)
{
	struct keeper_options options = {.say = say_line};
	struct diag diag = {""};
	memory_set_end(end_without_memory);
	whole_file_set_guard(&(struct whole_file_guard){signal_cleanup_hold, signal_cleanup_release, signal_cleanup_add,
							signal_cleanup_remove});
	if (watch_options_parse(count, arguments, &options) != CLI_OK)
		return CLI_FAILED;
	return keeper_run(&options, &diag) ? cli_fail("image watch: %s", diag.text) : CLI_OK;
}
