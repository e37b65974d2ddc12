/* SPDX-License-Identifier: MIT */
#include "server/answer/cells_answer.h"

#include <errno.h>

int cells_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
		       const struct analysis_caller *caller, struct diag *diag)
{
	(void)shown;
	(void)question;
	(void)out;
	(void)caller;
	return diag_fail(diag, ENOSYS, "cells are not made yet");
}
