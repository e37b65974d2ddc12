/* SPDX-License-Identifier: MIT */
#include "session/store/store_write_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "session/store/pieces.h"
#include "session/store/store_keep.h"
#include "session/store/store_state.h"
#include "trace/merge.h"

enum { SOURCE_BYTES = 32 };

static void *write_out_run(void *argument)
{
	struct write_out *job = argument;
	struct store_result *result = &job->result;
	char(*sources)[SOURCE_BYTES] = calloc(job->count, sizeof(*sources));
	const char **names = calloc(job->count, sizeof(*names));
	for (unsigned i = 0; sources && names && i < job->count; i++) {
		snprintf(sources[i], sizeof(sources[i]), "/proc/self/fd/%d", job->fds[i]);
		names[i] = sources[i];
	}
	result->error = sources && names ? trace_join(result->path, names, job->count, &job->statistics, &result->diag)
					 : diag_fail(&result->diag, ENOMEM, "no memory to write out");
	for (unsigned i = 0; i < job->count; i++)
		close(job->fds[i]);
	free(sources);
	free(names);
	free(job->fds);
	job->fds = NULL;
	__atomic_store_n(&job->is_done, 1, __ATOMIC_RELEASE);
	doorbell_ring(job->doorbell);
	return NULL;
}

/* Open the aggregated file and all whole pieces, and keep them open. */
static int job_take_pieces(struct store *store, struct diag *diag)
{
	struct write_out *job = &store->job;
	bool has_folded = store->keep && store->keep->has_folded;
	job->fds = calloc(store->piece_count + 1, sizeof(*job->fds));
	if (!job->fds)
		return diag_fail(diag, ENOMEM, "no memory to write out");
	for (job->count = 0; job->count < store->piece_count + has_folded; job->count++) {
		char path[WRITER_PATH_MAX];
		if (has_folded && !job->count)
			keep_folded_path(store, store->keep->folded_number, path, sizeof(path));
		else
			pieces_path(store, store->pieces[job->count - has_folded].number, path, sizeof(path));
		job->fds[job->count] = open(path, O_RDONLY | O_CLOEXEC);
		if (job->fds[job->count] >= 0)
			continue;
		int error = diag_errno(diag, "cannot read %s", path);
		while (job->count)
			close(job->fds[--job->count]);
		free(job->fds);
		return error;
	}
	return 0;
}

static int job_begin(struct store *store, bool is_snapshot, const struct trace_statistics *statistics,
		     struct diag *diag)
{
	struct write_out *job = &store->job;
	*job = (struct write_out){.is_snapshot = is_snapshot, .doorbell = store->doorbell, .statistics = *statistics};
	snprintf(job->result.path, sizeof(job->result.path), "%s",
		 is_snapshot ? store->snapshot_path : store->next_path);
	int error = job_take_pieces(store, diag);
	if (error)
		return error;
	job->is_begun = true;
	if (pthread_create(&job->thread, NULL, write_out_run, job) != 0) {
		/* Then it is waited for. */
		write_out_run(job);
		job->thread = pthread_self();
	}
	return 0;
}

int store_write_out(struct store *store, bool is_snapshot, const struct trace_statistics *statistics, struct diag *diag)
{
	if (store->job.is_begun)
		return diag_fail(diag, EBUSY, "it is being written out already");
	int error = writer_turn(store->writer, store->piece_count == 0, diag);
	return error ? error : job_begin(store, is_snapshot, statistics, diag);
}

bool store_take_result(struct store *store, bool is_waiting, struct store_result *result)
{
	struct write_out *job = &store->job;
	if (!job->is_begun || (!is_waiting && !__atomic_load_n(&job->is_done, __ATOMIC_ACQUIRE)))
		return false;
	if (!pthread_equal(job->thread, pthread_self()))
		pthread_join(job->thread, NULL);
	job->is_begun = false;
	*result = job->result;
	if (!result->error && !job->is_snapshot) {
		store_take_next(store);
		store->write_count++;
		store->has_turned = true;
	}
	return true;
}

/* The last piece is whole now, too. */
int store_write_out_all(struct store *store, uint64_t last_bytes, const struct trace_statistics *statistics,
			struct diag *diag)
{
	struct store_result result;
	store_take_result(store, true, &result);
	pieces_add(store, last_bytes, 0);
	int error = job_begin(store, false, statistics, diag);
	if (error || !store_take_result(store, true, &result) || !result.error)
		return error;
	return diag_fail(diag, -result.error, "%s", result.diag.text);
}
