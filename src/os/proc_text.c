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

enum { TEXT_MAX = 4 << 20, PROC_TEXT_MS = 250, PROC_TEXT_MINUTE_MS = 4000 };

struct text_request {
	pid_t pid;
	off_t offset;
	char name[16];
};

static void work(const struct losable_message *request, struct losable_message *answer)
{
	struct text_request asked;
	capabilities_keep(CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_DAC_READ_SEARCH));
	memcpy(&asked, request->bytes, sizeof(asked));
	int fd = open(proc_path(asked.pid, "%s", asked.name).text, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? pread(fd, answer->bytes, LOSABLE_BYTES, asked.offset) : -1;
	answer->size = got > 0 ? (size_t)got : 0;
	fd_close(&fd);
}

static struct losable reader = LOSABLE("xheap-reader", work, PROC_TEXT_MINUTE_MS);

/* Return whether this process is root's and the other one is not. */
static bool may_hang(pid_t pid)
{
	return geteuid() == 0 && proc_status_value(pid, "Uid") > 0;
}

/* Read the file through a child, each part for PROC_TEXT_MS at most. */
static char *ask(pid_t pid, const char *name, size_t *size)
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

static char *read_text(pid_t pid, const char *name, size_t *size)
{
	return may_hang(pid) ? ask(pid, name, size) : proc_read_file(pid, name, size);
}

char *proc_arguments(pid_t pid, size_t *size)
{
	return read_text(pid, "cmdline", size);
}

void proc_command(pid_t pid, char *text, size_t size)
{
	size_t length = 0;
	char *data = proc_arguments(pid, &length);
	while (length && data[length - 1] == 0)
		length--;
	if (length >= size)
		length = size - 1;
	for (size_t i = 0; i < length; i++)
		text[i] = (unsigned char)data[i] < ' ' || data[i] == 0x7f ? ' ' : data[i];
	text[length] = 0;
	free(data);
}

bool proc_environment_has(pid_t pid, const char *name, const char *text)
{
	size_t size = 0, length = strlen(name);
	char *data = read_text(pid, "environ", &size);
	bool has = false;
	for (size_t i = 0; data && i < size && !has; i += strlen(data + i) + 1)
		has = strncmp(data + i, name, length) == 0 && data[i + length] == '=' &&
		      strstr(data + i + length, text);
	free(data);
	return has;
}
