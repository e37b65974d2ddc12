/* SPDX-License-Identifier: MIT */
/* Executables and libraries are looked at before they run, so their bytes are anybody's. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hook/elf_file.h"
#include "hook/find.h"
#include "hook/hook.h"
#include "replay.h"

static void relocate_all(const struct hook_image *image)
{
	for (uint32_t i = 0; i < image->target_count; i++) {
		uint8_t code[HOOK_RELOCATED_MAX];
		int16_t offsets[HOOK_DISPLACED_MAX];
		struct diag diag = {""};
		uint64_t address = image->targets[i].address + 0x555500000000;
		int length = hook_relocate(&image->targets[i], address, 0x555540000000, code, offsets, &diag);
		/* What could be displaced can be moved, or says why not. */
		if (length > HOOK_RELOCATED_MAX || (length < 0 && !diag.text[0]) ||
		    (image->targets[i].displaced == 0 && length > 0))
			abort();
	}
}

static void find_section(const uint8_t *data, size_t size)
{
	struct elf elf;
	struct diag diag = {""};
	Elf64_Shdr section;
	if (!elf_open(&elf, data, size, &diag))
		elf_section(&elf, ".eh_frame", &section);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int is_main = 0; is_main < 2; is_main++) {
		struct hook_image image;
		struct diag diag = {""};
		/* An exact copy, so that a sanitizer sees every byte too many. */
		uint8_t *copy = malloc(size ? size : 1);
		if (!copy)
			return 0;
		memcpy(copy, data, size);
		int error = hook_image_read(&image, copy, size, is_main, &diag);
		if (error && !diag.text[0])
			abort();
		relocate_all(&image);
		find_section(copy, size);
		hook_image_fini(&image);
		free(copy);
	}
	return 0;
}

const struct replay replay = {.bytes_max = 1 << 20, .cut_bytes = 64, .flip_rounds = 3000, .front_bytes = 1024};
