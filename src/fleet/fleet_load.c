/* SPDX-License-Identifier: MIT */
/* Traces that are put into a database: each is one push of a session that is over. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "fleet/clickhouse_server.h"
#include "fleet/fleet.h"
#include "push/push_profile.h"

enum { FILE_BYTES = 1 << 16 };

static int row_make(struct push_maker *maker, const char *trace, int file, struct diag *diag)
{
	struct sink row;
	sink_to_fd(&row, file, FILE_BYTES);
	maker->loaded = &row;
	int error = push_profile_make(maker, trace, diag);
	const int written = sink_end(&row);
	if (!error && written)
		error = diag_fail(diag, -written, "cannot keep the profile of %s: %s", trace, strerror(-written));
	return error;
}

static int trace_load(struct clickhouse_server *server, const struct push_labels *labels, const char *trace,
		      struct diag *diag)
{
	/* The session's name is that of the file. */
	char *name = strdup(text_file_name(trace));
	if (name && text_ends_with(name, ".xht"))
		name[strlen(name) - strlen(".xht")] = 0;
	struct push_maker maker = {.place = &server->place, .labels = labels, .session = name};
	int file = memfd_create("profile", MFD_CLOEXEC);
	int error = file < 0 || !name ? diag_errno(diag, "cannot load %s", trace) : row_make(&maker, trace, file, diag);
	if (!error)
		error = clickhouse_insert(server, file, diag);
	push_maker_fini(&maker);
	if (file >= 0)
		close(file);
	free(name);
	return error;
}

int fleet_load(const struct fleet_place *place, const struct push_labels *labels, const char *const *traces,
	       size_t count, size_t *loaded, struct diag *diag)
{
	struct clickhouse_server server;
	int error = clickhouse_open(&server, place, diag);
	for (*loaded = 0; !error && *loaded < count; *loaded += !error)
		error = trace_load(&server, labels, traces[*loaded], diag);
	clickhouse_close(&server);
	return error;
}
