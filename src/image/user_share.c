/* SPDX-License-Identifier: MIT */
#include "image/user_share.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/image_option.h"
#include "os/proc.h"

static ino_t own_space(void)
{
	struct stat status;
	return stat("/proc/self/ns/user", &status) == 0 ? status.st_ino : 0;
}

uint32_t user_space_maker(int space)
{
	uid_t user = UINT32_MAX;
	ino_t own = own_space();
	struct stat status;
	for (int outer; space >= 0; space = outer) {
		ioctl(space, NS_GET_OWNER_UID, &user);
		outer = ioctl(space, NS_GET_PARENT);
		close(space);
		if (outer >= 0 && fstat(outer, &status) == 0 && status.st_ino == own) {
			close(outer);
			break;
		}
	}
	return user;
}

/* The real user is asked, which a setuid file does not change. */
uint32_t user_share(pid_t tid)
{
	char path[40];
	struct stat status;
	int64_t user = proc_status_value(tid, "Uid");
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)tid);
	if (user <= 0 || stat(path, &status) != 0 || status.st_ino == own_space())
		return user > 0 ? (uint32_t)user : IMAGE_SHARE_ROOT;
	uint32_t maker = user_space_maker(open(path, O_RDONLY | O_CLOEXEC));
	return maker && maker != UINT32_MAX ? maker : (uint32_t)user;
}
