/* SPDX-License-Identifier: MIT */
#include "os/capabilities.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HALVES = 2, HALF_BITS = 32 };

void capabilities_keep(uint64_t kept)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[HALVES];
	/* Bounds first: to lower them is a capability, too. Ambient ones go with the permitted and inheritable ones. */
	for (unsigned long i = 0; i < HALVES * HALF_BITS; i++)
		if (!(kept & CAPABILITY(i)))
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (syscall(SYS_capget, &head, data) != 0)
		return;
	for (int i = 0; i < HALVES; i++) {
		const uint32_t half = (uint32_t)(kept >> (i * HALF_BITS));
		data[i].effective &= half;
		data[i].permitted &= half;
		data[i].inheritable &= half;
	}
	syscall(SYS_capset, &head, data);
}
