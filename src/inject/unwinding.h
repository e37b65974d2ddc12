/* SPDX-License-Identifier: MIT */
/** The unwind tables of another process's images, copied, and the rows for its program counters. */
#ifndef XHEAP_INJECT_UNWINDING_H
#define XHEAP_INJECT_UNWINDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/proc.h"
#include "unwind/unwind_rows.h"

/** An image of the process. Its tables are copied: `shift` higher here than in the process. */
struct unwinding_image {
	uint64_t base, end;      /**< addresses in the process */
	bool is_wanted, is_read; /**< a row was asked for; the tables were searched for */
	uint8_t *copy;           /**< of the part with the tables; NULL: the image has none */
	uint64_t shift;
	struct unwind_tables tables; /**< in the copy */
};

/** The images of a process. */
struct unwinding {
	pid_t pid;
	int memory; /**< /proc/PID/mem, owned by the caller */
	struct unwinding_image *images;
	uint32_t count;
	bool is_wanting; /**< a row was asked for of an image whose tables are not read yet */
};

/** Take the images from the process's maps; known images keep their tables. */
void unwinding_take_images(struct unwinding *unwinding, const struct proc_map *maps, int count);

/** Find the row for pc. Return false if there is none, or not yet (is_wanting). */
bool unwinding_row(struct unwinding *unwinding, uint64_t pc, row_bits *row);

/** Read the tables that rows were asked for of. This takes long: call it while threads run. */
void unwinding_read_wanted(struct unwinding *unwinding);

/** Free the images and tables. */
void unwinding_fini(struct unwinding *unwinding);

#endif
