/* SPDX-License-Identifier: MIT */
/** Places of an image where its program would tell Valgrind of heaps of its own (base/requests.h). */
#ifndef XHEAP_HOOK_REQUEST_SITES_H
#define XHEAP_HOOK_REQUEST_SITES_H

#include <stdbool.h>
#include <stdint.h>

#include "hook/elf_file.h"

/** Instructions that make up a request; they do nothing but where Valgrind runs them. rax points to the request and its
    arguments. */
enum { REQUEST_BYTES = 19 };

/** Addresses where requests begin, up to room; their number. is_cut: there are more. */
uint32_t requests_find(const struct elf *elf, uint64_t *sites, uint32_t room, bool *is_cut);

#endif
