/* SPDX-License-Identifier: MIT */
#include "query/missing_symbols.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sink.h"
#include "base/text.h"
#include "symbols/package.h"

enum { PACKAGES_MAX = 3 };

/* Packages of the images, each once. */
struct packages {
	char names[PACKAGES_MAX][128];
	size_t count;
	const char *stripped; /* an image that is there and of no package */
	const char *absent;   /* an image that is not there */
};

static void package_add(struct packages *packages, const char *image, const char *path)
{
	char *name = packages->names[packages->count];
	if (!path || access(path, F_OK) != 0) {
		packages->absent = packages->absent ? packages->absent : image;
		return;
	}
	symbols_package(path, name, sizeof(packages->names[0]));
	if (!*name)
		packages->stripped = packages->stripped ? packages->stripped : image;
	for (size_t i = 0; i < packages->count; i++)
		if (!strcmp(packages->names[i], name))
			return;
	packages->count += *name != 0;
}

char *missing_symbols_advice(struct heap_names *names)
{
	struct packages packages = {.count = 0};
	struct sink out;
	size_t count;
	const char *const *images = heap_names_without_symbols(names, &count);
	if (!count)
		return NULL;
	for (size_t i = 0; i < count && packages.count < PACKAGES_MAX; i++)
		package_add(&packages, images[i], heap_names_image_path(names, images[i]));
	sink_to_memory(&out);
	sink_text(&out, "for names: ");
	for (size_t i = 0; i < packages.count; i++)
		sink_format(&out, "%s%s-dbgsym", i ? " " : "install ", packages.names[i]);
	if (packages.count)
		sink_text(&out, getenv("DEBUGINFOD_URLS") ? "" : ", or set DEBUGINFOD_URLS");
	else if (packages.stripped)
		sink_format(&out, "%s is stripped; keep its symbols when it is built", text_shown(packages.stripped));
	else
		sink_format(&out, "run xheap symbols where %s is as it was recorded", text_shown(packages.absent));
	return sink_take(&out, NULL);
}
