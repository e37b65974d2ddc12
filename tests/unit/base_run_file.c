/* SPDX-License-Identifier: MIT */
/* Runs are read as they were written, by several threads and in pieces of any size; what fails is said once. */
#include "base/run_file.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

enum { RUNS = 5, WORDS = 40000, LARGE = 3 * RUN_BUFFER_BYTES + 7, THREADS = 4 };

static struct run_file file;

static int begin(void **state)
{
	(void)state;
	file = (struct run_file){.directory = ".", RUN_FILE_NONE};
	return 0;
}

static int end(void **state)
{
	(void)state;
	run_file_fini(&file);
	assert_int_equal(file.fd, -1);
	return 0;
}

/* A byte of a run that tells runs and places apart. */
static uint8_t byte_of(unsigned run, uint64_t at)
{
	return (uint8_t)(run * 31 + at * 7 + at / 251);
}

/* The sizes of pieces: none, some bytes, and now and then more than a buffer. */
static size_t size_of(unsigned piece)
{
	return piece % 50 == 49 ? LARGE : piece * 37 % 500;
}

static void pieces_are_read_as_they_were_written(void **state)
{
	enum { PIECES = 200 };
	static const size_t buffers[] = {1, 100, RUN_BUFFER_BYTES, 10 * RUN_BUFFER_BYTES};
	static uint8_t piece[LARGE];
	struct run_place places[RUNS];
	(void)state;
	for (unsigned run = 0; run < RUNS; run++) {
		struct run_writer writer;
		uint64_t at = 0;
		run_begin(&writer, &file, 0);
		/* The first run is empty. */
		for (unsigned i = 0; i < PIECES * run / 4; i++) {
			for (size_t k = 0; k < size_of(i); k++)
				piece[k] = byte_of(run, at++);
			run_write(&writer, piece, size_of(i));
		}
		places[run] = run_end(&writer);
		assert_int_equal(places[run].bytes, at);
		assert_int_equal(file.end, places[run].offset + at);
	}
	for (unsigned run = 0; run < RUNS; run++) {
		struct run_reader reader;
		uint64_t at = 0;
		run_open(&reader, &file, places[run], buffers[run % (sizeof(buffers) / sizeof(*buffers))]);
		for (unsigned i = 0; i < PIECES * run / 4; i++) {
			assert_true(run_read(&reader, piece, size_of(i)));
			for (size_t k = 0; k < size_of(i); k++)
				assert_int_equal(piece[k], byte_of(run, at++));
		}
		assert_false(run_read(&reader, piece, 1));
		run_close(&reader);
	}
	assert_int_equal(file.error, 0);
}

struct share {
	pthread_t thread;
	struct run_place places[RUNS];
	uint64_t number;
};

static void *write_share(void *context)
{
	struct share *share = context;
	for (unsigned run = 0; run < RUNS; run++) {
		struct run_writer writer;
		run_begin(&writer, &file, WORDS * sizeof(uint64_t));
		for (uint64_t i = 0; i < WORDS; i++) {
			uint64_t word = share->number << 48 | (uint64_t)run << 32 | i;
			run_write(&writer, &word, sizeof(word));
		}
		share->places[run] = run_end(&writer);
	}
	return NULL;
}

static void threads_write_beside_each_other(void **state)
{
	struct share shares[THREADS];
	(void)state;
	for (unsigned i = 0; i < THREADS; i++) {
		shares[i].number = i;
		assert_int_equal(pthread_create(&shares[i].thread, NULL, write_share, &shares[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(shares[i].thread, NULL);
	assert_int_equal(file.end, (uint64_t)THREADS * RUNS * WORDS * sizeof(uint64_t));
	for (uint64_t i = 0; i < THREADS; i++)
		for (uint64_t run = 0; run < RUNS; run++) {
			struct run_reader reader;
			const uint64_t *word;
			run_open(&reader, &file, shares[i].places[run], 1000 * sizeof(uint64_t));
			for (uint64_t k = 0; k < WORDS; k++) {
				word = run_next(&reader, sizeof(*word));
				assert_non_null(word);
				assert_int_equal(*word, i << 48 | run << 32 | k);
			}
			assert_null(run_next(&reader, sizeof(*word)));
			run_close(&reader);
		}
	assert_int_equal(file.error, 0);
}

static struct run_place write_words(uint64_t count)
{
	struct run_writer writer;
	run_begin(&writer, &file, 0);
	for (uint64_t i = 0; i < count; i++)
		run_write(&writer, &i, sizeof(i));
	return run_end(&writer);
}

/* Nothing is read of a file with an error, not even what was written before. */
static void assert_unreadable(struct run_place place, int error)
{
	struct run_reader reader;
	uint64_t word;
	run_open(&reader, &file, place, 64);
	assert_false(run_read(&reader, &word, sizeof(word)));
	assert_null(run_next(&reader, sizeof(word)));
	run_close(&reader);
	assert_int_equal(file.error, error);
}

static void a_missing_directory_is_an_error(void **state)
{
	(void)state;
	file.directory = "/no/such/directory";
	struct run_place place = write_words(WORDS);
	assert_int_equal(file.error, ENOENT);
	assert_unreadable(place, ENOENT);
}

static void a_full_file_system_is_an_error(void **state)
{
	(void)state;
	struct rlimit before, most = {RUN_BUFFER_BYTES, RUN_BUFFER_BYTES};
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	most.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &most), 0);
	struct run_place place = write_words(WORDS);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_unreadable(place, EFBIG);
}

static void a_cut_file_is_an_error(void **state)
{
	(void)state;
	struct run_place place = write_words(WORDS);
	assert_int_equal(ftruncate(file.fd, (off_t)place.bytes / 2), 0);
	struct run_reader reader;
	uint64_t count = 0;
	run_open(&reader, &file, place, 4096);
	while (run_next(&reader, sizeof(uint64_t)))
		count++;
	run_close(&reader);
	assert_in_range(count, 1, WORDS / 2);
	assert_unreadable(place, EIO);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {TEST(pieces_are_read_as_they_were_written),
					   TEST(threads_write_beside_each_other), TEST(a_missing_directory_is_an_error),
					   TEST(a_full_file_system_is_an_error), TEST(a_cut_file_is_an_error)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
