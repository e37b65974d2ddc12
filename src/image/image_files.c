/* SPDX-License-Identifier: MIT */
/* The directory of image options. */
#include "image/image_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/trusted_files.h"
#include "image/image_recording.h"

/* ---- reading ---- */

/* file: "" for the directory; title: of the option, as far as it could be read. */
static void add_mistake(struct image_options *options, const char *file, const char *title, const struct diag *why)
{
	memory_grow(options->mistakes, options->mistake_count, options->mistake_capacity);
	struct image_mistake *mistake = &options->mistakes[options->mistake_count++];
	*mistake = (struct image_mistake){.why = *why};
	snprintf(mistake->file, sizeof(mistake->file), "%s", file);
	snprintf(mistake->title, sizeof(mistake->title), "%s", title);
}

static void read_one(void *cookie, int directory, const char *name)
{
	struct image_options *options = cookie;
	char directory_path[IMAGE_PATH_BYTES], path[IMAGE_PATH_BYTES + IMAGE_NAME_BYTES];
	struct image_option option;
	struct diag mistake = {""};
	image_option_init(&option);
	image_directory(IMAGE_DIRECTORY_OPTIONS, directory_path, sizeof(directory_path));
	snprintf(path, sizeof(path), "%s/%s", directory_path, name);
	FILE *file;
	int error = trusted_file_open(directory, name, path, &file, &mistake);
	if (!error) {
		error = image_option_read(&option, file, path, &mistake);
		fclose(file);
	}
	const struct image_option *other = error ? NULL : image_options_find(options, image_option_title(&option));
	if (other)
		error = diag_fail(&mistake, EEXIST, "%s: %s has an option already, in %s", path,
				  image_option_title(&option), other->file);
	struct diag reason = {""};
	if (!error && image_option_check_domain(&option, &reason))
		error = diag_fail(&mistake, EACCES, "%s is not in force: %s", path, reason.text);
	if (!error && options->count == IMAGE_OPTION_MAX)
		error = diag_fail(&mistake, ENOSPC, "%s: there are %d options already", path, IMAGE_OPTION_MAX);
	if (error) {
		add_mistake(options, name, image_option_title(&option), &mistake);
		return;
	}
	snprintf(option.file, sizeof(option.file), "%s", name);
	memory_grow(options->items, options->count, options->capacity);
	options->items[options->count++] = option;
}

void image_options_read(struct image_options *options)
{
	char path[IMAGE_PATH_BYTES];
	struct diag mistake = {""};
	image_directory(IMAGE_DIRECTORY_OPTIONS, path, sizeof(path));
	if (trusted_files_visit(path, read_one, options, &mistake))
		add_mistake(options, "", "", &mistake);
}

void image_options_fini(struct image_options *options)
{
	free(options->items);
	free(options->mistakes);
	*options = (struct image_options){0};
}

struct image_option *image_options_find(const struct image_options *options, const char *image)
{
	for (size_t i = 0; i < options->count; i++)
		if (!strcmp(image_option_title(&options->items[i]), image) || !strcmp(options->items[i].file, image))
			return &options->items[i];
	return NULL;
}

const struct image_mistake *image_options_find_mistake(const struct image_options *options, const char *image)
{
	struct image_option named;
	char usual[IMAGE_NAME_BYTES];
	/* Of a file whose Image cannot be read, the name says what it is for. */
	image_option_init(&named);
	snprintf(named.image, sizeof(named.image), "%s", image);
	image_option_file_name(&named, usual);
	for (size_t i = 0; i < options->mistake_count; i++) {
		const struct image_mistake *mistake = &options->mistakes[i];
		bool is_usual = !mistake->title[0] && !strcmp(mistake->file, usual);
		if (mistake->file[0] && (is_usual || !strcmp(mistake->title, image) || !strcmp(mistake->file, image)))
			return mistake;
	}
	return NULL;
}

/* ---- writing ---- */

int image_directory_make(enum image_directory directory, mode_t mode, struct diag *diag)
{
	char path[IMAGE_PATH_BYTES];
	image_directory(directory, path, sizeof(path));
	return trusted_directory_make(path, mode, diag);
}

/* Refuse values that a file cannot have: lines are limited, and a blank before ';' begins a comment. */
static int check_is_readable(const struct image_option *option, struct diag *diag)
{
	struct image_option again;
	struct diag why = {""};
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	if (!file)
		return diag_errno(diag, "cannot write %s", option->file);
	image_option_write(option, file);
	fclose(file);
	file = fmemopen(text, size, "r");
	int error = file ? image_option_read(&again, file, option->file, &why) : diag_errno(&why, "no memory");
	if (file)
		fclose(file);
	free(text);
	if (error)
		return diag_fail(diag, -error, "%s", why.text);
	memcpy(again.file, option->file, sizeof(again.file));
	return memcmp(&again, option, sizeof(again))
		       ? diag_fail(diag, EINVAL,
				   "%s: a value would be read as another one: it has \" ;\", or blanks at an end",
				   option->file)
		       : 0;
}

static void print_option(const void *option, FILE *file)
{
	image_option_write(option, file);
}

int image_file_write(struct image_option *option, struct diag *diag)
{
	char path[IMAGE_PATH_BYTES];
	image_directory(IMAGE_DIRECTORY_OPTIONS, path, sizeof(path));
	if (!option->file[0])
		image_option_file_name(option, option->file);
	int error = check_is_readable(option, diag);
	return error ? error : trusted_file_write(path, option->file, print_option, option, diag);
}

int image_file_remove(const char *name, struct diag *diag)
{
	char path[IMAGE_PATH_BYTES];
	image_directory(IMAGE_DIRECTORY_OPTIONS, path, sizeof(path));
	return trusted_file_remove(path, name, diag);
}
