/* SPDX-License-Identifier: MIT */
#include "base/diag.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static __thread int last_error;

int diag_last_error(void)
{
	return last_error;
}

static void diag_set(struct diag *diag, const char *format, va_list arguments)
{
	if (diag && !diag->text[0])
		vsnprintf(diag->text, sizeof(diag->text), format, arguments);
}

int diag_fail(struct diag *diag, int error, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	diag_set(diag, format, arguments);
	va_end(arguments);
	last_error = error > 0 ? error : -error;
	return -last_error;
}

int diag_errno(struct diag *diag, const char *format, ...)
{
	int error = last_error = errno ? errno : EIO;
	if (diag && !diag->text[0]) {
		va_list arguments;
		va_start(arguments, format);
		diag_set(diag, format, arguments);
		va_end(arguments);
		size_t length = strlen(diag->text);
		snprintf(diag->text + length, sizeof(diag->text) - length, ": %s", strerror(error));
	}
	return -error;
}

void diag_prefix(struct diag *diag, const char *format, ...)
{
	if (!diag)
		return;
	char text[sizeof(diag->text)];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length >= 0 && (size_t)length + 2 < sizeof(text)) {
		snprintf(text + length, sizeof(text) - (size_t)length, ": %.*s",
			 (int)(sizeof(text) - (size_t)length - 3), diag->text);
		memcpy(diag->text, text, sizeof(text));
	}
}
