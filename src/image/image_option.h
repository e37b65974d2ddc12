/* SPDX-License-Identifier: MIT */
/** An image option: which starts of an image are recorded, where, and how. docs/image-options.md describes its
    file. */
#ifndef XHEAP_IMAGE_IMAGE_OPTION_H
#define XHEAP_IMAGE_IMAGE_OPTION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/diag.h"
#include "session/control/control.h"
#include "session/control/options.h"

enum {
	IMAGE_NAME_BYTES = 256,
	IMAGE_PATH_BYTES = 1024,
	IMAGE_OPTION_MAX = 1024, /* in force at once */
	IMAGE_FLAG_HEAP = 1,
	IMAGE_FLAG_SECTIONS = 2, /* critical sections, which Linux does not have */
	IMAGE_SHARE_ROOT = 0,
};
#define IMAGE_SHARE_OTHERS UINT32_MAX

struct image_option {
	char file[IMAGE_NAME_BYTES];  /**< name of its file, without the directory */
	char image[IMAGE_PATH_BYTES]; /**< a file name without a path, or an absolute path */
	/** the unit that it is limited to; "": none. Without an image: all that the unit executes */
	char service[IMAGE_NAME_BYTES];
	char session[65]; /**< the session that takes its starts first; "": none */
	char output[IMAGE_PATH_BYTES];
	char user[65];  /**< a name or a number; "": every user */
	char owner[65]; /**< of the executable, as `user`; "": every owner */
	char arguments[CONTROL_PATTERN_BYTES], cgroup[CONTROL_PATTERN_BYTES];
	char push[IMAGE_PATH_BYTES];    /**< words of xheap push behind the session: PLACE OPTIONS; "": not pushed */
	char options[IMAGE_PATH_BYTES]; /**< words of xheap start */
	uint64_t flags;                 /**< TracingFlags */
	uint64_t first, every;          /**< 0: all */
	int64_t until_s;                /**< time since the epoch at which it ends; 0: never */
	bool is_privileged, is_enabled;
	bool has_scripts; /**< of a path: a script that the file interprets is a start of it */
	bool is_forced;   /**< also if SELinux changes the domain of the program */
	uint32_t user_id, owner_id;
};

/** Give the option its initial values. */
void image_option_init(struct image_option *option);

/** Store the value of a key of the file, or of the command's option with the same meaning. Return 0, or a negative
    errno with the reason in `why`. */
int image_option_set(struct image_option *option, const char *key, const char *value, struct diag *why);

/** Check what the values mean together, and find the user's number. Return 0, or a negative errno with the reason. */
int image_option_check(struct image_option *option, struct diag *why);

/** Refuse a file that SELinux runs in another domain, as long as nobody forces it. Return 0, or a negative errno with
    the reason. */
int image_option_check_domain(const struct image_option *option, struct diag *why);

/** Read a file. `path` is for messages, which have it with the line. Return 0, or a negative errno. */
int image_option_read(struct image_option *option, FILE *file, const char *path, struct diag *why);

/** Write the text of its file. */
void image_option_write(const struct image_option *option, FILE *file);

/** Call `visit` with each key that has another value than the initial one. */
void image_option_each(const struct image_option *option,
		       void (*visit)(void *cookie, const char *key, const char *value), void *cookie);

/** Return what commands, counts and sessions call the option: its image, or its unit if it has none. */
const char *image_option_title(const struct image_option *option);

/** Return whether the image is one file, given by its path. */
bool image_option_is_path(const struct image_option *option);

/** Return whether each process gets a trace of its own. */
bool image_option_is_each(const struct image_option *option);

/** Return whether the option is in force at this time (seconds since the epoch). */
bool image_option_is_in_force(const struct image_option *option, int64_t now_s);

#endif
