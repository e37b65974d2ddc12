/* SPDX-License-Identifier: MIT */
/** xheap boottrace -trace service:UNIT: starts of a service. Its program is registered as an image of a session of
    ours, so that it is recorded where it runs, by whomever it is started. */
#ifndef XHEAP_CLI_BOOTTRACE_SERVICE_H
#define XHEAP_CLI_BOOTTRACE_SERVICE_H

#include <stddef.h>

struct boottrace;
struct boottrace_run;

/** Run the service once and record it. Return CLI_OK, or CLI_FAILED after a message; an interrupted run may leave the
    message to the caller. */
int boottrace_run_service(const struct boottrace *scenario, struct boottrace_run *run);

/** Write the unit's own name: nginx is nginx.service, and an alias is another unit. Without systemd, write it as it
    is. */
void boottrace_service_name(const char *unit, char *name, size_t size);

/** Remove the image options and end the sessions that runs of services have left. Return CLI_OK, or CLI_FAILED after a
    message. */
int boottrace_service_remove(void);

#endif
