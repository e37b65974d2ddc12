/* SPDX-License-Identifier: MIT */
#include "cli/session/leaks_place.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/session/session_talk.h"
#include "os/proc.h"

enum { CORE_PATH_BYTES = 1200 };

int leaks_place_make(struct leaks_place *place)
{
	const char *temporary = getenv("TMPDIR");
	if (temporary && *temporary && *temporary != '/')
		return cli_fail("TMPDIR is %s: not an absolute path", temporary);
	int length = snprintf(place->path, sizeof(place->path), "%s/xheap-leaks.XXXXXX",
			      temporary && *temporary ? temporary : "/tmp");
	if (length >= (int)sizeof(place->path))
		return cli_fail("TMPDIR is too long");
	if (!mkdtemp(place->path))
		return cli_fail("cannot make a directory %s: %s", place->path, strerror(errno));
	snprintf(place->trace, sizeof(place->trace), "%s/trace.xht", place->path);
	return CLI_OK;
}

void leaks_place_add(struct leaks_place *place, const char *path)
{
	memory_grow(place->cores, place->count, place->capacity);
	place->cores[place->count++] = (struct leaks_core){.path = strdup(path)};
}

/* Return the new core `name` of the directory. */
static struct leaks_core *core_add(struct leaks_place *place, const char *name)
{
	char path[CORE_PATH_BYTES];
	snprintf(path, sizeof(path), "%s/%s", place->path, name);
	leaks_place_add(place, path);
	return &place->cores[place->count - 1];
}

static int is_core(const struct dirent *entry)
{
	return entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
}

void leaks_place_list(struct leaks_place *place)
{
	struct dirent **names;
	const int count = scandir(place->path, &names, is_core, versionsort);
	for (int i = 0; i < count; i++) {
		core_add(place, names[i]->d_name);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

/* Forget the newest core and what there is of it. */
static void core_drop(struct leaks_place *place)
{
	char *path = place->cores[--place->count].path;
	unlink(path);
	free(path);
}

/* Add the core of a process. is_one: of several, where one that ends meanwhile is left out. */
static int process_look(struct leaks_place *place, int socket, pid_t pid, bool may_stop, bool is_one)
{
	struct diag diag = {""};
	char name[20];
	snprintf(name, sizeof(name), "%d", (int)pid);
	struct leaks_core *core = core_add(place, name);
	core->pid = pid;
	if (!controller_write_core(socket, pid, core->path, may_stop, &core->pause, NULL, &diag))
		return CLI_OK;
	if (!is_one || !proc_is_ending(pid))
		return cli_fail("%s", diag.text);
	core_drop(place);
	return CLI_OK;
}

int leaks_place_look(struct leaks_place *place, const char *session, pid_t pid, bool may_stop)
{
	struct controller_state state = {.is_alive = false};
	int socket = session_connect_to(session);
	int status = socket >= 0 ? session_query(socket, false, &state) : CLI_FAILED;
	if (status == CLI_OK && pid)
		status = process_look(place, socket, pid, may_stop, false);
	for (size_t i = 0; i < state.target_count && status == CLI_OK && !pid; i++)
		status = process_look(place, socket, state.targets[i].pid, may_stop, true);
	if (status == CLI_OK && !place->count)
		status = cli_fail("session %s records no process", session);
	controller_state_fini(&state);
	if (socket >= 0)
		close(socket);
	return status;
}

void leaks_place_remove(struct leaks_place *place)
{
	for (size_t i = 0; i < place->count; i++)
		unlink(place->cores[i].path);
	unlink(place->trace);
	if (rmdir(place->path))
		cli_say("cannot remove %s: %s", place->path, strerror(errno));
}

void leaks_place_fini(struct leaks_place *place)
{
	for (size_t i = 0; i < place->count; i++)
		free(place->cores[i].path);
	free(place->cores);
	*place = (struct leaks_place){.count = 0};
}
