/* SPDX-License-Identifier: MIT */
/** Opening a browser at an address that has a secret: other users see command lines, so the browser gets a file that
    only this user may read, and that leads to the address. */
#ifndef XHEAP_CLI_VIEW_OPEN_H
#define XHEAP_CLI_VIEW_OPEN_H

#include "base/diag.h"

/** A file that leads to an address. Zero it to begin. */
struct view_door {
	char *path; /**< NULL: there is none */
};

/** Return whether a browser can be expected here: there is a screen, and it is not that of another machine. */
bool view_has_screen(void);

/** Write the file and have the desktop's browser open it. Return 0, or a negative errno with the reason in `diag`. End
    it with view_door_close() in any case. */
int view_door_open(struct view_door *door, const char *address, struct diag *diag);

/** Remove the file. */
void view_door_close(struct view_door *door);

#endif
