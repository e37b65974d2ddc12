/* SPDX-License-Identifier: MIT */
/** The reason for a failure, as one sentence for people: "what: why". The caller owns it; nothing is printed here. */
#ifndef XHEAP_BASE_DIAG_H
#define XHEAP_BASE_DIAG_H

#include <stdarg.h>
#include <stdbool.h>

/** The text of the innermost failure; "" before one. */
struct diag {
	char text[512];
};

/** Set the text, unless an earlier call has set it (the innermost cause is the most specific), and return -error. */
__attribute__((format(printf, 3, 4))) int diag_fail(struct diag *diag, int error, const char *format, ...);

/** As diag_fail() with errno; add ": " and the system's text for errno. */
__attribute__((format(printf, 2, 3))) int diag_errno(struct diag *diag, const char *format, ...);

/** Return the error number of this thread's last failure; 0: there was none. */
int diag_last_error(void);

/** Put the formatted text and ": " before the text. */
__attribute__((format(printf, 2, 3))) void diag_prefix(struct diag *diag, const char *format, ...);

/** The word, behind the command's name, that asks the command to end its output of a failure with a line, which has
    the error number. The second macro is the format of that line. */
#define DIAG_NUMBER_WORD "--error-number"
#define DIAG_NUMBER_LINE "xheap-error %d"

#endif
