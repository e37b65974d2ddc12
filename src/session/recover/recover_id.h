/* SPDX-License-Identifier: MIT */
/** The id of a session's trace, by which recovery knows it: a later session may have given its trace the same name. */
#ifndef XHEAP_SESSION_RECOVER_ID_H
#define XHEAP_SESSION_RECOVER_ID_H

#include <stdbool.h>
#include <stdint.h>

enum { RECOVER_ID_BYTES = 16, RECOVER_ID_TEXT = 2 * RECOVER_ID_BYTES + 1 };

/** Write the id as hexadecimal digits. */
void recover_id_text(const uint8_t *id, char text[RECOVER_ID_TEXT]);

/** Read such a text. Return false if it is none. */
bool recover_id_parse(const char *text, uint8_t id[RECOVER_ID_BYTES]);

#endif
