/* SPDX-License-Identifier: MIT */
/** Symbolic links that lead to registered images, or by which a registered name is reached. */
#ifndef XHEAP_IMAGE_KEEPER_LINKS_H
#define XHEAP_IMAGE_KEEPER_LINKS_H

struct keeper;

/** Send the watcher the symbolic links that concern options in force. */
void keeper_send_links(struct keeper *keeper);
/** Send them again if a directory of programs has changed. */
void keeper_check_links(struct keeper *keeper);

#endif
