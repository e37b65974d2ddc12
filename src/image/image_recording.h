/* SPDX-License-Identifier: MIT */
/** Names, traces and options of the recordings of an image option. */
#ifndef XHEAP_IMAGE_IMAGE_RECORDING_H
#define XHEAP_IMAGE_IMAGE_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/image_option.h"

/** Write the name of the option's file: the image's own, and a sum if the image is a path or no clear name. */
void image_option_file_name(const struct image_option *option, char name[IMAGE_NAME_BYTES]);

/** Return what the names of images' own sessions begin with: "image.", or a name for trusted_root(). */
const char *image_session_prefix(void);

/** Return whether starts of root and those of each other user have sessions of their own: the option is for processes
    of all users, and has no path of its own for one trace. */
bool image_option_is_shared(const struct image_option *option);

/** Write the name of the image's own session for the starts of a user: IMAGE_SHARE_ROOT is for all of an option that is
    not shared, IMAGE_SHARE_OTHERS for users beyond those with a session of their own. */
void image_option_session_name(const struct image_option *option, uint32_t share, char name[65]);

/** Return whether an image's own session with this name is the option's. */
bool image_option_has_session(const struct image_option *option, const char *name);

/** Return the share in the name of an image's own session. */
uint32_t image_session_share(const char *name);

/** Sum up the traces of the image's own session, and of its processes with %p: files and bytes. */
void image_option_traces(const struct image_option *option, uint64_t *files, uint64_t *bytes);

/** Let the numbers of the recording's traces go on behind those that exist: no trace is overwritten. */
void image_option_continue(struct session_options *session);

/** Set the options of a recording: those of the option, in a session of its own for the image and the share, or
    for the process `pid` (0: none) with a trace of its own. The texts are the option's, or lie in `room`. Return 0 or a
    negative errno. */
int image_option_recording(const struct image_option *option, uint32_t share, pid_t pid,
			   struct session_options *session, char room[2 * IMAGE_PATH_BYTES], struct diag *why);

#endif
