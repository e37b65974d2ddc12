/* SPDX-License-Identifier: MIT */
/**
 * The images of all traces that a tree of names has (query/frame_names.h): images of one build-id are one, and each
 * image knows which traces have it.
 *
 * Traces may have other versions of a library: libssl.so.1.1 in one, libssl.so.3 in the other. If no file name is the
 * same, both go by the name without the version, libssl.so, so that their functions are the same.
 *
 * If each trace is of one program, and the names of their files differ, all go by that of the first trace: server.new
 * by server.old. If a trace has a file with another one's name beside its own, they stay apart.
 */
#ifndef XHEAP_QUERY_TREE_IMAGES_H
#define XHEAP_QUERY_TREE_IMAGES_H

#include "base/intern.h"
#include "table/table.h"

struct trace_dictionary;
struct trace_image;

/** A trace has an image of the tree. */
struct image_use {
	void *user;                      /**< what stands for the trace */
	const struct trace_image *image; /**< the trace's own */
	uint32_t number, next;           /**< number: the trace's own; next: the image's next use, or TRACE_NONE */
};

/** The program of a trace. */
struct trace_program {
	const void *user;
	const char *name; /**< file name of the only executed file; NULL: there are several, or none */
};

/** Zero it to begin. */
struct tree_images {
	const struct trace_image **items; /**< of the traces; those of the first one keep their numbers */
	uint32_t count;
	size_t capacity;
	struct image_use *uses;
	uint32_t use_count;
	size_t use_capacity;
	uint32_t *first_use; /**< by image, or TRACE_NONE */
	size_t first_use_capacity;
	struct trace_program *programs; /**< of the traces */
	unsigned trace_count;
	size_t program_capacity;
	const char **matched; /**< names of programs that go by the first of these; NULL: not known yet */
	size_t matched_count;
	struct intern stems; /**< file names without versions */
	bool *is_versioned;  /**< by stem: it stands for the file names; NULL: not known yet */
	const char **shown;  /**< the stems that do */
	size_t shown_count;
};

/** Add the images of a trace and set numbers[image] of all of them to their numbers in the tree. */
void tree_images_add(struct tree_images *images, void *user, const struct trace_dictionary *dictionary,
		     uint32_t *numbers);

/** Forget that the user has images. */
void tree_images_leave(struct tree_images *images, const void *user);

/** Return the file name of the image, or the name without the version if that stands for it. All traces were added. */
const char *tree_images_name(struct tree_images *images, const struct trace_image *image);

/** Free it. */
void tree_images_fini(struct tree_images *images);

#endif
