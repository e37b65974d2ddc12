/* SPDX-License-Identifier: MIT */
/** The places of an image where its program reports heaps of its own to Valgrind (base/requests.h). */
#ifndef XHEAP_HOOK_REQUEST_SITES_H
#define XHEAP_HOOK_REQUEST_SITES_H

#include <stdbool.h>
#include <stdint.h>

#include "hook/elf_file.h"

/** Size of the instructions of a request. They have no effect outside Valgrind; rax points to the request and its
    arguments. */
enum { REQUEST_BYTES = 19 };

/** Find the addresses where requests begin, at most `room`. Return their number; set *is_cut if there are more. */
uint32_t requests_find(const struct elf *elf, uint64_t *sites, uint32_t room, bool *is_cut);

#endif
