/* SPDX-License-Identifier: MIT */
/** Answers about many hosts as text, CSV and JSON: one table of columns for all three. */
#ifndef XHEAP_FLEET_OUTPUT_H
#define XHEAP_FLEET_OUTPUT_H

#include "base/sink.h"
#include "base/text_width.h"
#include "fleet/fleet.h"

/** What is written, and how. */
struct fleet_output {
	const char *place; /**< as it was typed */
	const struct fleet_question *question;
	const struct fleet_answer *answer;
	struct text_layout layout;
	bool is_colored;
};

/** Write the answer, which is settled. */
void fleet_output_text(const struct fleet_output *output, struct sink *out);
void fleet_output_csv(const struct fleet_output *output, struct sink *out);
void fleet_output_json(const struct fleet_output *output, struct sink *out);

#endif
