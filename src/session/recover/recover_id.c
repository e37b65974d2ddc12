/* SPDX-License-Identifier: MIT */
#include "session/recover/recover_id.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digits.h"
#include "session/recover/recover.h"
#include "session/store/store.h"
#include "trace/reader.h"
#include "trace/trace.h"

void recover_id_text(const uint8_t *id, char text[RECOVER_ID_TEXT])
{
	digits_of_bytes(text, id, RECOVER_ID_BYTES);
}

bool recover_id_parse(const char *text, uint8_t id[RECOVER_ID_BYTES])
{
	if (strlen(text) != RECOVER_ID_TEXT - 1)
		return false;
	for (int i = 0; i < RECOVER_ID_BYTES; i++) {
		const char byte[] = {text[2 * i], text[2 * i + 1], 0};
		if (!isxdigit((unsigned char)byte[0]) || !isxdigit((unsigned char)byte[1]))
			return false;
		id[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	return true;
}

/* Return whether the session has not made its trace yet: the trace waits in memory, or is in pieces. Then an older file
   of that name is to be replaced. */
static bool is_unmade(const struct recover_session *session)
{
	char path[sizeof(session->directory) + sizeof(STORE_WAITING_NAME) + 1];
	struct stat status;
	snprintf(path, sizeof(path), "%s/" STORE_WAITING_NAME, session->directory);
	return session->is_in_pieces || lstat(path, &status) == 0;
}

bool recover_is_replaced(const struct recover_session *session)
{
	struct trace *trace;
	struct stat status;
	if (!session->has_id || stat(session->trace_path, &status) != 0 || !S_ISREG(status.st_mode) ||
	    trace_open_as_written(&trace, session->trace_path, &(struct diag){""}) != 0)
		return false;
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	bool is_other = memcmp(dictionary->id, session->id, sizeof(session->id)) != 0;
	if (is_other && is_unmade(session))
		is_other = dictionary->start_realtime_ns > session->clock.start_realtime_ns;
	trace_close(trace);
	return is_other;
}
