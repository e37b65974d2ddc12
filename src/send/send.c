/* SPDX-License-Identifier: MIT */
/*
 * xheap-send send|ask SECONDS URL TYPE Bearer|Basic [TOKEN-FILE] <PROFILE: send a profile by HTTP, and end. What goes
 * wrong is a line of standard output, "SECONDS TEXT": how long the server wants to be left alone, and why. The exit
 * status is of enum push_result. `ask` sends a question, and writes the answer to descriptor 3.
 * It speaks with a server that may be anybody's, so as root it gives up all rights first.
 */
#include <curl/curl.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/protobuf_read.h"
#include "push/push_place.h"
#include "push/push_send.h"

enum {
	NOBODY = 65534,
	CONNECT_SECONDS = 10,
	TOKEN_BYTES_MAX = 8192,
	ANSWER_BYTES_MAX = 4096,
	KEPT_BYTES_MAX = 1 << 30,
	MEMORY_BYTES = 512 << 20,
	STATUS_OK = 200,
	STATUS_OK_END = 300,
	STATUS_TIMEOUT = 408,
	STATUS_BUSY = 429,
	STATUS_SERVER = 500
};

struct server_answer {
	char text[ANSWER_BYTES_MAX];
	size_t size;
	bool is_kept; /* all of it */
	uint64_t kept_bytes;
};

/* The words of the command. */
enum { ASK = 1, SECONDS, URL, TYPE, SCHEME, TOKEN_FILE, WORDS_MAX };

static int say(enum push_result result, long wait_s, const char *what, const char *more)
{
	printf("%ld %s%s%s\n", wait_s, what, *more ? ": " : "", more);
	return (int)result;
}

static bool bytes_keep(const char *data, size_t size)
{
	for (ssize_t done; size; data += done, size -= (size_t)done)
		if ((done = write(PUSH_ANSWER_FD, data, size)) <= 0)
			return false;
	return true;
}

/* Keep the beginning of the answer, or all of it. */
static size_t answer_take(char *data, size_t size, size_t count, void *context)
{
	struct server_answer *answer = context;
	const size_t bytes = size * count, room = sizeof(answer->text) - 1 - answer->size;
	const size_t taken = bytes < room ? bytes : room;
	memcpy(answer->text + answer->size, data, taken);
	answer->size += taken;
	answer->text[answer->size] = 0;
	answer->kept_bytes += bytes;
	if (answer->is_kept && (answer->kept_bytes > KEPT_BYTES_MAX || !bytes_keep(data, bytes)))
		return 0;
	return bytes;
}

/* Return how many profiles an OpenTelemetry server has not taken, although it answers 200; the answer's text becomes
   its reason. A message {1: {1: the number, 2: the reason}}; what does not look like one says nothing. */
static uint64_t answer_rejected(struct server_answer *answer)
{
	struct protobuf_rest rest = protobuf_begin(answer->text, answer->size);
	struct protobuf_field field;
	uint64_t rejected = 0;
	char reason[ANSWER_BYTES_MAX] = "";
	if (!protobuf_next(&rest, &field) || field.number != 1)
		return 0;
	rest = protobuf_inside(&field);
	while (protobuf_next(&rest, &field)) {
		if (field.number == 1)
			rejected = field.value;
		if (field.number == 2)
			snprintf(reason, sizeof(reason), "%.*s", (int)field.size, (const char *)field.bytes);
	}
	strcpy(answer->text, reason);
	return rejected;
}

/* A line of text that is harmless on a terminal. */
static void answer_settle(struct server_answer *answer)
{
	answer->text[strcspn(answer->text, "\r\n")] = 0;
	for (char *at = answer->text; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

/* The first line of a file that nobody else can read. NULL after a message; the caller frees it. */
static char *token_read(const char *path, const char **why)
{
	struct stat status;
	char token[TOKEN_BYTES_MAX];
	FILE *file = fopen(path, "re");
	*why = "cannot read the token";
	if (!file || fstat(fileno(file), &status) || !S_ISREG(status.st_mode)) {
		if (file)
			fclose(file);
		return NULL;
	}
	char *line = fgets(token, sizeof(token), file);
	fclose(file);
	if (status.st_mode & 077) {
		*why = "others may read the token: chmod 600 it";
		return NULL;
	}
	if (!line || !token[strcspn(token, "\r\n")] || strcspn(token, "\r\n") == 0)
		return NULL;
	token[strcspn(token, "\r\n")] = 0;
	return strdup(token);
}

/* Return whether this process has no rights that matter. */
static bool rights_drop(void)
{
	if (geteuid() == 0 && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
		return false;
	/* What a sanitizer maps is terabytes. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	setrlimit(RLIMIT_AS, &(struct rlimit){MEMORY_BYTES, MEMORY_BYTES});
#endif
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static size_t file_read(char *to, size_t size, size_t count, void *context)
{
	return fread(to, size, count, context);
}

static CURLcode curl_send(CURL *curl, char *const *words, struct curl_slist *headers, curl_off_t size,
			  struct server_answer *answer, char *why)
{
	curl_easy_setopt(curl, CURLOPT_URL, words[URL]);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, size);
	curl_easy_setopt(curl, CURLOPT_READFUNCTION, file_read);
	curl_easy_setopt(curl, CURLOPT_READDATA, stdin);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, answer_take);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "xheap");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, strtol(words[SECONDS], NULL, 10));
	return curl_easy_perform(curl);
}

/* What a status of HTTP means for the profile. */
static int judge(CURL *curl, const char *type, struct server_answer *answer)
{
	char what[80];
	curl_off_t wait_s = 0;
	long status = 0;
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait_s);
	const bool is_taken = status >= STATUS_OK && status < STATUS_OK_END;
	const uint64_t rejected = is_taken && !strcmp(type, PUSH_TYPE_OTLP) ? answer_rejected(answer) : 0;
	answer_settle(answer);
	if (rejected) {
		snprintf(what, sizeof(what), "the server rejects %" PRIu64 " of the profiles", rejected);
		return say(PUSH_REFUSED, 0, what, answer->text);
	}
	if (is_taken)
		return say(PUSH_SENT, 0, "", "");
	snprintf(what, sizeof(what), "the server answers %ld", status);
	const bool is_later = status == STATUS_TIMEOUT || status == STATUS_BUSY || status >= STATUS_SERVER;
	return say(is_later ? PUSH_LATER : PUSH_REFUSED, (long)wait_s, what, answer->text);
}

/* A token's header; NULL: it is a user with a password. */
static char *token_header(CURL *curl, const char *scheme, const char *token)
{
	char *header = NULL;
	if (!strcmp(scheme, "Basic")) {
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		curl_easy_setopt(curl, CURLOPT_USERPWD, token);
		return NULL;
	}
	return asprintf(&header, "Authorization: %s %s", scheme, token) > 0 ? header : NULL;
}

static int send_all(CURL *curl, char *const *words, const char *token)
{
	struct stat status;
	struct server_answer answer = {.is_kept = !strcmp(words[ASK], "ask")};
	struct curl_slist *headers = NULL;
	char type[200], reason[CURL_ERROR_SIZE] = "", *header = token ? token_header(curl, words[SCHEME], token) : NULL;
	snprintf(type, sizeof(type), "Content-Type: %s", words[TYPE]);
	headers = curl_slist_append(headers, type);
	/* Else a POST of more than a megabyte waits a second for leave. */
	headers = curl_slist_append(headers, "Expect:");
	if (header)
		headers = curl_slist_append(headers, header);
	/* The profile begins where the file is read from. */
	const off_t begin = lseek(STDIN_FILENO, 0, SEEK_CUR);
	const curl_off_t size = fstat(STDIN_FILENO, &status) ? 0 : status.st_size - (begin > 0 ? begin : 0);
	const CURLcode code = curl_send(curl, words, headers, size, &answer, reason);
	const int result = code == CURLE_OK ? judge(curl, words[TYPE], &answer)
					    : say(PUSH_LATER, 0, curl_easy_strerror(code), reason);
	curl_slist_free_all(headers);
	free(header);
	return result;
}

int main(int count, char **words)
{
	const char *why = "";
	char *token = NULL;
	if (count < TOKEN_FILE || count > WORDS_MAX) {
		fprintf(stderr, "usage: xheap-send send|ask SECONDS URL TYPE Bearer|Basic [TOKEN-FILE] <PROFILE\n");
		return 2;
	}
	if (count > TOKEN_FILE && !(token = token_read(words[TOKEN_FILE], &why)))
		return say(PUSH_LATER, 0, words[TOKEN_FILE], why);
	if (!rights_drop())
		return say(PUSH_LATER, 0, "cannot give up the rights of root", strerror(errno));
	CURL *curl = curl_easy_init();
	if (!curl)
		return say(PUSH_LATER, 0, "libcurl does not begin", "");
	const int result = send_all(curl, words, token);
	curl_easy_cleanup(curl);
	free(token);
	return result;
}
