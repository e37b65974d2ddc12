/* SPDX-License-Identifier: MIT */
#include "cli/image/image_notes.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "cli/cli.h"
#include "image/image_files.h"
#include "image/image_status.h"
#include "os/monotonic.h"

/* How long a command waits until the watcher has taken the options. */
#define AWAIT_NS (5 * NS_PER_S)

/* A line of names ends before the one with which it would be longer. */
enum { NAMES_SHOWN_BYTES = 200 };

int image_await(void)
{
	return image_status_await(AWAIT_NS, &(struct diag){""});
}

/* Starts are counted since the boot, also those of an option that was removed. */
static void say_first(const struct image_option *option)
{
	const char *title = image_option_title(option);
	struct image_status status;
	image_status_read(&status);
	uint64_t counted = image_status_counted(&status, title), every = option->every > 1 ? option->every : 1;
	image_status_fini(&status);
	if (option->first && counted / every >= option->first)
		cli_say("none is recorded before the next boot: %s matching starts of %s were counted since the boot, "
			"and --first counts those",
			text_count(counted).data, title);
}

void image_say_in_force(const struct image_option *option)
{
	const char *title = image_option_title(option);
	int error = image_await();
	if (!error)
		cli_say("starts of %s are recorded from now on, until xheap image remove %s", title, title);
	else if (error == -ETIMEDOUT)
		cli_say("%s is registered, but the watcher has not taken it yet: xheap image list", title);
	else
		cli_say("%s is registered, but nobody watches: systemctl enable --now xheap-images, or xheap image "
			"watch",
			title);
	say_first(option);
	if (option->service[0])
		cli_say("processes that %s has already are not recorded; systemctl restart %s starts it anew",
			option->service, option->service);
}

void image_session_has_begun(void)
{
	struct image_status status;
	image_status_read(&status);
	if (image_status_is_kept(&status))
		kill(status.keeper, SIGHUP);
	image_status_fini(&status);
}

void image_say_what_is_on(void)
{
	struct image_options options = {0};
	char names[IMAGE_PATH_BYTES + 200] = "", more[64] = "";
	uint64_t left_out = 0;
	image_options_read(&options);
	for (size_t i = 0; i < options.count; i++) {
		const char *title = image_option_title(&options.items[i]);
		size_t length = strlen(names);
		if (!image_option_is_in_force(&options.items[i], time(NULL)))
			continue;
		if (length && length + strlen(title) > NAMES_SHOWN_BYTES)
			left_out++;
		else
			snprintf(names + length, sizeof(names) - length, "%s%s", length ? ", " : "", title);
	}
	if (left_out)
		snprintf(more, sizeof(more), ", and %s more", text_count(left_out).data);
	if (names[0])
		cli_say("starts are recorded of %s%s; xheap image list", names, more);
	image_options_fini(&options);
}
