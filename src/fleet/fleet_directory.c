/* SPDX-License-Identifier: MIT */
/*
 * A directory of files that xheap push has written (file:DIR), of any number of hosts, with directories in it: as hosts
 * have written it together, or as something has collected it.
 *
 * First the heads of all files are read, which say whose they are and of which time. Then those that the question
 * needs are read whole, host after host, so that one profile and the sums are in memory at a time. The clocks of hosts
 * differ: pushes are only compared with those of their own session, and the present is that of the session if its clock
 * is fast.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "fleet/fleet_series.h"
#include "fleet/fleet_sums.h"

enum { DEPTH_MAX = 16 };
#define FILE_BYTES_MAX PUSHED_BYTES_MAX
static const char name_end[] = ".pb.gz";

/* A file, and what its head says. */
struct push {
	const char *path; /* from the place */
	struct pushed_head head;
	bool is_covered; /* its totals are in those of another one */
	bool is_bad;     /* it could not be read whole */
	bool is_over;    /* its programs have ended */
};

struct directory {
	const struct fleet_question *question;
	struct fleet_answer *answer;
	struct fleet_summing *summing;
	struct fleet_series *series; /* is filled in place of the answer; NULL: it is not */
	struct pushed_reader *reader;
	struct arena arena;
	int place;
	struct push *pushes;
	size_t push_count, push_capacity;
	uint64_t file_count;
};

/* ---- finding files ---- */

/* Open the file below the place; nothing in it can make us wait. Return a negative errno with the reason in `diag`. */
static int push_open(const struct directory *directory, const char *path, struct diag *diag)
{
	struct stat status;
	const int file = openat(directory->place, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (file < 0 && errno == ELOOP)
		return diag_fail(diag, ELOOP, "it is a symbolic link");
	if (file < 0)
		return diag_errno(diag, "it cannot be opened");
	int error = fstat(file, &status) ? diag_errno(diag, "it cannot be read") : 0;
	if (!error && !S_ISREG(status.st_mode))
		error = diag_fail(diag, EINVAL, "it is no regular file");
	if (!error && (uint64_t)status.st_size > FILE_BYTES_MAX)
		error = diag_fail(diag, EFBIG, "it is too large for a profile");
	if (!error)
		return file;
	close(file);
	return error;
}

static void file_take(struct directory *directory, const char *path)
{
	struct diag diag = {""};
	struct push push = {.path = path};
	const int file = push_open(directory, path, &diag);
	directory->file_count++;
	int error = file < 0 ? file : pushed_head_read(directory->reader, file, &push.head, &directory->arena, &diag);
	if (file >= 0)
		close(file);
	if (error) {
		fleet_answer_note(directory->answer, path, diag.text);
		return;
	}
	memory_grow(directory->pushes, directory->push_count, directory->push_capacity);
	directory->pushes[directory->push_count++] = push;
}

static void directory_scan(struct directory *directory, int at, const char *path, unsigned depth);

static void entry_take(struct directory *directory, int at, const char *path, const struct dirent *entry,
		       unsigned depth)
{
	struct stat status;
	const char *name = entry->d_name;
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return;
	const char *below =
		*path ? arena_format(&directory->arena, "%s/%s", path, name) : arena_text(&directory->arena, name);
	bool is_directory = entry->d_type == DT_DIR;
	if (entry->d_type == DT_UNKNOWN && !fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW))
		is_directory = S_ISDIR(status.st_mode);
	if (!is_directory && text_ends_with(name, name_end))
		file_take(directory, below);
	if (!is_directory)
		return;
	const int inner = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (inner < 0 || depth == DEPTH_MAX)
		fleet_answer_note(directory->answer, below, inner < 0 ? strerror(errno) : "it lies too deep");
	if (inner >= 0 && depth < DEPTH_MAX)
		directory_scan(directory, inner, below, depth + 1);
	else if (inner >= 0)
		close(inner);
}

/* Take all files below; `at` is closed then. */
static void directory_scan(struct directory *directory, int at, const char *path, unsigned depth)
{
	DIR *stream = fdopendir(at);
	struct dirent *entry;
	if (!stream) {
		close(at);
		return;
	}
	while ((entry = readdir(stream)))
		entry_take(directory, at, path, entry, depth);
	closedir(stream);
}

/* ---- sessions ---- */

static int number_order(int64_t one, int64_t other)
{
	return (one > other) - (one < other);
}

/* A session by its name, over its starts. */
static int instance_order(const struct pushed_head *one, const struct pushed_head *other)
{
	int order = strcmp(one->host, other->host);
	if (!order)
		order = strcmp(one->service, other->service);
	return order ? order : strcmp(one->instance, other->instance);
}

/* In a session by what the totals are of: who covers another one comes before. 0: they are of one push. */
static int head_order(const struct pushed_head *one, const struct pushed_head *other)
{
	int order = instance_order(one, other);
	if (!order)
		order = number_order(one->start_ns, other->start_ns);
	if (!order)
		order = number_order(one->from_ns, other->from_ns);
	if (!order)
		order = number_order(other->until_ns, one->until_ns);
	if (!order)
		order = number_order(one->pushed_ns, other->pushed_ns);
	return order ? order : number_order((int64_t)one->number, (int64_t)other->number);
}

/* Of two copies, the same one counts whatever the order of the directory. */
static int push_order(const void *a, const void *b)
{
	const struct push *one = a, *other = b;
	const int order = head_order(&one->head, &other->head);
	return order ? order : strcmp(one->path, other->path);
}

/* Sort the pushes, and keep one file of each. */
static void pushes_sort(struct directory *directory)
{
	size_t kept = 0;
	if (directory->push_count)
		qsort(directory->pushes, directory->push_count, sizeof(*directory->pushes), push_order);
	for (size_t i = 0; i < directory->push_count; i++)
		if (kept && !head_order(&directory->pushes[kept - 1].head, &directory->pushes[i].head))
			directory->answer->twice++;
		else
			directory->pushes[kept++] = directory->pushes[i];
	directory->push_count = kept;
}

/* A pusher that began anew has pushed again all that the session had: totals that another push covers do not count. */
static void cover_mark(struct push *pushes, size_t count)
{
	int64_t start_ns = INT64_MIN, until_ns = INT64_MIN;
	for (size_t i = 0; i < count; i++) {
		const struct pushed_head *head = &pushes[i].head;
		if (head->start_ns != start_ns)
			until_ns = INT64_MIN;
		start_ns = head->start_ns;
		pushes[i].is_covered = head->from_ns < until_ns;
		if (!pushes[i].is_covered)
			until_ns = head->until_ns;
	}
}

static bool is_later(const struct pushed_head *one, const struct pushed_head *other)
{
	return one->pushed_ns != other->pushed_ns ? one->pushed_ns > other->pushed_ns : one->number > other->number;
}

/* Return the newest push that was not found bad or over, or the oldest one of the same start; NULL: there is none. */
static struct push *push_find(struct push *pushes, size_t count, bool is_newest, const struct push *of)
{
	struct push *found = NULL;
	for (struct push *push = pushes; push < pushes + count; push++)
		if (!push->is_bad && !push->is_over && (!of || push->head.start_ns == of->head.start_ns) &&
		    (!found || is_later(&push->head, &found->head) == is_newest))
			found = push;
	return found;
}

/* Whether a push is of the time that was asked for; newest_ns: of the last one of its session. */
static bool is_in_time(const struct fleet_question *question, const struct push *push, int64_t newest_ns)
{
	const int64_t fast_ns = newest_ns > question->now_ns ? newest_ns - question->now_ns : 0;
	const int64_t asked_ns = question->until_ns ? question->until_ns : question->now_ns;
	const int64_t before_ns = asked_ns + fast_ns - push->head.pushed_ns;
	return (before_ns >= 0 || !question->until_ns) &&
	       (!question->last_ns || before_ns < 0 || (uint64_t)before_ns <= question->last_ns);
}

/* Keep the pushes of the time that was asked for. Return how many. */
static size_t pushes_in_time(const struct fleet_question *question, struct push *pushes, size_t count)
{
	const int64_t newest_ns = push_find(pushes, count, true, NULL)->head.pushed_ns;
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (is_in_time(question, &pushes[i], newest_ns))
			pushes[kept++] = pushes[i];
	return kept;
}

/* Return whether the session counts, and set its side. */
static bool session_is_asked(const struct fleet_question *question, const struct pushed_head *head,
			     enum fleet_side *side)
{
	return fleet_is_asked(question->service, head->service) && fleet_is_asked(question->host, head->host) &&
	       fleet_version_side(question, head->version, side);
}

/* ---- reading ---- */

/* Read a push. Return -EBADMSG after a note if it cannot be read. */
static int push_read(struct directory *directory, struct push *push)
{
	struct diag why = {""};
	const int file = push_open(directory, push->path, &why);
	int error = file < 0 ? file : pushed_profile_read(directory->reader, file, &why);
	if (file >= 0)
		close(file);
	if (error) {
		fleet_answer_note(directory->answer, push->path, why.text);
		push->is_bad = true;
		return -EBADMSG;
	}
	return 0;
}

/* Add what counts of a push. Return as push_read(). */
static int push_add(struct directory *directory, struct push *push, const struct fleet_share *share, struct diag *diag)
{
	const int error = push_read(directory, push);
	return error ? error
		     : fleet_summing_add(directory->summing, directory->reader, push->head.period_bytes, share, diag);
}

/* Read the last push that has anything in use: for diff and growth, what programs had until they ended counts, since a
   version that was replaced by another one has nothing in use any more. NULL: there is none. */
static struct push *living_read(struct directory *directory, struct push *pushes, size_t count)
{
	struct push *push;
	while ((push = push_find(pushes, count, true, NULL)))
		if (!push_read(directory, push)) {
			if (pushed_profile_has_use(directory->reader))
				break;
			push->is_over = true;
		}
	return push;
}

static int diff_add(struct directory *directory, struct push *pushes, size_t count, enum fleet_side side,
		    struct diag *diag)
{
	const struct push *last = living_read(directory, pushes, count);
	return last ? fleet_summing_add(directory->summing, directory->reader, last->head.period_bytes,
					&(struct fleet_share){.side = side, .has_use = true}, diag)
		    : 0;
}

/* Add what the session has in use. If its last push is damaged, the one before has to do. Set *last to it. */
static int use_add(struct directory *directory, struct push *pushes, size_t count, struct fleet_share share,
		   struct push **last, struct diag *diag)
{
	int error = -EBADMSG;
	const bool wants_made = share.has_made;
	while (error == -EBADMSG && (*last = push_find(pushes, count, true, NULL))) {
		share.has_made = wants_made && !(*last)->is_covered;
		error = push_add(directory, *last, &share, diag);
	}
	return *last ? error : 0;
}

static int made_add(struct directory *directory, struct push *pushes, size_t count, const struct push *last,
		    struct diag *diag)
{
	static const struct fleet_share share = {.side = FLEET_AFTER, .has_made = true};
	int error = 0;
	for (size_t i = 0; i < count && (!error || error == -EBADMSG); i++)
		if (&pushes[i] != last && !pushes[i].is_bad && !pushes[i].is_covered)
			error = push_add(directory, &pushes[i], &share, diag);
	return error == -EBADMSG ? 0 : error;
}

/* Growth is from the first push of a start that can be read to the last one. */
static int growth_add(struct directory *directory, struct push *pushes, size_t count, struct diag *diag)
{
	struct push *last = living_read(directory, pushes, count), *first;
	int error = -EBADMSG;
	double rate = 0;
	while (error == -EBADMSG && last && (first = push_find(pushes, count, false, last)) != last) {
		const int64_t length_ns = last->head.pushed_ns - first->head.pushed_ns;
		if (length_ns <= 0)
			return 0;
		rate = FLEET_NS_OF_HOUR / (double)length_ns;
		const struct fleet_share share = {.side = FLEET_BEFORE, .has_use = true, .rate = -rate};
		error = push_add(directory, first, &share, diag);
	}
	if (!error) {
		const struct fleet_share share = {.side = FLEET_AFTER, .has_use = true, .rate = rate};
		error = push_add(directory, last, &share, diag);
	}
	return error == -EBADMSG ? 0 : error;
}

/* ---- over time ---- */

/* What a stack has in use. */
struct use {
	uint32_t stack;
	uint64_t bytes, blocks;
};

/* What a session has in use, as its last push that could be read says. */
struct session_use {
	uint32_t version;
	struct use *items;
	size_t count, capacity;
};

static void frames_take(struct directory *directory, uint32_t **frames, size_t *capacity)
{
	size_t count;
	const struct pushed_frame *all = pushed_profile_frames(directory->reader, &count);
	while (*capacity < count)
		memory_grow(*frames, *capacity, *capacity);
	for (size_t i = 0; i < count; i++) {
		const char *label = fleet_summing_label(directory->summing, &all[i]);
		(*frames)[i] = intern_text(&directory->series->frames, label);
	}
}

static uint32_t sample_stack(struct directory *directory, const struct pushed_sample *sample, const uint32_t *frames)
{
	uint32_t *stack = memory_zeroed(sample->frame_count + 1, sizeof(*stack));
	for (size_t i = 0; i < sample->frame_count; i++)
		stack[i] = frames[sample->frames[i]];
	const uint32_t number = fleet_series_stack(directory->series, stack, sample->frame_count);
	free(stack);
	return number;
}

/* The push takes the place of the one before: what that one had in use goes. */
static void use_replace(struct directory *directory, struct session_use *use, uint32_t moment, bool has_made)
{
	struct pushed_sample sample;
	uint32_t *frames = NULL;
	size_t capacity = 0, at = 0;
	for (size_t i = 0; i < use->count; i++) {
		const struct fleet_change change = {.bytes = -(int64_t)use->items[i].bytes,
						    .blocks = -(int64_t)use->items[i].blocks};
		fleet_series_add(directory->series, use->version, use->items[i].stack, moment, &change);
	}
	use->count = 0;
	frames_take(directory, &frames, &capacity);
	while (pushed_profile_next(directory->reader, &at, &sample)) {
		const struct fleet_change change = {.bytes = (int64_t)sample.values[PUSHED_INUSE_SPACE],
						    .blocks = (int64_t)sample.values[PUSHED_INUSE_OBJECTS],
						    .made_bytes = has_made ? sample.values[PUSHED_ALLOC_SPACE] : 0,
						    .made_blocks = has_made ? sample.values[PUSHED_ALLOC_OBJECTS] : 0};
		const uint32_t stack = sample_stack(directory, &sample, frames);
		fleet_series_add(directory->series, use->version, stack, moment, &change);
		memory_grow(use->items, use->count, use->capacity);
		use->items[use->count++] = (struct use){stack, (uint64_t)change.bytes, (uint64_t)change.blocks};
	}
	free(frames);
}

static int push_time_order(const void *a, const void *b)
{
	const struct push *one = a, *other = b;
	return is_later(&one->head, &other->head) - is_later(&other->head, &one->head);
}

/* The pushes of a session in the order of time, and before them the last one that is older than what was asked for: its
   use is there when the first interval begins. Return whether any is of that time. */
static bool session_follow(struct directory *directory, struct push *pushes, size_t count)
{
	qsort(pushes, count, sizeof(*pushes), push_time_order);
	const struct pushed_head *newest = &pushes[count - 1].head;
	struct session_use use = {.version = fleet_series_version(directory->series, newest->service, newest->version)};
	size_t first = 0, before;
	while (first < count && !is_in_time(directory->question, &pushes[first], newest->pushed_ns))
		first++;
	if (first == count)
		return false;
	for (before = first; before > 0; before--)
		if (!push_read(directory, &pushes[before - 1])) {
			use_replace(directory, &use, 0, false);
			break;
		}
	for (size_t i = first; i < count && is_in_time(directory->question, &pushes[i], newest->pushed_ns); i++)
		if (!push_read(directory, &pushes[i]))
			use_replace(directory, &use,
				    fleet_series_moment(directory->series, pushes[i].head.pushed_ns),
				    !pushes[i].is_covered);
	free(use.items);
	return true;
}

static int number_compare(const void *a, const void *b)
{
	return number_order(*(const int64_t *)a, *(const int64_t *)b);
}

static size_t run_length(const struct push *pushes, size_t count, bool of_session);

/* Have intervals from about the first push to about the last one. One of a hundred may have any time: the clock of one
   host does not stretch the picture of all. */
static void times_find(struct directory *directory)
{
	enum { ONE_OF = 100 };
	int64_t *times = memory_zeroed(directory->push_count + 1, sizeof(*times));
	size_t count = 0;
	for (size_t i = 0, length; i < directory->push_count; i += length) {
		const struct push *pushes = &directory->pushes[i];
		enum fleet_side side;
		length = run_length(pushes, directory->push_count - i, true);
		int64_t newest_ns = pushes->head.pushed_ns;
		for (size_t k = 0; k < length; k++)
			newest_ns = pushes[k].head.pushed_ns > newest_ns ? pushes[k].head.pushed_ns : newest_ns;
		for (size_t k = 0; k < length && session_is_asked(directory->question, &pushes->head, &side); k++)
			if (is_in_time(directory->question, &pushes[k], newest_ns))
				times[count++] = pushes[k].head.pushed_ns;
	}
	if (count) {
		qsort(times, count, sizeof(*times), number_compare);
		fleet_series_span(directory->series, times[count / ONE_OF], times[count - 1 - count / ONE_OF]);
	}
	free(times);
}

/* ---- hosts ---- */

static void head_count(struct directory *directory, const struct push *pushes, size_t count)
{
	struct fleet_answer *answer = directory->answer;
	for (size_t i = 0; i < count; i++) {
		const struct pushed_head *head = &pushes[i].head;
		if (!answer->pushes || head->pushed_ns < answer->from_ns)
			answer->from_ns = head->pushed_ns;
		if (!answer->pushes || head->pushed_ns > answer->until_ns)
			answer->until_ns = head->pushed_ns;
		if (head->period_bytes > answer->period_bytes)
			answer->period_bytes = head->period_bytes;
		answer->pushes++;
	}
	answer->sessions++;
}

/* Add a session. Set *side; return 1 if it is of none, else 0 or a negative errno. */
static int session_add(struct directory *directory, struct push *pushes, size_t count, enum fleet_side *side,
		       struct diag *diag)
{
	const enum fleet_kind asked = directory->question->asked;
	if (!session_is_asked(directory->question, &push_find(pushes, count, true, NULL)->head, side))
		return 1;
	cover_mark(pushes, count);
	if (directory->series)
		return session_follow(directory, pushes, count) ? 0 : 1;
	count = pushes_in_time(directory->question, pushes, count);
	struct push *last = count ? push_find(pushes, count, true, NULL) : NULL;
	directory->answer->old_sessions += !last;
	if (!last)
		return 1;
	head_count(directory, pushes, count);
	fleet_summing_session(directory->summing, &last->head, *side);
	if (asked == FLEET_GROWTH)
		return growth_add(directory, pushes, count, diag);
	if (asked == FLEET_DIFF)
		return diff_add(directory, pushes, count, *side, diag);
	const struct fleet_share share = {.side = *side, .has_use = true, .has_made = asked == FLEET_TOP};
	int error = use_add(directory, pushes, count, share, &last, diag);
	if (!error && asked == FLEET_TOP)
		error = made_add(directory, pushes, count, last, diag);
	return error;
}

/* Return how many pushes from here on are of the same host, or of the same session. */
static size_t run_length(const struct push *pushes, size_t count, bool of_session)
{
	size_t length = 1;
	while (length < count && (of_session ? !instance_order(&pushes->head, &pushes[length].head)
					     : !strcmp(pushes->head.host, pushes[length].head.host)))
		length++;
	return length;
}

static int host_add(struct directory *directory, struct push *pushes, size_t count, struct diag *diag)
{
	bool has_side[FLEET_SIDES] = {false};
	int error = 0;
	fleet_summing_host(directory->summing);
	for (size_t i = 0; i < count && error >= 0;) {
		const size_t length = run_length(pushes + i, count - i, true);
		enum fleet_side side;
		error = session_add(directory, pushes + i, length, &side, diag);
		if (!error)
			has_side[side] = true;
		i += length;
	}
	for (int side = 0; side < FLEET_SIDES; side++)
		directory->answer->hosts_of[side] += has_side[side];
	directory->answer->hosts += has_side[FLEET_BEFORE] || has_side[FLEET_AFTER];
	return error < 0 ? error : 0;
}

static int directory_read(struct directory *directory, const char *place, struct diag *diag)
{
	const int again = fcntl(directory->place, F_DUPFD_CLOEXEC, 0);
	if (again < 0)
		return diag_errno(diag, "cannot read %s", place);
	directory_scan(directory, again, "", 0);
	if (!directory->file_count)
		return diag_fail(diag, ENOENT, "%s has no files of xheap push, NAME%s", place, name_end);
	if (!directory->push_count)
		return diag_fail(diag, EBADMSG, "%s: none of %s file%s can be read; %s: %s", place,
				 text_count(directory->file_count).data, text_plural(directory->file_count),
				 directory->answer->notes[0].what, directory->answer->notes[0].why);
	pushes_sort(directory);
	if (directory->series)
		times_find(directory);
	int error = 0;
	for (size_t i = 0; i < directory->push_count && !error;) {
		const size_t length = run_length(directory->pushes + i, directory->push_count - i, false);
		error = host_add(directory, directory->pushes + i, length, diag);
		i += length;
	}
	if (!error && !directory->series)
		fleet_summing_end(directory->summing, directory->answer);
	return error;
}

static int directory_open(const struct fleet_place *place, const struct fleet_question *question,
			  struct fleet_answer *answer, struct fleet_series *series, struct diag *diag)
{
	struct directory directory = {.question = question, .answer = answer, .series = series};
	directory.place = open(place->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory.place < 0)
		return diag_errno(diag, "cannot read %s", place->name);
	directory.summing = fleet_summing_new(question);
	directory.reader = pushed_reader_new();
	const int error = directory_read(&directory, place->name, diag);
	pushed_reader_free(directory.reader);
	fleet_summing_free(directory.summing);
	arena_fini(&directory.arena);
	free(directory.pushes);
	close(directory.place);
	return error;
}

static int directory_ask(const struct fleet_place *place, const struct fleet_question *question,
			 struct fleet_answer *answer, struct diag *diag)
{
	return directory_open(place, question, answer, NULL, diag);
}

/* The answer's notes are there already. */
static int directory_follow(const struct fleet_place *place, const struct fleet_question *question,
			    struct fleet_series *series, struct diag *diag)
{
	struct fleet_answer notes = {.rows = NULL};
	const int error = directory_open(place, question, &notes, series, diag);
	fleet_answer_fini(&notes);
	return error;
}

const struct fleet_source fleet_directory = {"", directory_ask, NULL, directory_follow};
