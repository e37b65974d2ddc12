/* SPDX-License-Identifier: MIT */
#include "analysis/caller.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cancel.h"
#include "base/memory.h"

int analysis_check_cancelled(const struct analysis_caller *caller, struct diag *diag)
{
	return cancel_is_asked(caller->is_cancelled) ? diag_fail(diag, ECANCELED, "cancelled") : 0;
}

void analysis_note(const struct analysis_caller *caller, enum analysis_note kind, const char *format, ...)
{
	char *text;
	va_list arguments;
	if (!caller->note)
		return;
	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		memory_exhausted(0);
	caller->note(caller->context, kind, text);
	free(text);
}
