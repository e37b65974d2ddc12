/* SPDX-License-Identifier: MIT */
#include "fleet/fleet.h"

#include <errno.h>

static int directory_ask(const char *place, const struct fleet_question *question, struct fleet_answer *answer,
			 struct diag *diag)
{
	(void)question;
	(void)answer;
	return diag_fail(diag, ENOSYS, "%s: not there yet", place);
}

const struct fleet_source fleet_directory = {"", directory_ask};
