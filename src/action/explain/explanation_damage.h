/* SPDX-License-Identifier: MIT */
/** Words of glibc's malloc between the blocks of a core that are not what they have to be: who wrote there. */
#ifndef XHEAP_ACTION_EXPLANATION_DAMAGE_H
#define XHEAP_ACTION_EXPLANATION_DAMAGE_H

struct explanation;

/** Find the damage, with the calls that had not returned and the message of the C library known. */
void explanation_damage_find(struct explanation *explanation);

#endif
