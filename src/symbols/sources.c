/* SPDX-License-Identifier: MIT */
#include "symbols/sources.h"

#include <stdbool.h>
#include <string.h>

/** Return whether the relative path says already where it is: builds that hide their directory write "./part" and
    "./part/x.c". */
static bool source_is_below(const char *directory, const char *file)
{
	size_t length = strlen(directory);
	return !strncmp(directory, file, length) && file[length] == '/';
}

/** Take the last part off what is written; false when there is none that can be taken off. */
static bool source_pop(const char *path, size_t *length)
{
	const char *slash = memrchr(path, '/', *length);
	size_t start = slash ? slash - path + 1 : 0;

	if (start == *length)
		return false;
	if (*length - start == 2 && !memcmp(path + start, "..", 2))
		return false;
	*length = slash && slash > path ? start - 1 : start;
	return true;
}

/** Take out "." and ".." by their meaning where no link is involved; in place. */
static void source_clean(char *path)
{
	bool is_absolute = path[0] == '/';
	size_t length = is_absolute;

	for (const char *part = path; *part;) {
		part += strspn(part, "/");
		size_t size = strcspn(part, "/");
		bool is_up = size == 2 && part[0] == '.' && part[1] == '.';
		if (!size || (size == 1 && part[0] == '.') || (is_up && (source_pop(path, &length) || is_absolute))) {
			part += size;
			continue;
		}
		if (length > is_absolute)
			path[length++] = '/';
		memmove(path + length, part, size);
		length += size;
		part += size;
	}
	path[length] = 0;
}

const char *source_path(struct arena *arena, const char *directory, const char *file)
{
	if (file[0] == '<' || !file[0])
		return file;
	bool is_whole = file[0] == '/' || !directory || !directory[0] || source_is_below(directory, file);
	char *path = is_whole ? arena_text(arena, file) : arena_format(arena, "%s/%s", directory, file);
	source_clean(path);
	return path;
}
