/* SPDX-License-Identifier: MIT */
/*
 * A process that is traced by OpenTelemetry may publish what each of its threads works for (OTEP 4947): a variable of
 * the thread points to a record, or is 0.
 *
 *     0         16       24      25      26
 *     trace id  span id  valid   flags   attributes
 *
 * The thread itself reads the record, at the few events of a sample. Only the thread changes it. If a signal handler
 * interrupts such a change, `valid` is 0. The variable and the record may be any bytes: a system call proves each of
 * them readable before it is read. Between the two another thread may unmap it; then it was no record of this thread.
 *
 * A stream's reader keeps the context until a record of another one, or a BEGIN. The thread notes the reader's context
 * with the place of the stream's next record. If that place has changed, the stream has begun anew, or a record was
 * taken back.
 */
#include "recorder/context_record.h"

#include "recorder/sys.h"

enum {
	CONTEXT_VALID = THREAD_CONTEXT_TRACE_BYTES + THREAD_CONTEXT_SPAN_BYTES,
	CONTEXT_BYTES = CONTEXT_VALID + 4, /* that are proved */
	WORD = 8,
	LOWEST = 4096,
	DTV_PLACE = WORD /* from the thread pointer: the address of the thread's table of modules */
};

#define USER_END (UINT64_C(1) << 47)
#define DTV_NOTHING UINT64_MAX

static inline uint64_t word_at(uint64_t address)
{
	return *(const record_word *)address;
}

/* Return whether the memory can be read; at most a page. */
static int is_readable(uint64_t address, uint64_t bytes)
{
	return address - LOWEST < USER_END - 2 * LOWEST && page_is_readable(address) &&
	       (bytes == WORD || page_is_readable(address + bytes - WORD));
}

/* Return the address of a variable in a module's block for the thread; 0: the thread has none yet. The table of modules
   has their number in its first row, or before that one. */
static uint64_t address_in_module(uint64_t thread_pointer, uint64_t row_bytes, uint64_t module, uint64_t offset)
{
	uint64_t rows = word_at(thread_pointer + DTV_PLACE),
		 last = row_bytes == CONTEXT_GLIBC_ROW ? rows - CONTEXT_GLIBC_ROW : rows;
	if (!row_bytes || !is_readable(last, WORD) || module == 0 || module > word_at(last) ||
	    !is_readable(rows + module * row_bytes, WORD))
		return 0;
	uint64_t block = word_at(rows + module * row_bytes);
	return block == DTV_NOTHING || !block ? 0 : block + offset;
}

/* Return the address of the thread's variable; 0: it has none, or the loader has not written its place yet. */
static uint64_t variable_of(const struct recorder_contexts *contexts, uint32_t access, uint64_t thread_pointer)
{
	if (access == CONTEXT_ACCESS_PROGRAM)
		return thread_pointer + contexts->offset;
	if (!is_readable(contexts->slot, 2 * WORD))
		return 0;
	uint64_t word = word_at(contexts->slot);
	if (access == CONTEXT_ACCESS_INDEX)
		return address_in_module(thread_pointer, contexts->dtv_row_bytes, word, contexts->offset);
	if (access == CONTEXT_ACCESS_DESCRIPTOR)
		word = word_at(contexts->slot + WORD);
	/* Variables of modules that were there at the start lie below the thread pointer. */
	if ((int64_t)word < 0)
		return thread_pointer + word;
	if (access == CONTEXT_ACCESS_OFFSET || !is_readable(word, 2 * WORD))
		return 0;
	return address_in_module(thread_pointer, contexts->dtv_row_bytes, word_at(word), word_at(word + WORD));
}

static struct thread_context context_of(const struct thread *thread)
{
	const struct recorder *recorder = thread->recorder;
	struct thread_context none = {{0, 0}, 0};
	uint32_t access = LOAD_ACQUIRE(&recorder->contexts.access);
	if (!access || recorder->no_syscalls)
		return none;
	uint64_t variable = variable_of(&recorder->contexts, access, thread->fs_base);
	if (!is_readable(variable, WORD))
		return none;
	uint64_t record = word_at(variable);
	if (!is_readable(record, CONTEXT_BYTES) || *(const uint8_t *)(record + CONTEXT_VALID) != 1)
		return none;
	return (struct thread_context){{word_at(record), word_at(record + WORD)},
				       word_at(record + THREAD_CONTEXT_TRACE_BYTES)};
}

/* Return whether the next record finds room for itself and a context before it, in the buffer or in a new one. */
static int has_room(struct call *call, const struct event *event, const struct change *change)
{
	struct event_stream *stream = call->stream;
	enum region_lost lost = (enum region_lost)event->lost;
	uint32_t push = change->has_stack ? change->kept + change->pushed : 0;
	uint64_t bytes = RECORD_CONTEXT_BYTES + record_event_bytes(RECORD_EXTRA_FLAGS, RECORD_LONG_STACK, push);
	if (stream->head && (event->ticks - stream->ticks) >> 32)
		stream_begin(call->thread, stream, event->ticks, lost);
	if (!stream->head || stream->write + bytes > stream->limit)
		stream_next(call->thread, stream, event->ticks, lost);
	return stream->head && stream->write + bytes <= stream->limit;
}

struct thread_context context_record_put(struct call *call, const struct event *event, const struct change *change)
{
	static const struct thread_context none;
	struct event_stream *stream = call->stream;
	const struct stream_context *known = &call->thread->context[stream->is_signal_stream];
	const struct thread_context context = context_of(call->thread);
	int is_none = thread_context_is_none(&context), is_new = stream->write == stream->start + RECORD_BEGIN_BYTES;
	if (is_none && (!known->end || !stream->head || is_new))
		return context;
	if (!has_room(call, event, change))
		return none;
	is_new = stream->write == stream->start + RECORD_BEGIN_BYTES;
	if (stream->write == known->end ? !thread_context_is_same(&known->context, &context) : !is_none || !is_new) {
		record_put_context((uint64_t *)stream->write, &context);
		stream->write += RECORD_CONTEXT_BYTES;
		stream_commit(stream);
	}
	return context;
}
