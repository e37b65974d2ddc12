/* SPDX-License-Identifier: MIT */
#include "fleet/clickhouse_server.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "push/push_send.h"

enum { ASK_SECONDS = 120, VERSION_LEAST = 18, LOOK_MS = 50 };

/* ---- one request ---- */

static int answer_read(int file, struct clickhouse_answer *answer, struct diag *diag)
{
	struct stat status;
	if (fstat(file, &status))
		return diag_errno(diag, "cannot read the answer");
	*answer = (struct clickhouse_answer){.data = memory_resize(NULL, (size_t)status.st_size + 1, 1)};
	while (answer->size < (size_t)status.st_size) {
		const ssize_t got = pread(file, answer->data + answer->size, (size_t)status.st_size - answer->size,
					  (off_t)answer->size);
		if (got <= 0)
			return diag_errno(diag, "cannot read the answer");
		answer->size += (size_t)got;
	}
	answer->data[answer->size] = 0;
	return 0;
}

/* Return 0 once the sending has ended well. */
static int sending_wait(struct push_sending *sending, const char *place, struct diag *diag)
{
	struct push_answer answer;
	enum push_result result;
	while ((result = push_send_poll(sending, &answer)) == PUSH_RUNNING)
		poll(&(struct pollfd){sending->output, POLLIN, 0}, 1, LOOK_MS);
	if (result == PUSH_SENT)
		return 0;
	return diag_fail(diag, result == PUSH_LATER ? EIO : EINVAL, "%s: %s", place, answer.text);
}

static uint32_t most_s(const struct clickhouse_server *server)
{
	return server->asked->most_s ? server->asked->most_s : ASK_SECONDS;
}

static int request(struct clickhouse_server *server, const char *url, int file, int answer, struct diag *diag)
{
	struct push_sending sending = {.pid = 0};
	const struct push_request request = {.file = file,
					     .url = url,
					     .type = push_place_type(&server->place),
					     .token_file = server->asked->token_file,
					     .is_basic = true,
					     .answer = answer,
					     .most_s = most_s(server)};
	int error = push_send_begin(&sending, &request, diag);
	return error ? error : sending_wait(&sending, server->place.given, diag);
}

/* The address of questions. Half an answer is none: the server is to have all of it before it sends any. A shard that
   is away is asked for by itself (fleet_database.c). Lists of epochs are long. Nobody waits for it longer than that. */
static char *ask_url(const struct clickhouse_server *server, bool is_about_server)
{
	struct sink url;
	const char *address = server->place.address;
	sink_to_memory(&url);
	sink_format(&url, "%.*s", (int)(is_about_server ? strcspn(address, "?") : strlen(address)), address);
	sink_format(&url,
		    "%cwait_end_of_query=1&skip_unavailable_shards=1&max_query_size=268435456&max_ast_elements=1000000&"
		    "max_expanded_ast_elements=1000000&max_bytes_before_external_group_by=2000000000&max_execution_"
		    "time=%" PRIu32,
		    is_about_server ? '?' : '&', most_s(server));
	return sink_take(&url, NULL);
}

static int ask(struct clickhouse_server *server, bool is_about_server, const char *sql,
	       struct clickhouse_answer *answer, struct diag *diag)
{
	*answer = (struct clickhouse_answer){.data = NULL};
	int question = memfd_create("question", MFD_CLOEXEC), file = memfd_create("answer", MFD_CLOEXEC), error = 0;
	char *url = ask_url(server, is_about_server);
	const size_t length = strlen(sql);
	if (question < 0 || file < 0 || write(question, sql, length) != (ssize_t)length || lseek(question, 0, SEEK_SET))
		error = diag_errno(diag, "cannot ask %s", server->place.given);
	if (!error)
		error = request(server, url, question, file, diag);
	if (!error)
		error = answer_read(file, answer, diag);
	if (question >= 0)
		close(question);
	if (file >= 0)
		close(file);
	free(url);
	return error;
}

int clickhouse_ask(struct clickhouse_server *server, const char *sql, struct clickhouse_answer *answer,
		   struct diag *diag)
{
	if (server->asked->shown)
		sink_format(server->asked->shown, "%s;\n\n", sql);
	return ask(server, false, sql, answer, diag);
}

int clickhouse_make(struct clickhouse_server *server, const char *sql, struct diag *diag)
{
	struct clickhouse_answer answer;
	const int error = ask(server, true, sql, &answer, diag);
	clickhouse_answer_fini(&answer);
	return error;
}

int clickhouse_insert(struct clickhouse_server *server, int file, struct diag *diag)
{
	struct sink url;
	sink_to_memory(&url);
	push_place_url(&server->place, &(struct push_origin){.service = ""}, 0, 0, &url);
	char *text = sink_take(&url, NULL);
	int error = lseek(file, 0, SEEK_SET) ? diag_errno(diag, "cannot send") : request(server, text, file, -1, diag);
	free(text);
	return error;
}

int clickhouse_open(struct clickhouse_server *server, const struct fleet_place *place, struct diag *diag)
{
	struct clickhouse_answer answer;
	*server = (struct clickhouse_server){.asked = place};
	if (strncasecmp(place->name, CLICKHOUSE_PREFIX, strlen(CLICKHOUSE_PREFIX)) != 0)
		return diag_fail(diag, EINVAL, "%s: a database begins with " CLICKHOUSE_PREFIX, place->name);
	int error = push_place_parse(&server->place, place->name, diag);
	if (error)
		return error;
	error = ask(server, true, "SELECT version()", &answer, diag);
	server->version = error ? 0 : (unsigned)strtoul(answer.data, NULL, 10);
	if (!error && server->version < VERSION_LEAST)
		error = diag_fail(diag, EPROTO, "%s is no ClickHouse, or one before 18.16", place->name);
	clickhouse_answer_fini(&answer);
	return error;
}

void clickhouse_close(struct clickhouse_server *server)
{
	push_place_fini(&server->place);
}

/* ---- answers ---- */

static void bytes_take(struct clickhouse_answer *answer, void *to, size_t size)
{
	memset(to, 0, size);
	if (size > answer->size - answer->at) {
		answer->at = answer->size;
		answer->is_cut = true;
		return;
	}
	memcpy(to, answer->data + answer->at, size);
	answer->at += size;
}

uint64_t clickhouse_number(struct clickhouse_answer *answer)
{
	uint64_t number;
	bytes_take(answer, &number, sizeof(number));
	return number;
}

double clickhouse_real(struct clickhouse_answer *answer)
{
	double number;
	bytes_take(answer, &number, sizeof(number));
	return number;
}

uint64_t clickhouse_length(struct clickhouse_answer *answer)
{
	enum { DIGIT_BITS = 7, BITS = 64 };
	uint64_t length = 0;
	uint8_t digit = 1U << DIGIT_BITS;
	for (unsigned bits = 0; bits < BITS && digit >> DIGIT_BITS; bits += DIGIT_BITS) {
		bytes_take(answer, &digit, 1);
		length |= (uint64_t)(digit & ((1U << DIGIT_BITS) - 1)) << bits;
	}
	return length;
}

/* The text moves over the last byte of its length, so that there is room for a NUL. */
const char *clickhouse_text(struct clickhouse_answer *answer)
{
	const uint64_t length = clickhouse_length(answer);
	if (length > answer->size - answer->at) {
		answer->at = answer->size;
		answer->is_cut = true;
	}
	if (!length || answer->is_cut)
		return "";
	char *text = answer->data + answer->at - 1;
	memmove(text, text + 1, (size_t)length);
	text[length] = 0;
	answer->at += (size_t)length;
	return text_make_harmless(text);
}

int clickhouse_answer_end(struct clickhouse_answer *answer, int error, const struct clickhouse_server *server,
			  struct diag *diag)
{
	if (!error && (answer->is_cut || clickhouse_has_more(answer)))
		error = diag_fail(diag, EPROTO, "%s: the answer cannot be read", server->place.given);
	clickhouse_answer_fini(answer);
	return error;
}

void clickhouse_answer_fini(struct clickhouse_answer *answer)
{
	free(answer->data);
	*answer = (struct clickhouse_answer){.data = NULL};
}

void clickhouse_quote(struct sink *sql, const char *text)
{
	sink_put(sql, '\'');
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			sink_put(sql, '\\');
		sink_put(sql, *text);
	}
	sink_put(sql, '\'');
}
