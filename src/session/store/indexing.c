/* SPDX-License-Identifier: MIT */
#include "session/store/indexing.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/store/worker.h"

/* Less often and the end takes longer; more often and blocks of many threads are small. */
enum { CUT_EVENTS = 1 << 18 };

struct indexing {
	struct worker worker;
	struct indexing_progress progress;
	bool has_ended;      /* it has given up */
	uint64_t cut_events; /* that were written at the last cut */
};

struct indexing *indexing_begin(const char *trace_path, bool is_idle, struct diag *diag)
{
	const char *const words[] = {"xheap", INDEXING_WORD, trace_path, is_idle ? INDEXING_IDLE : NULL, NULL};
	struct indexing *indexing = calloc(1, sizeof(*indexing));
	int error = indexing ? worker_begin(&indexing->worker, words, true) : -ENOMEM;
	if (!error)
		return indexing;
	free(indexing);
	diag_fail(diag, -error, "%s", strerrordesc_np(-error));
	return NULL;
}

void indexing_tell(struct indexing *indexing, const struct indexing_cut *cut)
{
	/* A pipe takes the message whole or not at all. If the pipe is full, a later message includes this one. */
	if (cut->until_ns && write(indexing->worker.input, cut, sizeof(*cut)) < 0 && errno == EPIPE)
		indexing->has_ended = true;
	indexing->cut_events = cut->event_count;
}

bool indexing_wants_cut(const struct indexing *indexing, uint64_t event_count)
{
	return !indexing->has_ended && event_count - indexing->cut_events >= CUT_EVENTS;
}

void indexing_finish(struct indexing *indexing)
{
	close(indexing->worker.input);
	indexing->worker.input = -1;
}

bool indexing_wait(struct indexing *indexing, int timeout_ms, struct indexing_progress *progress)
{
	struct pollfd output = {.fd = indexing->worker.output, .events = POLLIN};
	struct indexing_progress newer;
	bool has_ended = false;
	if (poll(&output, 1, timeout_ms) > 0) {
		ssize_t got;
		while ((got = read(output.fd, &newer, sizeof(newer))) == (ssize_t)sizeof(newer))
			indexing->progress = newer;
		has_ended = got >= 0 || (errno != EAGAIN && errno != EINTR);
	}
	*progress = indexing->progress;
	return has_ended;
}

void indexing_cancel(const struct indexing *indexing)
{
	kill(indexing->worker.pid, SIGKILL);
}

int indexing_end(struct indexing *indexing, struct diag *diag)
{
	int error = worker_wait(&indexing->worker, diag);
	free(indexing);
	return error;
}
