/* SPDX-License-Identifier: MIT */
/**
 * What earlier profiles of a session had, kept beside its queue for the pusher after this one: the file `past`. A push
 * makes two files, and may be killed between any two steps:
 *
 *     the profile under its temporary name;  past.new, which names the profile
 *     the profile gets its name              from here on, past.new is right
 *     past.new becomes past
 *
 * So each profile is either in the past, or was not made.
 */
#ifndef XHEAP_PUSH_PAST_H
#define XHEAP_PUSH_PAST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "export/export_past.h"

/** Of a larger file, the successor begins anew: at 24 bytes a stack, that are 700,000 stacks. */
#define PUSH_PAST_BYTES (UINT64_C(16) << 20)

/** Whose past it is. That of another session or another place is none. */
struct push_past_key {
	const char *place; /**< its address, or the directory's path from the root on */
	int64_t start_ns;  /**< of the session, since 1970 */
};

/** Write past.new into the directory. `made` is the name of the profile there, or a path; `number` is of the next
    one. Where there is no room the former past stays: a successor counts what came since again. */
void push_past_write(int directory, const struct push_past_key *key, const struct export_past *past, const char *made,
		     uint64_t number);

/** The profile has its name, or else it was not made. */
void push_past_settle(int directory, bool is_made);

/** Add to `past`, which is empty, what the file has, and set *number. Return 0, also without such a file, or -EBADMSG
    with the reason in `diag`. Remove past.new in any case. */
int push_past_read(int directory, const struct push_past_key *key, struct export_past *past, uint64_t *number,
		   struct diag *diag);

/** Remove the file: the session is over. */
void push_past_remove(int directory);

#endif
