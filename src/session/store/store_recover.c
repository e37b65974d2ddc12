/* SPDX-License-Identifier: MIT */
#include "session/store/store_recover.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/order.h"
#include "session/store/store_state.h"
#include "trace/merge.h"

/* List the numbers of files of this name, in order. */
static uint32_t find_numbers(const char *directory, const char *name, uint32_t **numbers)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	uint32_t count = 0;
	*numbers = NULL;
	while (stream && (entry = readdir(stream))) {
		char *end = entry->d_name;
		if (strncmp(entry->d_name, name, strlen(name)) != 0)
			continue;
		unsigned long number = strtoul(entry->d_name + strlen(name), &end, 10);
		uint32_t *larger =
			*end || number >= UINT32_MAX ? NULL : realloc(*numbers, (count + 1) * sizeof(*larger));
		if (!larger)
			continue;
		*numbers = larger;
		larger[count++] = (uint32_t)number;
	}
	if (stream)
		closedir(stream);
	if (count)
		qsort(*numbers, count, sizeof(**numbers), compare_u32);
	return count;
}

int store_recover(const char *directory, const char *output, struct diag *diag)
{
	uint32_t *numbers, *folded, count = find_numbers(directory, PIECE_NAME, &numbers),
				    folded_count = find_numbers(directory, FOLDED_NAME, &folded);
	char(*paths)[WRITER_PATH_MAX] = calloc(count + 1, sizeof(*paths));
	const char **names = calloc(count + 1, sizeof(*names));
	uint32_t least = folded_count ? folded[folded_count - 1] : 0, taken = 0;
	int error = paths && names ? 0 : diag_fail(diag, ENOMEM, "no memory for the pieces in %s", directory);
	if (!error && folded_count)
		snprintf(paths[taken++], sizeof(*paths), "%s/" FOLDED_NAME "%" PRIu32, directory, least);
	for (uint32_t i = 0; i < count && !error; i++)
		if (numbers[i] >= least)
			snprintf(paths[taken++], sizeof(*paths), "%s/" PIECE_NAME "%" PRIu32, directory, numbers[i]);
	for (uint32_t i = 0; i < taken; i++)
		names[i] = paths[i];
	if (!error)
		error = taken ? trace_join(output, names, taken, NULL, diag)
			      : diag_fail(diag, ENOENT, "no pieces in %s", directory);
	free(numbers);
	free(folded);
	free(paths);
	free(names);
	return error;
}

void store_remove(const char *directory)
{
	/* The last: what is left of a whole file whose process was ended while it wrote, as that which folds may be. */
	static const char *const names[] = {PIECE_NAME, FOLDED_NAME, FOLDING_NAME, SNAPSHOT_NAME, ".xheap."};
	DIR *stream = opendir(directory);
	struct dirent *entry;
	while (stream && (entry = readdir(stream)))
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (!strncmp(entry->d_name, names[i], strlen(names[i])))
				unlinkat(dirfd(stream), entry->d_name, 0);
	if (stream)
		closedir(stream);
	rmdir(directory);
}
