/* SPDX-License-Identifier: MIT */
#include "table/index_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/memory.h"
#include "table/weight.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

_Static_assert(sizeof(struct heap_index_head) <= HEAP_INDEX_ORIGIN_OFFSET, "the head has its place");

enum { NAME_TRIES = 10 };

static bool trace_describe(struct heap_index_trace *described, const struct trace *trace, const char *trace_path,
			   struct stat *status)
{
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	*described = (struct heap_index_trace){.size_bytes = dictionary->size_bytes,
					       .event_count = dictionary->event_count,
					       .contents = dictionary->contents,
					       .start_realtime_ns = dictionary->start_realtime_ns,
					       .duration_ns = dictionary->duration_ns,
					       .nodes = dictionary->node_count,
					       .threads = dictionary->thread_count,
					       .heaps = dictionary->heap_count,
					       .entries = dictionary->entry_count};
	return stat(trace_path, status) == 0 && (uint64_t)status->st_size == dictionary->size_bytes;
}

/* ---- reading ---- */

/* Return whether the index belongs to a user whose answers can be trusted. */
static bool is_trusted(const struct stat *index, const struct stat *trace)
{
	return S_ISREG(index->st_mode) &&
	       (index->st_uid == geteuid() || index->st_uid == 0 || index->st_uid == trace->st_uid);
}

static size_t tables_bytes(const struct heap_index_head *head)
{
	return head->group_count * sizeof(struct heap_group) +
	       groups_strip_count(head->group_count) * sizeof(struct heap_strips) +
	       head->site_count * sizeof(struct heap_site) + head->process_count * sizeof(struct heap_process) +
	       head->trace.heaps * sizeof(uint32_t) + head->instant_count * sizeof(struct heap_instant) +
	       heap_time_count(head->point_count) * sizeof(int64_t) + head->fault_count * sizeof(struct heap_fault) +
	       head->numbers_count * sizeof(struct heap_numbers) + head->use_count * sizeof(struct heap_use) +
	       head->checkpoint_count * sizeof(struct heap_checkpoint) +
	       head->copies_count * sizeof(struct heap_group) +
	       groups_strip_count(head->copies_count) * sizeof(struct heap_strips) +
	       head->sizes_count * sizeof(struct heap_sizes);
}

static bool head_is_good(const struct heap_index_head *head, const struct heap_index_trace *of,
			 const struct trace_dictionary *dictionary, uint64_t size_bytes)
{
	return !memcmp(head->magic, HEAP_INDEX_MAGIC, HEAP_INDEX_MAGIC_BYTES) && head->head_bytes == sizeof(*head) &&
	       head->group_rows == PACK_ROWS && (!head->sizes_count || head->sizes_count == head->group_count) &&
	       head->checksum == XXH3_64bits(head, offsetof(struct heap_index_head, checksum)) &&
	       !memcmp(&head->trace, of, sizeof(*of)) &&
	       head->group_count == (head->count + (uint64_t)PACK_ROWS - 1) / PACK_ROWS &&
	       head->process_count == dictionary->process_count &&
	       (head->numbers_count ? head->numbers_count == head->site_count : !head->use_count) &&
	       head->tables_offset <= size_bytes && tables_bytes(head) <= size_bytes - head->tables_offset;
}

static bool sites_are_good(const struct heap_table *table)
{
	const struct trace_dictionary *dictionary = table->dictionary;
	for (uint32_t i = 0; i < table->site_count; i++) {
		const struct heap_site *site = &table->sites[i];
		if ((site->stack && site->stack >= dictionary->node_count) ||
		    (site->entry < HEAP_OVERHEAD && site->entry >= dictionary->entry_count))
			return false;
	}
	for (uint32_t i = 0; i < table->groups.count; i++)
		if (table->groups.items[i].end_count > PACK_ROWS || table->groups.items[i].row_count > PACK_ROWS)
			return false;
	for (uint32_t i = 0; i < dictionary->heap_count; i++)
		if (table->inside[i] != TRACE_NONE && table->inside[i] >= dictionary->heap_count)
			return false;
	return !table->nested_count ||
	       (table->site_count && table->sites[table->site_count - 1].entry == HEAP_OVERHEAD);
}

/* Sums of more than there is would be a lot of room for lifetimes. */
static bool sums_are_good(const struct heap_table *table)
{
	const struct heap_sums *sums = &table->sums;
	uint64_t count = 0;
	for (uint32_t i = 0; sums->numbers && i < table->site_count; i++) {
		if (sums->numbers[i].recorded_count > table->count)
			return false;
		count += sums->numbers[i].recorded_count;
	}
	for (size_t i = 0; i < sums->use_count; i++)
		if (sums->uses[i].cell >= table->site_count || sums->uses[i].thread >= table->dictionary->thread_count)
			return false;
	return count <= table->count;
}

/* The arrays, one behind the other, as they are read. */
struct table_reader {
	int fd;
	uint64_t offset;
	XXH3_state_t *hash;
	bool has_failed;
};

static void *array_read(struct table_reader *reader, size_t count, size_t size)
{
	void *array = memory_zeroed(count, size);
	reader->has_failed |= file_read(reader->fd, array, count * size, reader->offset) != count * size;
	XXH3_64bits_update(reader->hash, array, count * size);
	reader->offset += count * size;
	return array;
}

static struct heap_table *table_read(int fd, const struct heap_index_head *head, const struct trace *trace)
{
	struct table_reader at = {fd, head->tables_offset, XXH3_createState(), false};
	if (!at.hash)
		memory_exhausted(0);
	XXH3_64bits_reset(at.hash);
	posix_fadvise(fd, (off_t)head->tables_offset, (off_t)tables_bytes(head), POSIX_FADV_WILLNEED);
	struct heap_table *table = memory_zeroed(1, sizeof(*table));
	*table = (struct heap_table){.trace = trace,
				     .dictionary = trace_dictionary(trace),
				     .count = head->count,
				     .site_count = head->site_count,
				     .unknown_frees = head->unknown_frees,
				     .order_conflicts = head->order_conflicts,
				     .duration_ns = head->duration_ns,
				     .peak = head->peak,
				     .sample_bytes = heap_sample_bytes(trace_dictionary(trace)),
				     .nested_count = head->nested_count,
				     .point_count = head->point_count,
				     .instant_count = head->instant_count,
				     .fault_count = head->fault_count};
	table->is_damaged = memory_zeroed(1, sizeof(*table->is_damaged));
	table->groups = (struct heap_groups){.fd = -1, .count = head->group_count, .capacity = head->group_count};
	table->groups.items = array_read(&at, head->group_count, sizeof(*table->groups.items));
	table->groups.strips = array_read(&at, groups_strip_count(head->group_count), sizeof(*table->groups.strips));
	table->sites = array_read(&at, head->site_count, sizeof(*table->sites));
	table->processes = array_read(&at, head->process_count, sizeof(*table->processes));
	table->inside = array_read(&at, head->trace.heaps, sizeof(*table->inside));
	table->instants = array_read(&at, head->instant_count, sizeof(*table->instants));
	table->point_times = array_read(&at, heap_time_count(head->point_count), sizeof(*table->point_times));
	table->faults = array_read(&at, head->fault_count, sizeof(*table->faults));
	table->sums.use_count = head->use_count;
	if (head->numbers_count) {
		table->sums.numbers = array_read(&at, head->numbers_count, sizeof(*table->sums.numbers));
		table->sums.uses = array_read(&at, head->use_count, sizeof(*table->sums.uses));
	}
	table->checkpoints = (struct heap_checkpoints){
		.items = array_read(&at, head->checkpoint_count, sizeof(*table->checkpoints.items)),
		.count = head->checkpoint_count,
		.copies = {.fd = fd,
			   .is_borrowed = true,
			   .items = array_read(&at, head->copies_count, sizeof(*table->checkpoints.copies.items)),
			   .count = head->copies_count}};
	table->checkpoints.copies.strips =
		array_read(&at, groups_strip_count(head->copies_count), sizeof(*table->checkpoints.copies.strips));
	if (head->sizes_count)
		table->checkpoints.sizes = array_read(&at, head->sizes_count, sizeof(*table->checkpoints.sizes));
	bool is_good = !at.has_failed && XXH3_64bits_digest(at.hash) == head->tables_checksum;
	XXH3_freeState(at.hash);
	if (is_good && sites_are_good(table) && sums_are_good(table) && heap_points_are_good(table) &&
	    heap_table_find_sum_sites(table) && heap_checkpoints_are_good(&table->checkpoints, table->groups.count))
		return table;
	heap_table_free(table);
	return NULL;
}

static struct heap_table *path_read(const char *path, const struct trace *trace, const struct heap_index_trace *of,
				    const struct stat *trace_status)
{
	static const struct timespec used[] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
	struct heap_index_head head;
	struct stat status;
	struct heap_table *table = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &status) && is_trusted(&status, trace_status) &&
	    file_read(fd, &head, sizeof(head), 0) == sizeof(head) &&
	    head_is_good(&head, of, trace_dictionary(trace), (uint64_t)status.st_size))
		table = table_read(fd, &head, trace);
	if (!table) {
		close(fd);
		return NULL;
	}
	table->groups.fd = fd;
	/* Somebody else's file keeps its time; nobody asks for it then. */
	futimens(fd, used);
	return table;
}

int heap_index_read(struct heap_table **out, const struct trace *trace, const char *trace_path,
		    const char *const *paths, unsigned path_count)
{
	struct heap_index_trace of;
	struct stat status;
	*out = NULL;
	if (!trace_describe(&of, trace, trace_path, &status))
		return -ENOENT;
	for (unsigned i = 0; i < path_count && !*out; i++)
		*out = path_read(paths[i], trace, &of, &status);
	return *out ? 0 : -ENOENT;
}

/* ---- writing ---- */

int heap_index_begin(const char *directory, struct diag *diag)
{
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, FILE_PERMISSIONS);
	return fd < 0 ? diag_errno(diag, "cannot write to %s", directory) : fd;
}

static bool append(int fd, XXH3_state_t *hash, uint64_t *offset, const void *data, size_t size)
{
	uint64_t at = *offset;
	XXH3_64bits_update(hash, data, size);
	*offset += size;
	return file_write(fd, data, size, at);
}

static bool tables_write(const struct heap_table *table, const struct heap_checkpoints *checkpoints,
			 struct heap_index_head *head)
{
	assert(!head->numbers_count || head->numbers_count == table->site_count);
	const struct heap_groups *groups = &table->groups;
	uint64_t offset = head->tables_offset, at = 0;
	XXH3_state_t *hash = XXH3_createState();
	if (!hash)
		memory_exhausted(0);
	XXH3_64bits_reset(hash);
	bool is_written =
		append(groups->fd, hash, &offset, groups->items, groups->count * sizeof(*groups->items)) &&
		append(groups->fd, hash, &offset, groups->strips,
		       groups_strip_count(groups->count) * sizeof(*groups->strips)) &&
		append(groups->fd, hash, &offset, table->sites, table->site_count * sizeof(*table->sites)) &&
		append(groups->fd, hash, &offset, table->processes, head->process_count * sizeof(*table->processes)) &&
		append(groups->fd, hash, &offset, table->inside, head->trace.heaps * sizeof(*table->inside)) &&
		append(groups->fd, hash, &offset, table->instants, head->instant_count * sizeof(*table->instants)) &&
		append(groups->fd, hash, &offset, table->point_times,
		       heap_time_count(head->point_count) * sizeof(*table->point_times)) &&
		append(groups->fd, hash, &offset, table->faults, head->fault_count * sizeof(*table->faults)) &&
		append(groups->fd, hash, &offset, table->sums.numbers,
		       head->numbers_count * sizeof(*table->sums.numbers)) &&
		append(groups->fd, hash, &offset, table->sums.uses, head->use_count * sizeof(*table->sums.uses)) &&
		append(groups->fd, hash, &offset, checkpoints->items,
		       head->checkpoint_count * sizeof(*checkpoints->items)) &&
		append(groups->fd, hash, &offset, checkpoints->copies.items,
		       head->copies_count * sizeof(*checkpoints->copies.items)) &&
		append(groups->fd, hash, &offset, checkpoints->copies.strips,
		       groups_strip_count(head->copies_count) * sizeof(*checkpoints->copies.strips)) &&
		append(groups->fd, hash, &offset, checkpoints->sizes, head->sizes_count * sizeof(*checkpoints->sizes));
	head->tables_checksum = XXH3_64bits_digest(hash);
	head->checksum = XXH3_64bits(head, offsetof(struct heap_index_head, checksum));
	is_written = is_written && append(groups->fd, hash, &at, head, sizeof(*head));
	XXH3_freeState(hash);
	return is_written;
}

/* Note for people where the trace was. */
static bool origin_write(int fd, const char *trace_path)
{
	char origin[HEAP_INDEX_ORIGIN_BYTES] = "", *path = realpath(trace_path, NULL);
	if (path && strlen(path) < sizeof(origin))
		strcpy(origin, path);
	free(path);
	return file_write(fd, origin, sizeof(origin), HEAP_INDEX_ORIGIN_OFFSET);
}

/* Give the file its name, also where an older index has it. Others may make the same index at the same time: theirs is
   as good. */
static int file_name(int fd, const char *path)
{
	char self[64];
	int error = 0;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	for (int i = 0; i < NAME_TRIES; i++) {
		error = linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) ? errno : 0;
		if (error != EEXIST)
			return -error;
		if (unlink(path) && errno != ENOENT)
			return -errno;
	}
	return error == EEXIST ? 0 : -error;
}

int heap_index_write(const struct heap_table *table, const char *trace_path, const char *path, struct diag *diag)
{
	assert(table->groups.fd >= 0 || table->groups.error);
	assert(table->groups.count == ((uint64_t)table->count + PACK_ROWS - 1) / PACK_ROWS);
	const struct heap_groups *groups = &table->groups;
	struct heap_index_head head;
	struct stat status;
	memset(&head, 0, sizeof(head));
	memcpy(head.magic, HEAP_INDEX_MAGIC, sizeof(head.magic));
	head.head_bytes = sizeof(head);
	head.group_rows = PACK_ROWS;
	head.tables_offset = groups->end;
	head.count = table->count;
	head.group_count = groups->count;
	head.site_count = table->site_count;
	head.process_count = table->dictionary->process_count;
	head.numbers_count = table->sums.numbers ? table->site_count : 0;
	head.use_count = (uint32_t)table->sums.use_count;
	head.unknown_frees = table->unknown_frees;
	head.order_conflicts = table->order_conflicts;
	head.duration_ns = table->duration_ns;
	head.peak = table->peak;
	head.nested_count = table->nested_count;
	head.point_count = table->point_count;
	head.instant_count = table->instant_count;
	head.fault_count = table->fault_count;
	if (groups->error)
		return diag_fail(diag, groups->error, "cannot write %s: %s", path, strerror(groups->error));
	if (!trace_describe(&head.trace, table->trace, trace_path, &status))
		return diag_fail(diag, ESTALE, "%s changes while it is read", trace_path);
	struct heap_checkpoints checkpoints;
	if (!heap_checkpoints_make(&checkpoints, table, &head.tables_offset))
		heap_checkpoints_fini(&checkpoints);
	head.checkpoint_count = checkpoints.count;
	head.copies_count = checkpoints.copies.count;
	head.sizes_count = checkpoints.sizes ? head.group_count : 0;
	bool is_written = origin_write(groups->fd, trace_path) && tables_write(table, &checkpoints, &head);
	heap_checkpoints_fini(&checkpoints);
	if (!is_written)
		return diag_errno(diag, "cannot write %s", path);
	int error = file_name(groups->fd, path);
	return error ? diag_fail(diag, -error, "cannot write %s: %s", path, strerror(-error)) : 0;
}

/* ---- answers behind the tables ---- */

/* Read the head of an index that this user owns, which has its place. */
static bool own_head_read(const struct heap_table *table, struct heap_index_head *head, uint64_t *size_bytes)
{
	struct stat status;
	int fd = table->groups.fd;
	if (fd < 0 || fstat(fd, &status) || status.st_uid != geteuid() || !status.st_nlink)
		return false;
	*size_bytes = (uint64_t)status.st_size;
	return file_read(fd, head, sizeof(*head), 0) == sizeof(*head) &&
	       !memcmp(head->magic, HEAP_INDEX_MAGIC, HEAP_INDEX_MAGIC_BYTES) && head->head_bytes == sizeof(*head) &&
	       head->checksum == XXH3_64bits(head, offsetof(struct heap_index_head, checksum)) &&
	       head->tables_offset <= *size_bytes && tables_bytes(head) <= *size_bytes - head->tables_offset;
}

bool heap_index_keeps_answers(const struct heap_table *table)
{
	struct heap_index_head head;
	uint64_t size_bytes;
	return own_head_read(table, &head, &size_bytes);
}

/* Return whether there is an answer, in a file of so many bytes. */
static bool answer_is_there(const struct heap_index_kept *kept, uint64_t size_bytes)
{
	return kept->bytes && kept->offset <= size_bytes && kept->bytes <= size_bytes - kept->offset;
}

uint64_t heap_index_program(void)
{
	struct stat own;
	if (stat("/proc/self/exe", &own))
		return 0;
	const uint64_t numbers[] = {(uint64_t)own.st_size, (uint64_t)own.st_mtim.tv_sec, (uint64_t)own.st_mtim.tv_nsec};
	return XXH3_64bits(numbers, sizeof(numbers));
}

uint8_t *heap_index_read_answer(const struct heap_table *table, enum heap_index_answer which, uint64_t key,
				uint64_t *bytes)
{
	struct heap_index_head head;
	uint64_t size_bytes;
	if (!own_head_read(table, &head, &size_bytes))
		return NULL;
	const struct heap_index_kept *kept = &head.answers[which];
	if (kept->key != key || !answer_is_there(kept, size_bytes))
		return NULL;
	uint8_t *data = memory_resize(NULL, kept->bytes, 1);
	*bytes = kept->bytes;
	if (file_read(table->groups.fd, data, *bytes, kept->offset) == *bytes &&
	    XXH3_64bits(data, *bytes) == kept->checksum)
		return data;
	free(data);
	return NULL;
}

/* The first room behind the tables that no other answer has. */
static uint64_t answer_place(const struct heap_index_head *head, uint64_t size_bytes, enum heap_index_answer which,
			     uint64_t bytes)
{
	uint64_t offset = head->tables_offset + tables_bytes(head);
	for (int i = 0; i < HEAP_ANSWER_COUNT; i++) {
		const struct heap_index_kept *other = &head->answers[i];
		bool is_free = offset + bytes <= other->offset || offset >= other->offset + other->bytes;
		if (i == (int)which || !answer_is_there(other, size_bytes) || is_free)
			continue;
		offset = other->offset + other->bytes;
		i = -1;
	}
	return offset;
}

/* The head is written last, and at once. Until then an earlier answer has a wrong checksum. */
bool heap_index_keep_answer(const struct heap_table *table, enum heap_index_answer which, uint64_t key,
			    const uint8_t *data, uint64_t bytes)
{
	char self[64];
	struct heap_index_head head;
	uint64_t size_bytes;
	if (!own_head_read(table, &head, &size_bytes))
		return false;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", table->groups.fd);
	int fd = open(self, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	head.answers[which] = (struct heap_index_kept){key, answer_place(&head, size_bytes, which, bytes), bytes,
						       XXH3_64bits(data, bytes)};
	head.checksum = XXH3_64bits(&head, offsetof(struct heap_index_head, checksum));
	bool is_kept =
		file_write(fd, data, bytes, head.answers[which].offset) && file_write(fd, &head, sizeof(head), 0);
	close(fd);
	return is_kept;
}
