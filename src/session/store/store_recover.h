/* SPDX-License-Identifier: MIT */
/** Recovery of the pieces that a killed logger has left. */
#ifndef XHEAP_SESSION_STORE_RECOVER_H
#define XHEAP_SESSION_STORE_RECOVER_H

struct diag;

/** Join the pieces that a dead logger has left in the directory into one file, `output`. Return 0 or a negative errno;
    -ENOENT: the directory has none. */
int store_recover(const char *directory, const char *output, struct diag *diag);

/** Remove the pieces that a dead logger has left, and the directory if it is then empty. */
void store_remove(const char *directory);

#endif
