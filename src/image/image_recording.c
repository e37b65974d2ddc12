/* SPDX-License-Identifier: MIT */
#include "image/image_recording.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "session/control/option_rows.h"
#include "session/tracer/image_start.h"

#define OWN_FILE_BYTES (UINT64_C(64) << 20)
#define PUSH_WINDOW_BYTES (UINT64_C(16) << 20)

enum { SHARE_BYTES = 12 };

/* ---- names ---- */

static uint32_t sum_of(const char *text)
{
	uint32_t sum = 2166136261u;
	for (; *text; text++)
		sum = (sum ^ (unsigned char)*text) * 16777619u;
	return sum;
}

/* Copy the image's file name, of this many bytes at most; add a sum if another image could have the same name. */
static void plain_name(const struct image_option *option, char *name, size_t size)
{
	const char *title = image_option_title(option), *image = text_file_name(title);
	size_t length = 0;
	bool is_changed = image != title;
	for (; *image && length + 10 < size; image++, length++) {
		bool is_plain = isalnum((unsigned char)*image) || strchr("_+.", *image);
		name[length] = is_plain && !(length == 0 && *image == '.') ? *image : '-';
		is_changed |= name[length] != *image;
	}
	name[length] = 0;
	if (is_changed || *image)
		snprintf(name + length, size - length, "-%08x", sum_of(title));
}

void image_option_file_name(const struct image_option *option, char name[IMAGE_NAME_BYTES])
{
	enum { SUFFIX_BYTES = 5 };
	plain_name(option, name, IMAGE_NAME_BYTES - SUFFIX_BYTES);
	strcat(name, ".conf");
}

const char *image_session_prefix(void)
{
	static char prefix[24];
	char directory[IMAGE_PATH_BYTES];
	image_directory(IMAGE_DIRECTORY_RUN, directory, sizeof(directory));
	bool is_usual = !strcmp(directory, IMAGE_RUN_USUAL);
	snprintf(prefix, sizeof(prefix), is_usual ? "image." : "image-%08x.", sum_of(directory));
	return prefix;
}

bool image_option_is_shared(const struct image_option *option)
{
	return !option->user[0] && !option->service[0] && (!option->output[0] || image_option_is_each(option));
}

/* What follows the image in the name of a session. No name of an image has an '@' there. */
static const char share_mark[] = "@", share_others[] = "@others";

static void share_text(uint32_t share, char text[SHARE_BYTES])
{
	text[0] = 0;
	if (share == IMAGE_SHARE_OTHERS)
		memcpy(text, share_others, sizeof(share_others));
	else if (share != IMAGE_SHARE_ROOT)
		snprintf(text, SHARE_BYTES, "%s%u", share_mark, share);
}

/* Write the name of a session, without the prefix of all, with this text in place of the share. */
static void own_name(const struct image_option *option, const char *share, char *name, size_t size)
{
	plain_name(option, name, share[0] ? size - SHARE_BYTES : size);
	strcat(name, share);
}

void image_option_session_name(const struct image_option *option, uint32_t share, char name[65])
{
	const char *prefix = image_session_prefix();
	size_t length = strlen(prefix);
	char text[SHARE_BYTES];
	memcpy(name, prefix, length);
	share_text(share, text);
	own_name(option, text, name + length, 65 - length);
}

uint32_t image_session_share(const char *name)
{
	const char *mark = strrchr(name, share_mark[0]);
	if (!mark)
		return IMAGE_SHARE_ROOT;
	return !strcmp(mark, share_others) ? IMAGE_SHARE_OTHERS : (uint32_t)strtoul(mark + 1, NULL, 10);
}

bool image_option_has_session(const struct image_option *option, const char *name)
{
	const uint32_t share = image_session_share(name);
	char own[65];
	image_option_session_name(option, share, own);
	return !strcmp(own, name) && (share == IMAGE_SHARE_ROOT || image_option_is_shared(option));
}

/* ---- traces ---- */

/* Replace what a trace's name has in place of a number by '*'; other characters of patterns stand for themselves. */
static void trace_pattern(const char *path, char *pattern, size_t size)
{
	size_t length = 0;
	for (const char *at = path; *at && length + 3 < size; at++) {
		if (at[0] == '%') {
			at += strcspn(at, "pd");
			pattern[length++] = '*';
			if (!*at)
				break;
			continue;
		}
		if (strchr("*?[\\", *at))
			pattern[length++] = '\\';
		pattern[length++] = *at;
	}
	pattern[length] = 0;
}

/* Write the path of the traces of the image's own session, with this text in place of the share. */
static void own_traces(const struct image_option *option, const char *share, char path[IMAGE_PATH_BYTES])
{
	/* What is pushed has one trace: a window, and sums. */
	const char *number = option->push[0] ? "" : ".%05d";
	char directory[IMAGE_PATH_BYTES], name[65];
	image_directory(IMAGE_DIRECTORY_TRACES, directory, sizeof(directory));
	own_name(option, share, name, sizeof(name) - strlen(image_session_prefix()));
	snprintf(path, IMAGE_PATH_BYTES, "%.700s/%s%s.xht", directory, name, number);
}

static void add_traces(const char *path, uint64_t *files, uint64_t *bytes)
{
	char pattern[2 * IMAGE_PATH_BYTES];
	glob_t found;
	trace_pattern(path, pattern, sizeof(pattern));
	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct stat status;
		if (lstat(found.gl_pathv[i], &status) != 0 || !S_ISREG(status.st_mode))
			continue;
		++*files;
		*bytes += (uint64_t)status.st_size;
	}
	globfree(&found);
}

void image_option_traces(const struct image_option *option, uint64_t *files, uint64_t *bytes)
{
	struct session_options session;
	char room[2 * IMAGE_PATH_BYTES];
	*files = *bytes = 0;
	if (image_option_is_each(option))
		add_traces(option->output, files, bytes);
	if (image_option_recording(option, IMAGE_SHARE_ROOT, 0, &session, room, &(struct diag){""}) == 0)
		add_traces(session.trace_path, files, bytes);
	if (!image_option_is_shared(option))
		return;
	own_traces(option, "@%d", room);
	add_traces(room, files, bytes);
}

void image_option_continue(struct session_options *session)
{
	char pattern[2 * IMAGE_PATH_BYTES];
	glob_t found;
	if (!session_path_is_numbered(session->trace_path))
		return;
	trace_pattern(session->trace_path, pattern, sizeof(pattern));
	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		/* Up to the number both are the same. */
		unsigned long number = strtoul(found.gl_pathv[i] + strcspn(session->trace_path, "%"), NULL, 10);
		if (number < UINT32_MAX && number >= session->first_number)
			session->first_number = (uint32_t)number + 1;
	}
	globfree(&found);
}

/* ---- the recording ---- */

/* Store the words of Options. */
static int take_words(struct session_options *session, const char *words, struct diag *why)
{
	static const struct option_group groups[] = {{session_option_rows, 0, false}, {NULL, 0, false}};
	char text[IMAGE_PATH_BYTES], *rest = text, *word;
	snprintf(text, sizeof(text), "%s", words);
	while ((word = strsep(&rest, " \t"))) {
		const struct option_group *group;
		const struct option *option;
		struct diag reason = {""};
		if (!word[0])
			continue;
		size_t dashes = strspn(word, "-"), length = strcspn(word + dashes, "=");
		if (!dashes || dashes > 2 || options_find(groups, word + dashes, length, true, &group, &option) != 1)
			return diag_fail(why, EINVAL, "Options: %s is not an option of a recording", word);
		const char *value = word[dashes + length] ? word + dashes + length + 1 : option->bare;
		if (!value && option_has_value(option))
			value = rest ? strsep(&rest, " \t") : NULL;
		if (!value && option_has_value(option))
			return diag_fail(why, EINVAL, "Options: %s needs a value", word);
		if (option->type == VALUE_TAKEN)
			return diag_fail(why, ENOTSUP, "Options: %s cannot be used here", word);
		int error = option_store(option, session, value, &reason);
		if (error)
			return diag_fail(why, -error, "Options: %s: %s", word, reason.text);
	}
	return 0;
}

/* Copy the path; %p becomes the pid. */
static void put_pid(char *path, size_t size, const char *template, pid_t pid)
{
	size_t length = 0;
	for (const char *at = template; *at && length + 1 < size; at++) {
		if (at[0] == '%' && at[1] == 'p') {
			length += (size_t)snprintf(path + length, size - length, "%d", (int)pid);
			at++;
		} else {
			path[length++] = *at;
		}
		length = length < size ? length : size - 1;
	}
	path[length] = 0;
}

int image_option_recording(const struct image_option *option, uint32_t share, pid_t pid,
			   struct session_options *session, char room[2 * IMAGE_PATH_BYTES], struct diag *why)
{
	enum { PAGE_BYTES = 4096 };
	char name[65];
	session_options_init(session);
	int error = take_words(session, option->options, why);
	if (error)
		return error;
	if (session->file_mode != SESSION_FILE_SEQUENTIAL || session->index == SESSION_INDEX_ALWAYS ||
	    session->triggers || session->keeps_live || session->until_exit)
		return diag_fail(
			why, ENOTSUP,
			"Options: a recording by image has files of its own kind; xheap start NAME -p 0 begins a "
			"session with another one, and Session = NAME uses it");
	session->buffer_size = (session->buffer_size + PAGE_BYTES - 1) & ~(uint32_t)(PAGE_BYTES - 1);
	if (session->buffer_max < session->buffer_min)
		session->buffer_max = session->buffer_min;
	/* Its logger is no command. */
	session->index = SESSION_INDEX_NEVER;
	session->drops_empty = true;
	session->command = image_option_title(option);
	session->trace_path = room;
	image_option_session_name(option, share, name);
	if (image_option_is_each(option) && pid) {
		put_pid(room, IMAGE_PATH_BYTES, option->output, pid);
		return 0;
	}
	snprintf(room + IMAGE_PATH_BYTES, IMAGE_PATH_BYTES, "%s", name);
	session->session_name = room + IMAGE_PATH_BYTES;
	session->file_mode = option->push[0] ? SESSION_FILE_KEEP : SESSION_FILE_NEWFILE;
	if (!session->max_file_bytes)
		session->max_file_bytes = option->push[0] ? PUSH_WINDOW_BYTES : OWN_FILE_BYTES;
	if (option->output[0] && !image_option_is_each(option)) {
		snprintf(room, IMAGE_PATH_BYTES, "%s", option->output);
		if (!session_path_is_numbered(room) && !option->push[0])
			session->file_mode = SESSION_FILE_SEQUENTIAL;
	} else {
		char text[SHARE_BYTES];
		share_text(share, text);
		own_traces(option, text, room);
	}
	return 0;
}
