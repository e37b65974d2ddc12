/* SPDX-License-Identifier: MIT */
#include "session/options.h"

#include "recorder/recorder.h"

void session_options_init(struct session_options *options)
{
	*options = (struct session_options){
		.buffer_size = 64 * 1024,
		.buffer_min = 32,
		.buffer_max = 1024,
		.stack_kinds = OPTION_STACKS,
		.stack_depth = RECORDER_DEPTH_MAX,
		.wait_limit_ms = 5000,
		.with_duration = true,
		.on_full_wait = true,
		.follow = true,
	};
}

uint32_t session_options_word(const struct session_options *options)
{
	return OPTION_ENABLED | options->stack_kinds | options->stack_depth << OPTION_DEPTH_SHIFT |
	       (options->with_duration ? OPTION_DURATION : 0) | (options->on_full_wait ? OPTION_WAIT : 0) |
	       (options->check_stacks ? OPTION_CHECK : 0) | (options->sample_bytes ? OPTION_SAMPLE : 0);
}
