/* SPDX-License-Identifier: MIT */
/** The variable in which a program publishes the contexts of its threads (OpenTelemetry's OTEP 4947). */
#ifndef XHEAP_HOOK_CONTEXT_SYMBOL_H
#define XHEAP_HOOK_CONTEXT_SYMBOL_H

#include "hook/elf_file.h"
#include "hook/hook.h"

/** Find how threads come to the image's own variable. is_program: the image is the executed one. The access is
    CONTEXT_ACCESS_NONE if the image does not define it, or comes to it in no known way. */
struct hook_context_symbol context_symbol_find(const struct elf *elf, const struct elf_symbols *symbols,
					       bool is_program);

#endif
