/* SPDX-License-Identifier: MIT */
/** What went wrong, as one sentence for people: "what: why". The caller owns it; nothing is printed here. */
#ifndef XHEAP_BASE_DIAG_H
#define XHEAP_BASE_DIAG_H

#include <stdarg.h>
#include <stdbool.h>

struct diag {
	char text[512];
};

/** Set the text (the first call wins: the innermost cause is the most telling) and return -error. */
__attribute__((format(printf, 3, 4))) int diag_fail(struct diag *diag, int error, const char *format, ...);

/** As diag_fail(errno), with ": " and the system's text for it added. */
__attribute__((format(printf, 2, 3))) int diag_errno(struct diag *diag, const char *format, ...);

/** The error number of this thread's last failure of these; 0: there was none. */
int diag_last_error(void);

/** Put "what: " before the text. */
__attribute__((format(printf, 2, 3))) void diag_prefix(struct diag *diag, const char *format, ...);

/** The word, behind the command's name, by which the command is asked to end what it says of a failure with the error
    number, and that line. */
#define DIAG_NUMBER_WORD "--error-number"
#define DIAG_NUMBER_LINE "xheap-error %d"

#endif
