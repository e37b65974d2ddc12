/* SPDX-License-Identifier: MIT */
/*
 * Walks a file from block to block by their heads. The first thing that does not hold ends the segment: the walk then
 * looks for the head of another one behind it, which is complete by itself, and remembers that something is missing.
 */
#include "trace/load_parts.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cancel.h"
#include "base/file.h"
#include "trace/load_blocks.h"
#include "trace/load_circular.h"

static int read_segments(struct load *load, const struct format_header *header, const char *path, struct diag *diag)
{
	if (!(header->flags & FORMAT_CIRCULAR)) {
		load_walk(load, header->header_bytes, load->size);
		return 0;
	}
	load_walk_circular(load, header->header_bytes);
	/* A writer that goes on with the file has locked it. */
	return load->is_complete || load->keeps_ids || load->lacks_memory
		       ? 0
		       : load_read_overwritten(load, header, path, diag);
}

static void note_end(struct load *load)
{
	if (!load->is_complete)
		load_cut(load, load->end, "the file ends without a footer, at offset %llu",
			 (unsigned long long)load->end);
}

int load_file(struct load *load, const char *path, struct diag *diag)
{
	struct format_header header;
	struct stat status;
	load->fd = file_open_regular(path, &status);
	if (load->fd == -EINVAL && S_ISDIR(status.st_mode))
		return diag_fail(diag, EISDIR, "%s is a directory", path);
	if (load->fd == -EINVAL)
		return diag_fail(diag, EINVAL, "%s is %s, and a trace is a file", path,
				 S_ISFIFO(status.st_mode) ? "a pipe" : "a device");
	errno = -load->fd;
	if (load->fd < 0)
		return diag_errno(diag, "cannot open %s", path);
	load->size = (uint64_t)status.st_size;
	if (load->size == 0)
		return diag_fail(diag, EINVAL, "%s is empty: a recording has not begun to write it, or never did",
				 path);
	if (load->size < sizeof(header) || !load_bytes(load->fd, &header, sizeof(header), 0) ||
	    header.magic != FORMAT_MAGIC)
		return diag_fail(diag, EINVAL, "%s is not a trace", path);
	if (header.checksum != XXH3_64bits(&header, offsetof(struct format_header, checksum)))
		return diag_fail(diag, EINVAL, "%s: the header at offset 0 is damaged: its checksum differs", path);
	if (header.version > FORMAT_VERSION)
		return diag_fail(diag, EPROTO, "%s is of version %u, this program reads up to %d", path, header.version,
				 FORMAT_VERSION);
	if (header.header_bytes < sizeof(header) || header.header_bytes % 8)
		return diag_fail(diag, EINVAL, "%s: the header at offset 0 is not valid", path);
	if (!load_begin(load, &header))
		return diag_fail(diag, ENOMEM, "no memory to read %s", path);
	load->only_grows = !(header.flags & FORMAT_CIRCULAR);
	int error = read_segments(load, &header, path, diag);
	if (cancel_is_asked(load->is_cancelled))
		return diag_fail(diag, ECANCELED, "cancelled");
	if (error)
		return error;
	if (load->lacks_memory)
		return diag_fail(diag, ENOMEM, "no memory to read %s", path);
	note_end(load);
	return 0;
}

/* Nothing before the last block was written again if that block is as it was: all heads differ. */
static bool is_as_before(struct load *load, const struct stat *status)
{
	struct load_found last;
	return load->only_grows && (uint64_t)status->st_size >= load->end &&
	       (!load->last_offset ||
		(load_find_block(load, load->last_offset, &last) && last.block.head_checksum == load->last_checksum));
}

int load_go_on(struct load *load, struct diag *diag)
{
	struct stat status;
	if (fstat(load->fd, &status) != 0 || !is_as_before(load, &status))
		return diag_fail(diag, ESTALE, "what was read of it before is not there any more");
	/* The end of the file was no damage. */
	if (load->cut_offset == load->end)
		load->cut_reason[0] = 0;
	load->size = (uint64_t)status.st_size;
	load_walk(load, load->end, load->size);
	if (load->lacks_memory)
		return diag_fail(diag, ENOMEM, "no memory to read the trace");
	note_end(load);
	return 0;
}

void load_fini(struct load *load)
{
	load_clear(load);
	if (load->fd >= 0)
		close(load->fd);
	load->fd = -1;
}
