/* SPDX-License-Identifier: MIT */
#include "query/missing_symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sink.h"
#include "base/text.h"
#include "symbols/package.h"

enum { PACKAGES_MAX = 3 };

/* What is known of the images: the first ones are asked about. */
struct missing {
	const char *paths[PACKAGE_PATHS_MAX]; /* of those that are there */
	const char *images[PACKAGE_PATHS_MAX];
	size_t count;
	const char *absent; /* an image that is not there */
	const char *unfit;  /* an image at whose path something else than a file is */
};

static struct missing images_find(struct heap_names *names, const char *const *images, size_t count)
{
	struct missing missing = {.count = 0};
	for (size_t i = 0; i < count && missing.count < PACKAGE_PATHS_MAX; i++) {
		struct stat status;
		const char *path = heap_names_image_path(names, images[i]);
		if (path && stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
			missing.unfit = images[i];
		} else if (path && access(path, F_OK) == 0) {
			missing.images[missing.count] = images[i];
			missing.paths[missing.count++] = path;
		} else if (!missing.absent) {
			missing.absent = images[i];
		}
	}
	return missing;
}

/* Write what to install: the packages of the images, each once. Those of their symbols are not known: distributions
   name them as they like. Return an image of no package; NULL: there is none. */
static const char *packages_put(const struct missing *missing, struct sink *out, size_t *count)
{
	char packages[PACKAGE_PATHS_MAX][PACKAGE_NAME_BYTES];
	const char *stripped = NULL;
	*count = 0;
	symbols_packages(missing->paths, missing->count, packages);
	for (size_t i = 0; i < missing->count; i++) {
		size_t same = 0;
		while (strcmp(packages[same], packages[i]) != 0)
			same++;
		if (!packages[i][0])
			stripped = stripped ? stripped : missing->images[i];
		else if (same == i && *count < PACKAGES_MAX)
			sink_format(out, "%s%s", (*count)++ ? ", " : "install debug symbols (-dbgsym, -dbg) of ",
				    packages[i]);
	}
	return stripped;
}

char *missing_symbols_advice(struct heap_names *names, bool asks_packages)
{
	struct sink out;
	size_t count, package_count = 0;
	const char *const *images = heap_names_without_symbols(names, &count), *stripped = NULL;
	if (!count)
		return NULL;
	struct missing missing = images_find(names, images, count);
	const char *or_debuginfod = getenv("DEBUGINFOD_URLS") ? "" : ", or set DEBUGINFOD_URLS";
	sink_to_memory(&out);
	sink_text(&out, "for names: ");
	if (missing.count && asks_packages)
		stripped = packages_put(&missing, &out, &package_count);
	if (package_count)
		sink_text(&out, or_debuginfod);
	else if (stripped)
		sink_format(&out, "%s is stripped; keep its symbols when it is built", text_shown(stripped));
	else if (missing.count)
		sink_format(&out, "install the packages of their debug symbols%s", or_debuginfod);
	else if (missing.absent)
		sink_format(&out, "run xheap symbols where %s is as it was recorded", text_shown(missing.absent));
	if (missing.unfit)
		sink_format(&out, "%s%s was left out: at its path is no file any more",
			    missing.count || missing.absent ? "; " : "", text_shown(missing.unfit));
	return sink_take(&out, NULL);
}

void missing_symbols_package(const struct heap_names *names, const char *image, char *package, size_t size)
{
	char found[1][PACKAGE_NAME_BYTES] = {""};
	const char *path = heap_names_image_path(names, image);
	if (path)
		symbols_packages(&path, 1, found);
	snprintf(package, size, "%s", found[0]);
}
