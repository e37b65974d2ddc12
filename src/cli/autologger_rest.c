/* SPDX-License-Identifier: MIT */
/* What a session has left whose logger was killed, or whose directory was not there, earlier in the same boot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/autologger.h"
#include "cli/own_command.h"
#include "session/recover.h"

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

/* Keep a recovered trace from being replaced by the next one. */
static void keep(const struct autologger *logger, const char *trace)
{
	char kept[sizeof(((struct recover_session *)0)->trace_path) + sizeof(EARLIER_SUFFIX)];
	bool stays = logger->values[AUTOLOGGER_FileMax].number ||
		     (logger->values[AUTOLOGGER_LogFileMode].number & AUTOLOGGER_MODE_APPEND);
	snprintf(kept, sizeof(kept), "%s" EARLIER_SUFFIX, trace);
	if (stays)
		cli_say("autologger %s: %s has what an earlier session of this boot recorded", logger->name, trace);
	else if (rename(trace, kept) == 0)
		cli_say("autologger %s: %s has what an earlier session of this boot recorded", logger->name, kept);
}

void autologger_rest_recover(const struct autologger *logger)
{
	struct recover_session *sessions = NULL;
	char path[AUTOLOGGER_TEXT_BYTES];
	int count = recover_list(&sessions);
	autologger_path(logger, path);
	for (int i = 0; i < count; i++) {
		struct own_words words = {.count = 0};
		struct diag why = {""};
		if (sessions[i].has_logger || !is_own_trace(logger, path, sessions[i].trace_path))
			continue;
		own_words_add(&words, "recover");
		own_words_add(&words, sessions[i].directory);
		if (own_command_run(&words, false, &why) == 0)
			keep(logger, sessions[i].trace_path);
		else
			cli_say("autologger %s: the trace %s of an earlier session cannot be recovered: %s",
				logger->name, sessions[i].trace_path, why.text);
		own_words_fini(&words);
	}
	free(sessions);
}
