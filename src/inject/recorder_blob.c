/* SPDX-License-Identifier: MIT */
#include "inject/recorder_blob.h"

#include <assert.h>
#include <string.h>

#include "recorder_symbols.h"

/* blob.S has these bytes. */
extern const unsigned char recorder_bytes_begin[];

const unsigned char *recorder_code(size_t *size)
{
	*size = RECORDER_CODE_BYTES;
	return recorder_bytes_begin;
}

uint64_t recorder_symbol(const char *name)
{
	static const struct {
		const char *name;
		uint64_t offset;
	} symbols[] = {
#define X(name, offset) {#name, offset},
		RECORDER_SYMBOLS(X)
#undef X
	};
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		if (strcmp(symbols[i].name, name) == 0)
			return symbols[i].offset;
	assert(!"the recorder has the hook");
	return 0;
}
