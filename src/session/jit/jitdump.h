/* SPDX-License-Identifier: MIT */
/** Records of a jitdump file (jit-PID.dump), little endian. Bytes of strangers. */
#ifndef XHEAP_SESSION_JITDUMP_H
#define XHEAP_SESSION_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JITDUMP_HEAD_BYTES = 16,      /**< of each record */
	JITDUMP_RECORD_BYTES = 4096,  /**< of a record, at most, are read for what is in struct jitdump_record */
	JITDUMP_LINES_BYTES = 1 << 16 /**< of a record of lines, at most, are searched */
};

enum jitdump_kind { JITDUMP_LOAD, JITDUMP_MOVE, JITDUMP_LINES, JITDUMP_OTHER };

/** A record. */
struct jitdump_record {
	enum jitdump_kind kind;
	uint64_t bytes;       /**< from its start to the next one's */
	uint64_t start, size; /**< of the code; LINES: size is 0 */
	uint64_t old_start;   /**< MOVE: where the code was */
	size_t name;          /**< LOAD: where the name begins in the record */
	size_t name_bytes;    /**< without its end */
};

/** Check the file's head. Return its bytes, 0 if the file is none. */
size_t jitdump_head(const uint8_t *bytes, size_t size);

/** Read a record, of which `size` bytes are there: all, or JITDUMP_RECORD_BYTES. Return false if it is none, or if a
    part of these is not there yet. */
bool jitdump_read(const uint8_t *bytes, size_t size, struct jitdump_record *record);

/** Find the line of the instruction at `address` in a record of lines, of which `size` bytes are there. Get the place
    of the file's name in the record. Return false if it is not known. */
bool jitdump_line(const uint8_t *bytes, size_t size, uint64_t address, size_t *file, uint32_t *line);

#endif
