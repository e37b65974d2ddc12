/* SPDX-License-Identifier: MIT */
/*
 * Profiles that hosts have pushed: the input is what such a file unpacks to, and, once more, the file itself. What is
 * taken has its frames among those of the profile and no sum that overflows; an answer is made of it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "export/gzip.h"
#include "fleet/fleet_output.h"
#include "fleet/fleet_page.h"
#include "fleet/fleet_sums.h"
#include "replay.h"

#define VALUE_BITS 56

static void check(int is_true)
{
	if (!is_true)
		abort();
}

static void check_samples(struct pushed_reader *reader)
{
	size_t frame_count, at = 0;
	uint64_t bytes = 0;
	struct pushed_sample sample;
	const struct pushed_frame *frames = pushed_profile_frames(reader, &frame_count);
	for (size_t i = 0; i < frame_count; i++)
		for (size_t k = 0; k < frames[i].function.size; k++)
			bytes += (unsigned char)frames[i].function.data[k];
	while (pushed_profile_next(reader, &at, &sample)) {
		for (size_t i = 0; i < sample.frame_count; i++)
			check(sample.frames[i] < frame_count);
		for (int i = 0; i < PUSHED_VALUES; i++)
			check(!(sample.values[i] >> VALUE_BITS));
	}
	check(bytes < UINT64_MAX);
}

/* Ask about that one profile. */
static void answer_make(struct pushed_reader *reader, const struct pushed_head *head, const char *frame)
{
	const struct fleet_question question = {.asked = frame ? FLEET_HOSTS : FLEET_GROWTH,
						.by = frame ? FLEET_BY_HOST : FLEET_BY_STACK,
						.frame = frame,
						.top = 10};
	const struct fleet_share share = {.side = FLEET_AFTER, .has_use = true, .has_made = true, .rate = 2};
	struct fleet_answer answer = {.rows = NULL};
	struct diag diag = {""};
	struct sink out;
	struct fleet_summing *summing = fleet_summing_new(&question);
	fleet_summing_host(summing);
	fleet_summing_session(summing, head, FLEET_AFTER);
	check(!fleet_summing_add(summing, reader, head->period_bytes, &share, &diag));
	fleet_summing_end(summing, &answer);
	fleet_answer_settle(&answer, &question);
	sink_to_memory(&out);
	fleet_output_json(&(struct fleet_output){.place = "", .question = &question, .answer = &answer}, &out);
	for (size_t i = 0; i < out.used; i++)
		check(out.buffer[i] == '\n' || (unsigned char)out.buffer[i] >= ' ');
	sink_end(&out);
	fleet_answer_fini(&answer);
	fleet_summing_free(summing);
}

/* Add what the profile says at each moment, and take it back at the next one. */
static void series_fill(struct fleet_series *series, struct pushed_reader *reader, const struct pushed_head *head)
{
	const uint32_t version = fleet_series_version(series, head->service, head->version);
	const uint32_t moment = fleet_series_moment(series, head->pushed_ns);
	uint32_t stack = 0;
	size_t at = 0;
	struct pushed_sample sample;
	while (pushed_profile_next(reader, &at, &sample)) {
		const struct fleet_change more = {(int64_t)sample.values[PUSHED_INUSE_SPACE],
						  (int64_t)sample.values[PUSHED_INUSE_OBJECTS],
						  sample.values[PUSHED_ALLOC_SPACE], sample.values[PUSHED_ALLOC_OBJECTS]};
		const struct fleet_change less = {-more.bytes, -more.blocks, 0, 0};
		const uint32_t number = stack < series->stack_count ? stack : FLEET_REST;
		fleet_series_add(series, version, number, moment, &more);
		if (moment + 1 < series->bounds.count)
			fleet_series_add(series, version, number, moment + 1, &less);
		stack++;
	}
}

/* A page of that one profile; of fewer intervals, too. */
static void page_make(struct pushed_reader *reader, const struct pushed_head *head)
{
	struct fleet_question question = {.asked = FLEET_TOP, .by = FLEET_BY_STACK, .top = 10};
	const struct fleet_share share = {.side = FLEET_AFTER, .has_use = true, .has_made = true};
	struct fleet_answer answer = {.rows = NULL}, growth = {.rows = NULL};
	struct fleet_series series = {.stack_count = 0};
	const struct fleet_page page = {"", &question, &answer, &growth, &series};
	struct fleet_summing *summing = fleet_summing_new(&question);
	struct diag diag = {""};
	fleet_summing_host(summing);
	fleet_summing_session(summing, head, FLEET_AFTER);
	check(!fleet_summing_add(summing, reader, head->period_bytes, &share, &diag));
	fleet_summing_end(summing, &answer);
	fleet_answer_settle(&answer, &question);
	answer.from_ns = head->from_ns;
	answer.until_ns = head->until_ns;
	answer.sessions = answer.pushes = 1;
	fleet_series_begin(&series, &answer);
	series_fill(&series, reader, head);
	for (int i = 0; i < 2; i++) {
		struct sink facts, cells;
		sink_to_memory(&facts);
		sink_to_memory(&cells);
		fleet_page_write(&page, &facts, &cells);
		check(facts.used && cells.used);
		sink_end(&facts);
		sink_end(&cells);
		fleet_series_halve(&series);
	}
	fleet_series_fini(&series);
	fleet_answer_fini(&answer);
	fleet_summing_free(summing);
}

static void take_file(struct pushed_reader *reader, int file)
{
	struct arena arena = {.chunks = NULL};
	struct pushed_head head;
	struct diag diag = {""};
	const int error = pushed_head_read(reader, file, &head, &arena, &diag);
	check(!error == !diag.text[0]);
	if (!error && !pushed_profile_read(reader, file, &diag)) {
		check_samples(reader);
		answer_make(reader, &head, NULL);
		answer_make(reader, &head, "*a*");
		page_make(reader, &head);
	}
	arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pushed_reader *reader;
	struct sink out;
	if (!reader)
		reader = pushed_reader_new();
	const int file = memfd_create("pushed", MFD_CLOEXEC);
	check(file >= 0);
	struct gzip *gzip = malloc(sizeof(*gzip));
	check(gzip != NULL);
	sink_to_fd(&out, file, 1 << 16);
	gzip_begin(gzip, &out);
	sink_bytes(&gzip->sink, (const char *)data, size);
	gzip_end(gzip);
	check(!sink_end(&out));
	free(gzip);
	take_file(reader, file);
	check(!ftruncate(file, 0) && pwrite(file, data, size, 0) == (ssize_t)size);
	take_file(reader, file);
	close(file);
	return 0;
}

const struct replay replay = {.bytes_max = 1 << 15, .cut_bytes = 13, .flip_rounds = 2000};
