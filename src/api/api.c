/* SPDX-License-Identifier: MIT */
#include "api/api.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* ---- results ---- */

static const struct {
	int error, status;
} statuses[] = {
	{EINVAL, XHEAP_INVALID},   {E2BIG, XHEAP_INVALID},     {ENAMETOOLONG, XHEAP_INVALID}, {EISDIR, XHEAP_INVALID},
	{ENOENT, XHEAP_NOT_FOUND}, {ESRCH, XHEAP_NOT_FOUND},   {ENOTDIR, XHEAP_NOT_FOUND},    {EEXIST, XHEAP_EXISTS},
	{EPERM, XHEAP_DENIED},     {EACCES, XHEAP_DENIED},     {EROFS, XHEAP_DENIED},         {EBADMSG, XHEAP_DAMAGED},
	{EPROTO, XHEAP_DAMAGED},   {ENOMEM, XHEAP_NO_MEMORY},  {ENOMSG, XHEAP_NO_MATCH},      {EPIPE, XHEAP_GONE},
	{ETIMEDOUT, XHEAP_GONE},   {ECONNREFUSED, XHEAP_GONE}, {ECONNRESET, XHEAP_GONE},
};

static int status_of(int error)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++)
		if (statuses[i].error == error)
			return statuses[i].status;
	return XHEAP_FAILED;
}

API const char *xheap_status_name(int32_t status)
{
	static const char *const names[] = {"done",    "no more",   "invalid",  "not found", "exists already", "denied",
					    "damaged", "no memory", "no match", "gone",      "failed"};
	return status >= 0 ? names[status == XHEAP_END] : status >= XHEAP_FAILED ? names[1 - status] : "unknown";
}

API uint32_t xheap_api_version(void)
{
	return XHEAP_API_VERSION;
}

/* What api_give_up() says, for the api_run() around. */
static _Thread_local char fault[256];

void api_give_up(const char *file, unsigned line, const char *claim)
{
	snprintf(fault, sizeof(fault), "a mistake of xheap's own, at %s:%u: %s does not hold", file, line, claim);
	memory_exhausted(0);
}

struct api_call {
	int (*work)(void *context, struct diag *diag);
	void *context;
	struct diag diag;
	int result;
};

static void call_run(void *context)
{
	struct api_call *call = context;
	call->result = call->work(call->context, &call->diag);
}

static void tell(const xheap_callbacks *callbacks, xheap_error *error, int result, const struct diag *diag)
{
	xheap_error own = {.status = status_of(-result), .system_error = -result};
	snprintf(own.text, sizeof(own.text), "%s", diag->text[0] ? diag->text : strerror(-result));
	if (error)
		*error = own;
	if (callbacks && callbacks->on_error)
		callbacks->on_error(callbacks->user, &own);
}

int api_run(const xheap_callbacks *callbacks, xheap_error *error, int (*work)(void *context, struct diag *diag),
	    void *context)
{
	struct api_call call = {.work = work, .context = context};
	fault[0] = 0;
	if (!memory_try(call_run, &call)) {
		call.diag.text[0] = 0;
		call.result = fault[0] ? diag_fail(&call.diag, ENOTRECOVERABLE, "%s", fault)
				       : diag_fail(&call.diag, ENOMEM, "out of memory");
	}
	if (call.result >= 0) {
		if (error)
			*error = (xheap_error){.status = call.result};
		return call.result;
	}
	tell(callbacks, error, call.result, &call.diag);
	return status_of(-call.result);
}

void api_end(void (*end)(void *context), void *context)
{
	memory_try(end, context);
}

/* ---- structs that grow ---- */

int api_take(void *own, size_t own_size, const void *given, const char *what, struct diag *diag)
{
	enum { SIZE_MOST = 4096 };
	size_t size;
	if (!given)
		return 0;
	memcpy(&size, given, sizeof(size));
	if (size < sizeof(size) || size > SIZE_MOST)
		return diag_fail(diag, EINVAL, "%s: size is %zu; its _init function sets it", what, size);
	for (size_t i = own_size; i < size; i++)
		if (((const char *)given)[i])
			return diag_fail(diag, EINVAL, "%s: byte %zu is of a member that this library does not have",
					 what, i);
	memcpy(own, given, size < own_size ? size : own_size);
	memcpy(own, &own_size, sizeof(own_size));
	return 0;
}

void api_give(void *to, size_t size, const void *defaults, size_t defaults_size)
{
	if (!to || size < sizeof(size))
		return;
	memset(to, 0, size);
	memcpy(to, defaults, size < defaults_size ? size : defaults_size);
	memcpy(to, &size, sizeof(size));
}

API_INIT(xheap_callbacks, .user = NULL)
