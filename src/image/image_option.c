/* SPDX-License-Identifier: MIT */
/* The file of an image option, key by key. */
#include "image/image_option.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/settings_file.h"
#include "base/text.h"
#include "base/trusted_files.h"
#include "image/image_recording.h"
#include "image/mount_namespace.h"
#include "os/selinux.h"
#include "session/control/own_program.h"
#include "session/directory/directory.h"
#include "session/tracer/image_domain.h"

#define TIME_FORMAT "%Y-%m-%dT%H:%M:%SZ"

enum row_type { ROW_TEXT, ROW_NUMBER, ROW_FLAGS, ROW_TRUTH, ROW_TIME };

struct option_field {
	const char *key;
	enum row_type type;
	size_t offset, size;
	uint64_t initial;
};

#define AT(member) offsetof(struct image_option, member), sizeof(((struct image_option *)NULL)->member)

static const struct option_field rows[] = {
	{"Image", ROW_TEXT, AT(image), 0},
	{"TracingFlags", ROW_FLAGS, AT(flags), IMAGE_FLAG_HEAP},
	{"Enabled", ROW_TRUTH, AT(is_enabled), 1},
	{"Session", ROW_TEXT, AT(session), 0},
	{"Service", ROW_TEXT, AT(service), 0},
	{"Output", ROW_TEXT, AT(output), 0},
	{"User", ROW_TEXT, AT(user), 0},
	{"Owner", ROW_TEXT, AT(owner), 0},
	{"Arguments", ROW_TEXT, AT(arguments), 0},
	{"Cgroup", ROW_TEXT, AT(cgroup), 0},
	{"First", ROW_NUMBER, AT(first), 0},
	{"Every", ROW_NUMBER, AT(every), 0},
	{"Until", ROW_TIME, AT(until_s), 0},
	{"Privileged", ROW_TRUTH, AT(is_privileged), 0},
	{"Scripts", ROW_TRUTH, AT(has_scripts), 0},
	{"Force", ROW_TRUTH, AT(is_forced), 0},
	{"Push", ROW_TEXT, AT(push), 0},
	{"Options", ROW_TEXT, AT(options), 0},
};
enum { ROW_COUNT = sizeof(rows) / sizeof(*rows) };

static void *member(const struct image_option *option, const struct option_field *row)
{
	return (char *)option + row->offset;
}

void image_option_init(struct image_option *option)
{
	memset(option, 0, sizeof(*option));
	for (int i = 0; i < ROW_COUNT; i++)
		if (rows[i].type == ROW_TRUTH)
			*(bool *)member(option, &rows[i]) = rows[i].initial;
		else if (rows[i].initial)
			*(uint64_t *)member(option, &rows[i]) = rows[i].initial;
}

/* ---- values ---- */

static int set_text(char *text, size_t size, const char *value, struct diag *why)
{
	if (strlen(value) >= size)
		return diag_fail(why, E2BIG, "longer than %zu bytes", size - 1);
	snprintf(text, size, "%s", value);
	return 0;
}

static int set_truth(bool *truth, const char *value, struct diag *why)
{
	static const char *const words[] = {"no", "yes", "false", "true", "0", "1", "off", "on"};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcasecmp(value, words[i])) {
			*truth = i % 2;
			return 0;
		}
	return diag_fail(why, EINVAL, "neither yes nor no");
}

/* A number as the documented tools write it: 1, 0x1, or dword:00000001. */
static int set_flags(uint64_t *flags, const char *value, struct diag *why)
{
	static const char prefix[] = "dword:";
	bool is_word = !strncasecmp(value, prefix, sizeof(prefix) - 1);
	const char *digits = is_word ? value + sizeof(prefix) - 1 : value;
	char *end;
	unsigned long number = strtoul(digits, &end, is_word ? 16 : 0);
	if (!isdigit((unsigned char)*digits) || *end)
		return diag_fail(why, EINVAL, "not a number");
	if (number & IMAGE_FLAG_SECTIONS)
		return diag_fail(why, ENOTSUP,
				 "0x2 traces critical sections, which programs of this system do not have; 0x1 traces "
				 "heaps");
	if (number & ~(unsigned long)IMAGE_FLAG_HEAP)
		return diag_fail(why, ENOTSUP, "only 0x1, heaps, is known");
	*flags = number;
	return 0;
}

static int set_number(uint64_t *number, const char *value, struct diag *why)
{
	return text_parse_count(value, number) ? 0 : diag_fail(why, EINVAL, "not a number");
}

static int set_time(int64_t *time_s, const char *value, struct diag *why)
{
	struct tm parts = {0};
	const char *end = strptime(value, TIME_FORMAT, &parts);
	if (!end || *end)
		return diag_fail(why, EINVAL, "not a time such as 2027-01-31T18:00:00Z");
	*time_s = (int64_t)timegm(&parts);
	return 0;
}

static int set_value(const struct option_field *row, void *at, const char *value, struct diag *why)
{
	switch (row->type) {
	case ROW_TEXT:
		return set_text(at, row->size, value, why);
	case ROW_NUMBER:
		return set_number(at, value, why);
	case ROW_FLAGS:
		return set_flags(at, value, why);
	case ROW_TRUTH:
		return set_truth(at, value, why);
	case ROW_TIME:
		return set_time(at, value, why);
	}
	return -EINVAL;
}

int image_option_set(struct image_option *option, const char *key, const char *value, struct diag *why)
{
	for (int i = 0; i < ROW_COUNT; i++) {
		if (strcasecmp(rows[i].key, key))
			continue;
		struct diag reason = {""};
		int error = settings_check_value(value, &reason);
		error = error ? error : set_value(&rows[i], member(option, &rows[i]), value, &reason);
		return error ? diag_fail(why, -error, "%s = %.200s: %s", rows[i].key, value, reason.text) : 0;
	}
	return diag_fail(why, EINVAL, "%.100s: no such value", key);
}

/* ---- the whole ---- */

const char *image_option_title(const struct image_option *option)
{
	return option->image[0] ? option->image : option->service;
}

bool image_option_is_path(const struct image_option *option)
{
	return option->image[0] == '/';
}

bool image_option_is_each(const struct image_option *option)
{
	return strstr(option->output, "%p") != NULL;
}

bool image_option_is_in_force(const struct image_option *option, int64_t now_s)
{
	return option->is_enabled && option->flags && (!option->until_s || now_s < option->until_s);
}

/* Find the number of a user, who is the value of `key`; none is no error. */
static int check_user(const char *key, const char *user, uint32_t *id, struct diag *why)
{
	uint64_t number;
	if (!user[0])
		return 0;
	const struct passwd *entry = getpwnam(user);
	if (!entry && (!text_parse_count(user, &number) || number >= UINT32_MAX))
		return diag_fail(why, ENOENT, "%s = %s: there is no such user", key, user);
	*id = entry ? entry->pw_uid : (uint32_t)number;
	return 0;
}

/* Return whether the path is another file than the machine's loaders, as a bundle has one for its own programs. */
static bool is_own_loader(const char *path)
{
	static const char *const machines[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"};
	struct mount_file file;
	struct stat loader;
	if (path[0] != '/' || !mount_file_find(MOUNT_WALK_OPTION, path, &file))
		return false;
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
		if (stat(machines[i], &loader) == 0 && loader.st_dev == file.device && loader.st_ino == file.inode)
			return false;
	return true;
}

static int check_image(const struct image_option *option, struct diag *why)
{
	static const char *const own[] = {OWN_PROGRAM_COMMAND, OWN_PROGRAM_WATCHER};
	static const char *const loaders[] = {"ld-linux-x86-64.so.2", "ld-musl-x86_64.so.1", "ld.so"};
	const char *name = text_file_name(option->image);
	if (!option->image[0] && option->service[0])
		return 0;
	if (!option->image[0])
		return diag_fail(
			why, EINVAL,
			"Image is missing: a file name without a path, or an absolute path; or Service, a unit");
	if (option->image[0] != '/' && strchr(option->image, '/'))
		return diag_fail(why, EINVAL, "Image = %s: neither a file name without a path nor an absolute path",
				 option->image);
	if (!name[0] || !strcmp(name, ".") || !strcmp(name, ".."))
		return diag_fail(why, EINVAL, "Image = %s: it names no file", option->image);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(name, own[i]))
			return diag_fail(why, EPERM, "Image = %s: xheap does not trace itself", option->image);
	for (size_t i = 0; i < sizeof(loaders) / sizeof(*loaders); i++)
		if (!strcmp(name, loaders[i]) && !is_own_loader(option->image))
			return diag_fail(why, EPERM, "Image = %s: a loader, through which every program starts",
					 option->image);
	return 0;
}

/* The units that have a cgroup with processes. */
static const char *const unit_types[] = {".service", ".scope", ".slice", ".socket", ".mount", ".swap"};
enum { UNIT_TYPE_COUNT = sizeof(unit_types) / sizeof(*unit_types) };

static const char *unit_type(const char *unit)
{
	static const char *const others[] = {".timer", ".path", ".target", ".device", ".automount"};
	const char *type = strrchr(unit, '.');
	for (int i = 0; type && i < UNIT_TYPE_COUNT; i++)
		if (!strcmp(type, unit_types[i]))
			return type;
	for (size_t i = 0; type && i < sizeof(others) / sizeof(*others); i++)
		if (!strcmp(type, others[i]))
			return NULL;
	/* As systemctl reads a name without a type. */
	return "";
}

/* Check the unit, and complete its name. */
static int check_service(struct image_option *option, struct diag *why)
{
	static const char *const refused[] = {"init.scope", "-.slice", "xheap-images.service"};
	char *unit = option->service;
	const char *type = unit_type(unit);
	if (!unit[0])
		return 0;
	if (!type)
		return diag_fail(why, EINVAL, "Service = %s: a unit of this type has no processes", unit);
	for (const char *at = unit; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr(":-_.\\@", *at))
			return diag_fail(why, EINVAL, "Service = %s: not the name of a unit", unit);
	if (!*type && strlen(unit) + sizeof(".service") > sizeof(option->service))
		return diag_fail(why, E2BIG, "Service = %s: too long", unit);
	if (!*type)
		strcat(unit, unit_types[0]);
	const char *instance = strchr(unit, '@');
	if (unit[0] == '.' || (instance && instance + 1 == strrchr(unit, '.')))
		return diag_fail(why, EINVAL, "Service = %s: a unit of this name has no processes", unit);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (!strcmp(unit, refused[i]))
			return diag_fail(why, EPERM, "Service = %s: the service manager, everything, or xheap itself",
					 unit);
	return 0;
}

int image_option_check(struct image_option *option, struct diag *why)
{
	int error = check_image(option, why);
	error = error ? error : check_service(option, why);
	if (error)
		return error;
	if (option->session[0] && !session_name_is_possible(option->session))
		return diag_fail(why, EINVAL, "Session = %s: this cannot be a session's name", option->session);
	if (strchr(option->session, '/') &&
	    (option->arguments[0] || option->cgroup[0] || option->first || option->every))
		return diag_fail(why, EINVAL,
				 "Session = %s: another user's session gets no patterns and counts of root: without "
				 "Arguments, Cgroup, First and Every",
				 option->session);
	if (option->session[0] && option->output[0])
		return diag_fail(why, EINVAL, "Session and Output: only one of them can be given");
	if (option->push[0] && (option->session[0] || strchr(option->output, '%')))
		return diag_fail(why, EINVAL,
				 "Push: the image's own session is pushed: without Session, and %% in Output");
	if (option->output[0] && option->output[0] != '/')
		return diag_fail(why, EINVAL, "Output = %s: not an absolute path", option->output);
	error = check_user("User", option->user, &option->user_id, why);
	error = error ? error : check_user("Owner", option->owner, &option->owner_id, why);
	struct session_options session;
	char room[2 * IMAGE_PATH_BYTES];
	return error ? error : image_option_recording(option, IMAGE_SHARE_ROOT, 1, &session, room, why);
}

int image_option_check_domain(const struct image_option *option, struct diag *why)
{
	const struct mount_namespace own = {.walks = MOUNT_WALK_OPTION};
	if (!image_option_is_path(option) || option->is_forced || !selinux_is_enforcing(trusted_root()))
		return 0;
	int file = mount_walk(&own, option->image, true);
	int error = image_domain_check(option->image, file, why);
	if (file >= 0)
		close(file);
	return error;
}

/* ---- reading ---- */

static int store_value(void *option, const char *key, const char *value, struct diag *why)
{
	return image_option_set(option, key, value, why);
}

int image_option_read(struct image_option *option, FILE *file, const char *path, struct diag *why)
{
	const struct settings_reader reader = {"image", store_value, option};
	struct diag reason = {""};
	image_option_init(option);
	int error = settings_read(&reader, file, path, why);
	if (error)
		return error;
	error = image_option_check(option, &reason);
	return error ? diag_fail(why, -error, "%s: %s", path, reason.text) : 0;
}

/* ---- writing ---- */

static void value_text(const struct option_field *row, const void *at, char *text, size_t size)
{
	uint64_t number = row->type == ROW_TRUTH  ? *(const bool *)at
			  : row->type == ROW_TEXT ? 0
						  : *(const uint64_t *)at;
	time_t time_s = (time_t)number;
	switch (row->type) {
	case ROW_TEXT:
		snprintf(text, size, "%s", (const char *)at);
		break;
	case ROW_TRUTH:
		snprintf(text, size, "%s", number ? "yes" : "no");
		break;
	case ROW_FLAGS:
		snprintf(text, size, "0x%llx", (unsigned long long)number);
		break;
	case ROW_NUMBER:
		snprintf(text, size, "%llu", (unsigned long long)number);
		break;
	case ROW_TIME:
		strftime(text, size, TIME_FORMAT, gmtime(&time_s));
		break;
	}
}

static bool is_initial(const struct option_field *row, const void *at)
{
	switch (row->type) {
	case ROW_TEXT:
		return !*(const char *)at;
	case ROW_TRUTH:
		return *(const bool *)at == (row->initial != 0);
	default:
		return *(const uint64_t *)at == row->initial;
	}
}

void image_option_each(const struct image_option *option,
		       void (*visit)(void *cookie, const char *key, const char *value), void *cookie)
{
	for (int i = 0; i < ROW_COUNT; i++) {
		char text[IMAGE_PATH_BYTES];
		const void *at = member(option, &rows[i]);
		if (is_initial(&rows[i], at) && rows[i].type != ROW_FLAGS)
			continue;
		value_text(&rows[i], at, text, sizeof(text));
		visit(cookie, rows[i].key, text);
	}
}

static void write_value(void *file, const char *key, const char *value)
{
	fprintf(file, "%s = %s\n", key, value);
}

void image_option_write(const struct image_option *option, FILE *file)
{
	fputs("# An image option of xheap: docs/image-options.md, man xheap-image\n[image]\n", file);
	image_option_each(option, write_value, file);
}
