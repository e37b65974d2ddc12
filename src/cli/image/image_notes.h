/* SPDX-License-Identifier: MIT */
/** What commands say of the options of images, and the watcher that they wait for. */
#ifndef XHEAP_CLI_IMAGE_NOTES_H
#define XHEAP_CLI_IMAGE_NOTES_H

struct image_option;

/** Wait until the watcher has taken the options as they are now. Return 0; -ESRCH: nobody watches; -ETIMEDOUT. */
int image_await(void);

/** Say that the option is written, and whether starts are watched. */
void image_say_in_force(const struct image_option *option);

/** Let the keeper find sessions at once, if it runs and belongs to this user: one that takes images has begun. */
void image_session_has_begun(void);

/** Say on stderr which images are registered, if any is: that costs as long as it lasts. */
void image_say_what_is_on(void);

#endif
