/* SPDX-License-Identifier: MIT */
/** A file that xheap push has written into a directory: a profile of pprof, whose comments say what it is of. The bytes
    are anybody's. */
#ifndef XHEAP_PUSHED_PROFILE_H
#define XHEAP_PUSHED_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"

/** The largest profile, unpacked: some 300,000 stacks. */
#define PUSHED_BYTES_MAX (UINT64_C(64) << 20)

/** What a profile is of. The texts are of the arena that it was read into. Times are in ns since 1970, by the clock of
    the host. */
struct pushed_head {
	const char *service, *version, *host, *instance; /**< version: "" if it is not known */
	int64_t start_ns;                                /**< the session began; 0: not known */
	int64_t from_ns, until_ns;                       /**< what its totals are of */
	int64_t pushed_ns;
	uint64_t number, period_bytes; /**< of the push; of the sample, 1: it is none */
};

/** Values of a stack, as pprof has them. */
enum { PUSHED_ALLOC_OBJECTS, PUSHED_ALLOC_SPACE, PUSHED_INUSE_OBJECTS, PUSHED_INUSE_SPACE, PUSHED_VALUES };

/** A stack of the profile: its functions, inlined ones too, from inside out, and its values. */
struct pushed_sample {
	const uint32_t *frames; /**< places in pushed_profile.frames */
	size_t frame_count;
	uint64_t values[PUSHED_VALUES];
};

/** A text that is not ended by a NUL. */
struct pushed_text {
	const char *data;
	size_t size;
};

/** A function in an image, by names. */
struct pushed_frame {
	struct pushed_text function, image; /**< image: a path; empty if it is not known */
};

/** What reads files, one after the other. */
struct pushed_reader;

/** Return a reader. End it with pushed_reader_free(). */
struct pushed_reader *pushed_reader_new(void);

/** Free the reader and what it has read. */
void pushed_reader_free(struct pushed_reader *reader);

/** Read what the profile is of, which is rarely more than the first bytes of the file. Return 0, or a negative errno
    with the reason in `diag`. */
int pushed_head_read(struct pushed_reader *reader, int file, struct pushed_head *head, struct arena *arena,
		     struct diag *diag);

/** Read all of the file, from its beginning. Return 0, or a negative errno with the reason in `diag`. */
int pushed_profile_read(struct pushed_reader *reader, int file, struct diag *diag);

/** Return the frames of that profile, each function of each image once, and set *count. Valid until the next
    reading. */
const struct pushed_frame *pushed_profile_frames(const struct pushed_reader *reader, size_t *count);

/** Return whether anything was in use. */
bool pushed_profile_has_use(struct pushed_reader *reader);

/** Read the next sample of that profile; *at is 0 for the first one. Return false: there is none. */
bool pushed_profile_next(struct pushed_reader *reader, size_t *at, struct pushed_sample *sample);

#endif
