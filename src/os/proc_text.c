/* SPDX-License-Identifier: MIT */
#include "os/proc_text.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/capabilities.h"
#include "os/fd.h"
#include "os/losable.h"
#include "os/proc.h"

enum { TEXT_MAX = 4 << 20 };

struct text_request {
	pid_t pid;
	off_t offset;
	char name[16];
};

static void work(const struct losable_message *request, struct losable_message *answer)
{
	struct text_request asked;
	char path[64];
	capabilities_keep(CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_DAC_READ_SEARCH));
	memcpy(&asked, request->bytes, sizeof(asked));
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)asked.pid, asked.name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? pread(fd, answer->bytes, LOSABLE_BYTES, asked.offset) : -1;
	answer->size = got > 0 ? (size_t)got : 0;
	fd_close(&fd);
}

static struct losable reader = LOSABLE("xheap-reader", work);

bool proc_text_may_hang(pid_t pid)
{
	return geteuid() == 0 && proc_status_value(pid, "Uid") > 0;
}

char *proc_text_ask(pid_t pid, const char *name, size_t *size)
{
	struct text_request asked = {.pid = pid};
	uint32_t user = (uint32_t)proc_status_value(pid, "Uid");
	char *text = NULL;
	snprintf(asked.name, sizeof(asked.name), "%s", name);
	for (*size = 0; *size < TEXT_MAX;) {
		char *larger = realloc(text, *size + LOSABLE_BYTES + 1);
		if (!larger)
			break;
		text = larger;
		asked.offset = (off_t)*size;
		struct losable_message request = {.bytes = &asked, .size = sizeof(asked)};
		struct losable_message answer = {.bytes = text + *size, .size = LOSABLE_BYTES};
		if (losable_ask(&reader, user, &request, &answer, PROC_TEXT_MS) != 0 || answer.size == 0)
			break;
		*size += answer.size;
	}
	if (text)
		text[*size] = 0;
	return text;
}
