/* SPDX-License-Identifier: MIT */
/** libmicrohttpd, loaded when a server begins: it and its own libraries cost other commands no time. */
#ifndef XHEAP_SERVER_HTTP_LIBRARY_H
#define XHEAP_SERVER_HTTP_LIBRARY_H

#include <microhttpd.h>

#include "base/diag.h"

/* The functions, without MHD_ before them. */
#define HTTP_FUNCTIONS(X) \
	X(start_daemon) \
	X(stop_daemon) \
	X(create_response_from_buffer_with_free_callback_cls) \
	X(add_response_header) \
	X(queue_response) \
	X(destroy_response) X(suspend_connection) X(resume_connection) X(lookup_connection_value) X(get_connection_info)

/** The library. */
struct http_library {
	void *library;
#define X(name) __typeof__ (&MHD_##name)(name);
	HTTP_FUNCTIONS(X)
#undef X
};

/** Load the library. Return 0, or -ENOENT with the reason in `diag`. It stays loaded. */
int http_library_load(struct http_library *http, struct diag *diag);

#endif
