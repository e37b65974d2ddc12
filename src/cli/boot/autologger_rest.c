/* SPDX-License-Identifier: MIT */
#include "cli/boot/autologger_rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/boot/autologger.h"
#include "cli/own_command.h"
#include "session/recover/recover.h"

#define EARLIER_SUFFIX ".earlier"

/* Return whether the trace is the autologger's: its file, or one of its generations. */
static bool is_own_trace(const struct autologger *logger, const char *path, const char *trace)
{
	size_t length = strlen(path);
	if (strncmp(path, trace, length))
		return false;
	const char *rest = trace + length;
	bool has_generations = logger->values[AUTOLOGGER_FileMax].number != 0;
	return !rest[0] || (has_generations && rest[0] == '.' && strspn(rest + 1, "0123456789") == strlen(rest + 1));
}

/* Keep a recovered trace from being replaced by the next one. Return its name, which is `kept` or as before. */
static const char *keep(const struct autologger *logger, const char *trace, const char *kept)
{
	bool stays = logger->values[AUTOLOGGER_FileMax].number ||
		     (logger->values[AUTOLOGGER_LogFileMode].number & AUTOLOGGER_MODE_APPEND);
	return stays || rename(trace, kept) != 0 ? trace : kept;
}

/* Recover one session. If a later one has replaced its trace, the rest gets a file of its own. */
static void recover_one(const struct autologger *logger, const struct recover_session *session)
{
	struct own_words words = {.count = 0};
	struct diag why = {""};
	char kept[sizeof(session->trace_path) + sizeof(EARLIER_SUFFIX)];
	bool is_replaced = recover_is_replaced(session);
	snprintf(kept, sizeof(kept), "%s" EARLIER_SUFFIX, session->trace_path);
	own_words_add(&words, "recover");
	if (is_replaced) {
		own_words_add(&words, "-o");
		own_words_add(&words, kept);
	}
	own_words_add(&words, session->directory);
	if (own_command_run(&words, false, &why) == 0)
		cli_say("autologger %s: %s has the events of an earlier session", logger->name,
			is_replaced ? kept : keep(logger, session->trace_path, kept));
	else
		cli_say("autologger %s: the trace %s of an earlier session cannot be recovered: %s", logger->name,
			session->trace_path, why.text);
	own_words_fini(&words);
}

void autologger_rest_recover(const struct autologger *logger)
{
	struct recover_session *sessions = NULL;
	char path[AUTOLOGGER_TEXT_BYTES];
	int count = recover_list(&sessions);
	autologger_path(logger, path);
	for (int i = 0; i < count; i++)
		if (!sessions[i].has_logger && is_own_trace(logger, path, sessions[i].trace_path))
			recover_one(logger, &sessions[i]);
	free(sessions);
}
