/* SPDX-License-Identifier: MIT */
#include "cli/session/push_registered_run.h"

#include <stdio.h>
#include <string.h>

#include "autologger/autologger_files.h"
#include "cli/cli.h"
#include "image/image_files.h"
#include "image/image_recording.h"
#include "push/push_registered.h"

/* Where the image's own session is pushed. Its option is read when it begins: that is seldom. */
static bool image_find(const char *session, char *words, size_t size)
{
	const char *prefix = image_session_prefix();
	struct image_options options = {.count = 0};
	if (strncmp(session, prefix, strlen(prefix)))
		return false;
	words[0] = 0;
	image_options_read(&options);
	for (size_t i = 0; i < options.count; i++)
		if (image_option_has_session(&options.items[i], session))
			snprintf(words, size, "%s", options.items[i].push);
	image_options_fini(&options);
	return words[0];
}

static bool autologger_find(const char *session, char *words, size_t size)
{
	struct autologger_list list = {.count = 0};
	words[0] = 0;
	if (!autologger_list_read(&list, &(struct diag){""})) {
		const struct autologger_entry *entry = autologger_list_find(&list, session);
		if (entry && !entry->error)
			snprintf(words, size, "%s", entry->logger.values[AUTOLOGGER_Push].text);
	}
	autologger_list_fini(&list);
	return words[0];
}

static bool session_find(const char *session, char *words, size_t size)
{
	return image_find(session, words, size) || autologger_find(session, words, size);
}

int push_registered_run(void)
{
	int error = push_registered(session_find);
	return error ? cli_fail("push: %s", strerror(-error)) : CLI_OK;
}
