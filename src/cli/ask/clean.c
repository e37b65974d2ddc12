/* SPDX-License-Identifier: MIT */
/* xheap clean: removes indexes, which the next report makes again. Names of code are kept unless they are named: an
   image that is gone cannot give them again. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/option_parser.h"
#include "table/index_cache.h"
#include "table/index_file.h"
#include "trace/reader.h"

struct clean_options {
	const char **paths; /* of traces */
	size_t count, capacity;
	bool is_dry, with_symbols;
};

/* What was removed, or would be. */
struct cleaned {
	bool is_dry, has_failed;
	uint64_t count, bytes;
};

/* ---- one file ---- */

/* How long ago the file was used, in whole units: "3 days" */
static struct text age_text(const struct stat *status)
{
	static const struct {
		int64_t seconds;
		const char *name;
	} units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
	struct text text;
	int64_t age_s = time(NULL) - status->st_mtim.tv_sec, unit = 0;
	while (units[unit].seconds > 1 && age_s < units[unit].seconds)
		unit++;
	long long count = age_s > 0 ? age_s / units[unit].seconds : 0;
	snprintf(text.data, sizeof(text.data), "%lld %s%s", count, units[unit].name, count == 1 ? "" : "s");
	return text;
}

/* Remove a file of the kind. `of`: what it belongs to; "": that is not known. */
static void file_remove(struct cleaned *cleaned, const char *kind, const char *path, const char *of)
{
	struct stat status;
	if (lstat(path, &status))
		return;
	if (!cleaned->is_dry && unlink(path)) {
		cleaned->has_failed = cleaned->has_failed || errno != ENOENT;
		if (errno != ENOENT)
			cli_fail("cannot remove %s: %s", path, strerror(errno));
		return;
	}
	cleaned->count++;
	cleaned->bytes += (uint64_t)status.st_size;
	printf("%-7s %10s  %s%s%s, last used %s ago\n", kind, text_bytes((uint64_t)status.st_size).data,
	       text_shown(path), *of ? " of " : "", text_shown(of), age_text(&status).data);
}

/* ---- all of a kind ---- */

static int indexes_remove(struct cleaned *cleaned)
{
	char path[CACHE_PATH_BYTES + INDEX_CACHE_NAME_BYTES], origin[HEAP_INDEX_ORIGIN_BYTES];
	struct index_cache_list list;
	struct diag diag = {""};
	int error = index_cache_list(&list, &diag);
	for (size_t i = 0; i < list.count; i++) {
		snprintf(path, sizeof(path), "%s%s", list.directory, list.entries[i].name);
		index_cache_is_index(path, origin);
		file_remove(cleaned, "index", path, origin);
	}
	index_cache_list_fini(&list);
	return error && error != -ENOENT ? cli_fail("%s", diag.text) : CLI_OK;
}

/* Files of names have the digits of a build-id as their name; an unfinished one has more behind them. */
static bool is_symbol_name(const char *name)
{
	return strspn(name, "0123456789abcdef") > 1;
}

static int symbols_remove(struct cleaned *cleaned)
{
	char path[CACHE_PATH_BYTES], file[CACHE_PATH_BYTES + 256];
	struct diag diag = {""};
	int error = cache_directory(path, "symbols", false, &diag);
	DIR *directory = error ? NULL : opendir(path);
	if (!directory)
		return error && error != -ENOENT ? cli_fail("%s", diag.text) : CLI_OK;
	const struct dirent *found;
	while ((found = readdir(directory)))
		if (is_symbol_name(found->d_name)) {
			snprintf(file, sizeof(file), "%s%s", path, found->d_name);
			file_remove(cleaned, "symbols", file, "");
		}
	closedir(directory);
	return CLI_OK;
}

/* ---- of one trace ---- */

/* Remove the file beside a trace only if it is an index: anybody may call a file so. */
static void beside_remove(struct cleaned *cleaned, const char *path, const char *trace_path)
{
	char origin[HEAP_INDEX_ORIGIN_BYTES];
	if (index_cache_is_index(path, origin))
		file_remove(cleaned, "index", path, trace_path);
}

/* A trace that is gone may have left an index beside it. */
static int gone_remove(struct cleaned *cleaned, const char *path, const struct diag *diag)
{
	uint64_t before = cleaned->count;
	char *beside;
	if (asprintf(&beside, "%s.index", path) < 0)
		memory_exhausted(strlen(path));
	if (access(path, F_OK))
		beside_remove(cleaned, beside, path);
	free(beside);
	return cleaned->count > before ? CLI_OK : cli_fail("%s", diag->text);
}

static int trace_indexes_remove(struct cleaned *cleaned, const char *path)
{
	char *paths[INDEX_CACHE_PLACES];
	struct diag diag = {""};
	struct trace *trace;
	if (trace_open(&trace, path, &diag))
		return gone_remove(cleaned, path, &diag);
	index_cache_paths(paths, trace, path);
	trace_close(trace);
	for (unsigned i = 0; i < INDEX_CACHE_PLACES; i++) {
		if (paths[i])
			beside_remove(cleaned, paths[i], path);
		free(paths[i]);
	}
	return CLI_OK;
}

/* ---- the command ---- */

static int add_path(void *context, char *word)
{
	struct clean_options *options = context;
	memory_grow(options->paths, options->count, options->capacity);
	options->paths[options->count++] = word;
	return 0;
}

static const struct option clean_rows[] = {
	{"dryRun", .letter = 'n', .type = VALUE_ON, OPTION_AT(struct clean_options, is_dry),
	 .help = "remove nothing, only list it"},
	{"symbols", .type = VALUE_ON, OPTION_AT(struct clean_options, with_symbols),
	 .help = "also remove the names of code that xheap symbols has found"},
	{.type = VALUE_END},
};
static const struct option_group clean_groups[] = {{clean_rows, 0, false}, {NULL, 0, false}};
static const struct option_grammar grammar = {.command = "clean", .groups = clean_groups, .dashes = "-"};

static int clean(const struct clean_options *options)
{
	struct cleaned cleaned = {.is_dry = options->is_dry};
	int status = options->count ? CLI_OK : indexes_remove(&cleaned);
	for (size_t i = 0; i < options->count; i++)
		if (trace_indexes_remove(&cleaned, options->paths[i]) != CLI_OK)
			status = CLI_FAILED;
	if (options->with_symbols && symbols_remove(&cleaned) != CLI_OK)
		status = CLI_FAILED;
	if (cleaned.count)
		printf("%s %s file%s, %s\n", options->is_dry ? "would remove" : "removed",
		       text_count(cleaned.count).data, cleaned.count == 1 ? "" : "s", text_bytes(cleaned.bytes).data);
	else if (status == CLI_OK && !cleaned.has_failed)
		puts("there is nothing to remove");
	return cleaned.has_failed ? CLI_FAILED : status;
}

static int clean_run(int argc, char **argv)
{
	struct clean_options options = {.count = 0};
	int status = options_parse(&grammar, argc, argv, &options, add_path, NULL) ? CLI_FAILED : clean(&options);
	free(options.paths);
	return status;
}

const struct command command_clean = {
	.name = "clean",
	.usage = "[FILE...] [-n] [-symbols]",
	.summary = "remove the indexes that reports have made",
	.run = clean_run,
	.options = &grammar,
	.help = "Without FILE, clean removes all indexes of your cache; with FILE, those of these traces, also beside "
		"them.\n"
		"The next report makes an index again. Traces stay as they are.\n\n"
		"Example:\n  xheap clean -n\n",
};
