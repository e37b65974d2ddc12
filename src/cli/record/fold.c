/* SPDX-License-Identifier: MIT */
/* xheap --fold: what a logger starts, so that neither its memory nor its life depends on it. Not for users, and in no
   list. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "match/fold.h"
#include "session/store/store.h"
#include "session/store/worker.h"
#include "trace/merge.h"
#include "trace/reader.h"

/* Pieces that are not folded yet may have earlier events: threads deliver their events late. */
static int options_before(int64_t *until_ns, char *const *paths, unsigned count, struct diag *diag)
{
	for (unsigned i = 0; i < count; i++) {
		struct trace *trace;
		struct trace_block head;
		int error = trace_open(&trace, paths[i], diag);
		if (error)
			return error;
		for (uint32_t block = 0; block < trace_block_count(trace); block++) {
			trace_block_head(trace, block, &head);
			if (head.first_ns <= *until_ns)
				*until_ns = head.first_ns - 1;
		}
		trace_close(trace);
	}
	return 0;
}

/* OUTPUT UNTIL_NS COUNT PIECE...: the first COUNT of them become OUTPUT. */
static int fold_run(int argc, char **argv)
{
	struct diag diag = {""};
	char joined[WRITER_PATH_MAX];
	if (argc < 5)
		return CLI_FAILED;
	/* The output has no use without its logger, and xheap recover must not meet a writer there. */
	worker_is_begun();
	int64_t until_ns = strtoll(argv[2], NULL, 10);
	unsigned given = (unsigned)argc - 4, count = (unsigned)strtoul(argv[3], NULL, 10);
	if (!count || count > given)
		return CLI_FAILED;
	snprintf(joined, sizeof(joined), "%s.joined", argv[1]);
	int error = options_before(&until_ns, argv + 4 + count, given - count, &diag);
	error = error ? error : trace_join(joined, (const char *const *)argv + 4, count, NULL, &diag);
	error = error ? error : heap_fold(argv[1], joined, until_ns, &diag);
	unlink(joined);
	return error ? cli_fail("%s", diag.text) : CLI_OK;
}

const struct command command_fold = {
	.name = STORE_FOLD_WORD,
	.usage = "OUTPUT UNTIL_NS COUNT PIECE...",
	.summary = "join pieces of a trace and sum up what has ended; a session's logger starts it",
	.run = fold_run,
	.help = ""};
