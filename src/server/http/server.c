/* SPDX-License-Identifier: MIT */
#include "server/http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/digits.h"
#include "base/memory.h"
#include "os/fd.h"
#include "os/monotonic.h"
#include "server/http/connections.h"
#include "server/http/jobs.h"
#include "server/http/http_library.h"
#include "server/page/page_files.h"

enum {
	CONNECTIONS_MAX = 2000,
	DESCRIPTORS_MORE = 200, /* beside those of connections */
	BACKLOG = 256,
	REQUEST_BYTES_MAX = 256 << 10, /* a request with all its headers: stacks may have long names */
	DEADLINE_MS = 60000,           /* of an answer */
	PATIENCE_S = 30                /* with a client that neither sends nor reads */
};

struct server {
	struct http_library http;
	struct MHD_Daemon *daemon;
	struct jobs *jobs;
	struct request_rules rules;
	struct connections strangers; /* of the library's thread */
	int socket;
	uint16_t port;
	uint64_t asked_ns; /* when the last request with the token came; with atomic operations */
	bool is_known;     /* a request had the token; likewise */
};

/* A request of a connection, from its first line to the end of its answer. */
struct exchange {
	struct server *server;
	struct MHD_Connection *connection;
	char *target;
	bool is_begun, is_given;
	struct job job;
};

/* ---- answers ---- */

/* Sent with every answer: what the page may do, and that nobody keeps it. */
static const char *const headers[][2] = {
	{"Content-Security-Policy",
	 "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
	 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cache-Control", "no-store"},
};

static void keep_bytes(void *context)
{
	(void)context;
}

static void release_bytes(void *context)
{
	reply_release(context);
}

static enum MHD_Result send_bytes(struct exchange *exchange, unsigned status, const char *type,
				  const struct page_text *text, struct reply *owner)
{
	struct http_library *http = &exchange->server->http;
	struct MHD_Response *response = http->create_response_from_buffer_with_free_callback_cls(
		text->size, (void *)text->bytes, owner ? release_bytes : keep_bytes, owner);
	if (!response) {
		reply_release(owner);
		return MHD_NO;
	}
	http->add_response_header(response, "Content-Type", type);
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
		http->add_response_header(response, headers[i][0], headers[i][1]);
	enum MHD_Result result = http->queue_response(exchange->connection, status, response);
	http->destroy_response(response);
	return result;
}

static enum MHD_Result send_reply(struct exchange *exchange, struct reply *reply)
{
	const struct page_text text = {reply->bytes, reply->size};
	return send_bytes(exchange, reply->status, reply->type, &text, reply);
}

/* ---- requests; the library's thread ---- */

static const char *header(struct exchange *exchange, const char *name)
{
	return exchange->server->http.lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

static struct connection *connection_of(struct exchange *exchange)
{
	return exchange->server->http.get_connection_info(exchange->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

static enum MHD_Result exchange_answer(struct exchange *exchange, const char *method)
{
	struct server *server = exchange->server;
	struct view_request *request = &exchange->job.request;
	struct diag why = {""};
	const struct request_text text = {.method = method,
					  .target = exchange->target,
					  .host = header(exchange, "Host"),
					  .origin = header(exchange, "Origin"),
					  .token = header(exchange, "X-Xheap-Token"),
					  .page = header(exchange, "X-Xheap-Page"),
					  .number = header(exchange, "X-Xheap-Request")};
	unsigned status = request_parse(request, &text, &server->rules, &why);
	if (status)
		return send_reply(exchange, reply_line(status, why.text));
	if (request->name == REQUEST_FILE)
		return send_bytes(exchange, MHD_HTTP_OK, request->file->type, &request->file->text, NULL);
	/* Files are given to anybody, who could keep the server alive. */
	__atomic_store_n(&server->asked_ns, monotonic_now_ns(), __ATOMIC_RELAXED);
	__atomic_store_n(&server->is_known, true, __ATOMIC_RELAXED);
	connections_trust(&server->strangers, connection_of(exchange));
	const union MHD_ConnectionInfo *info =
		server->http.get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	exchange->job.socket = info ? info->connect_fd : -1;
	exchange->job.context = exchange;
	exchange->is_given = true;
	server->http.suspend_connection(exchange->connection);
	jobs_give(server->jobs, &exchange->job);
	return MHD_YES;
}

static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
	struct exchange *exchange = memory_zeroed(1, sizeof(*exchange));
	exchange->server = context;
	exchange->connection = connection;
	exchange->target = strdup(target);
	return exchange;
}

/* The library calls this when the headers are there, for each piece of a body, and then for the answer. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
				  const char *version, const char *upload, size_t *upload_size, void **own)
{
	struct exchange *exchange = *own;
	(void)context;
	(void)connection;
	(void)url;
	(void)version;
	(void)upload;
	if (!exchange || !exchange->target)
		return MHD_NO;
	if (!exchange->is_begun || *upload_size) {
		exchange->is_begun = true;
		*upload_size = 0;
		return MHD_YES;
	}
	if (!exchange->is_given)
		return exchange_answer(exchange, method);
	struct reply *reply = exchange->job.reply;
	exchange->job.reply = NULL;
	return reply ? send_reply(exchange, reply) : MHD_NO;
}

static void on_job_done(struct job *job)
{
	struct exchange *exchange = job->context;
	exchange->server->http.resume_connection(exchange->connection);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **own,
			 enum MHD_RequestTerminationCode code)
{
	struct exchange *exchange = *own;
	(void)context;
	(void)connection;
	(void)code;
	if (!exchange)
		return;
	reply_release(exchange->job.reply);
	request_fini(&exchange->job.request);
	free(exchange->target);
	free(exchange);
	*own = NULL;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **own,
			  enum MHD_ConnectionNotificationCode code)
{
	struct server *server = context;
	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		connections_remove(&server->strangers, *own);
		*own = NULL;
	} else {
		*own = connections_add(
			&server->strangers,
			server->http.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
	}
}

/* ---- beginning and ending ---- */

static int token_make(char token[TOKEN_LENGTH + 1], struct diag *diag)
{
	unsigned char bytes[TOKEN_LENGTH / 2];
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return diag_errno(diag, "there are no random numbers");
	digits_of_bytes(token, bytes, sizeof(bytes));
	return 0;
}

static int socket_listen(struct server *server, uint16_t port, struct diag *diag)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	const int on = 1;
	server->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->socket < 0)
		return diag_errno(diag, "cannot make a socket");
	setsockopt(server->socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(server->socket, (struct sockaddr *)&address, size))
		return diag_errno(diag, "cannot use port %u", port);
	if (listen(server->socket, BACKLOG) || getsockname(server->socket, (struct sockaddr *)&address, &size))
		return diag_errno(diag, "cannot listen on port %u", port);
	server->port = ntohs(address.sin_port);
	return 0;
}

/* Each connection is a descriptor. */
static unsigned connections_allow(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return BACKLOG;
	const rlim_t wanted = CONNECTIONS_MAX + DESCRIPTORS_MORE;
	if (limit.rlim_cur < wanted) {
		limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	return limit.rlim_cur >= wanted                ? CONNECTIONS_MAX
	       : limit.rlim_cur > 2 * DESCRIPTORS_MORE ? (unsigned)limit.rlim_cur - DESCRIPTORS_MORE
						       : DESCRIPTORS_MORE;
}

static int daemon_begin(struct server *server, struct diag *diag)
{
	const unsigned most = connections_allow();
	server->strangers.most = most / 2;
	server->daemon = server->http.start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request,
		server, MHD_OPTION_LISTEN_SOCKET, server->socket, MHD_OPTION_URI_LOG_CALLBACK, on_target, server,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_CONNECTION_LIMIT, most,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)REQUEST_BYTES_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)PATIENCE_S, MHD_OPTION_END);
	if (!server->daemon)
		return diag_fail(diag, EAGAIN, "libmicrohttpd cannot serve");
	server->socket = -1; /* the daemon's */
	return 0;
}

struct server *server_begin(const struct server_plan *plan, struct diag *diag)
{
	struct server *server = memory_zeroed(1, sizeof(*server));
	const struct jobs_plan jobs = {.paths = plan->paths,
				       .path_count = plan->path_count,
				       .runs = plan->runs,
				       .options = plan->options,
				       .is_live = plan->is_live,
				       .deadline_ms = DEADLINE_MS,
				       .done = on_job_done};
	server->socket = -1;
	server->rules.trace_count = plan->path_count;
	server->asked_ns = monotonic_now_ns();
	int error = http_library_load(&server->http, diag);
	error = error ? error : token_make(server->rules.token, diag);
	error = error ? error : socket_listen(server, plan->port, diag);
	if (!error)
		server->jobs = jobs_begin(&jobs, diag);
	error = error ? error : server->jobs ? daemon_begin(server, diag) : -EAGAIN;
	if (!error)
		return server;
	server_end(server);
	return NULL;
}

uint16_t server_port(const struct server *server)
{
	return server->port;
}

void server_address(const struct server *server, char address[SERVER_ADDRESS_BYTES])
{
	snprintf(address, SERVER_ADDRESS_BYTES, "http://127.0.0.1:%u/#token=%s", server->port, server->rules.token);
}

bool server_is_known(const struct server *server)
{
	return __atomic_load_n(&server->is_known, __ATOMIC_RELAXED);
}

uint64_t server_look(struct server *server)
{
	const uint64_t now_ns = monotonic_now_ns(), asked_ns = __atomic_load_n(&server->asked_ns, __ATOMIC_RELAXED);
	return jobs_look(server->jobs) || asked_ns > now_ns ? 0 : now_ns - asked_ns;
}

void server_note(struct server *server, const struct live_note *note)
{
	jobs_note(server->jobs, note);
}

bool server_take_flush(struct server *server)
{
	return jobs_take_flush(server->jobs);
}

void server_end(struct server *server)
{
	/* Suspended connections go on first: the daemon cannot end before. */
	if (server->jobs)
		jobs_stop(server->jobs);
	if (server->daemon)
		server->http.stop_daemon(server->daemon);
	if (server->jobs)
		jobs_free(server->jobs);
	fd_close(&server->socket);
	free(server);
}
