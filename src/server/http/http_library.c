/* SPDX-License-Identifier: MIT */
#include "server/http/http_library.h"

#include <dlfcn.h>
#include <errno.h>

int http_library_load(struct http_library *http, struct diag *diag)
{
	http->library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
	if (!http->library)
		return diag_fail(diag, ENOENT, "libmicrohttpd.so.12 is missing (Debian: libmicrohttpd12)");
#define X(name) http->name = (__typeof__(&MHD_##name))dlsym(http->library, "MHD_" #name);
	HTTP_FUNCTIONS(X)
#undef X
#define X(name) || !http->name
	if (false HTTP_FUNCTIONS(X))
		return diag_fail(diag, ENOENT, "libmicrohttpd.so.12 is too old: 0.9.74 is needed");
#undef X
	return 0;
}
