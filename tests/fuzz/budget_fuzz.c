/* SPDX-License-Identifier: MIT */
/*
 * Budgets: people write them, and pull requests of strangers bring them. A budget that is taken has limits that lie
 * within its text, and each of them, by itself, is read as the same limit; so is the value that --update would write.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "action/budget/budget_update.h"
#include "replay.h"

static void expect(bool holds)
{
	if (!holds)
		abort();
}

/* The text of one limit as a budget. */
static void check_alone(const struct budget_limit *limit, const char *text)
{
	struct budget one = {0};
	struct diag diag = {""};
	expect(budget_parse(&one, "one", text, strlen(text), &diag) == 0 && one.limit_count == 1);
	const struct budget_limit *read = &one.limits[0];
	expect(read->metric == limit->metric && read->value == limit->value && read->tolerance == limit->tolerance &&
	       read->variation == limit->variation && read->is_fixed == limit->is_fixed);
	budget_fini(&one);
}

/* As --update writes a limit: tolerances are whole ten-thousandths of a percent then, too. */
static void check_written(const struct budget *budget, const struct budget_limit *limit)
{
	const struct budget_change change = {limit->value, limit->tolerance, limit->variation, true};
	struct budget_limit wanted = *limit;
	struct sink out;
	sink_to_memory(&out);
	sink_bytes(&out, budget->text + limit->begin, limit->at - limit->begin);
	budget_change_put(&out, limit, &change);
	char *text = sink_take(&out, NULL);
	wanted.is_fixed = false;
	check_alone(&wanted, text);
	free(text);
}

static void check(const struct budget *budget)
{
	for (size_t i = 0; i < budget->limit_count; i++) {
		const struct budget_limit *limit = &budget->limits[i];
		expect(limit->begin < limit->at && limit->at < limit->end && limit->end <= budget->size);
		expect(limit->line > 0 && limit->column > 0 && budget_allowed(limit) >= limit->value);
		expect(limit->selection < budget->keys.count);
		char *text = budget_limit_text(budget, limit), *name = budget_limit_name(budget, limit);
		expect(!strchr(text, '\n') && *name);
		check_alone(limit, text);
		check_written(budget, limit);
		free(text);
		free(name);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct budget budget = {0};
	struct diag diag = {""};
	if (budget_parse(&budget, "fuzz", (const char *)data, size, &diag))
		expect(!strncmp(diag.text, "fuzz:", 5));
	else
		check(&budget);
	budget_fini(&budget);
	return 0;
}

/* Each line by itself, with each of its bits the other way: the first fault ends the reading. */
static void try_lines(uint8_t *data, size_t size)
{
	for (size_t begin = 0, end; begin < size; begin = end + 1) {
		const uint8_t *line_end = memchr(data + begin, '\n', size - begin);
		end = line_end ? (size_t)(line_end - data) : size;
		for (size_t bit = 0; bit < 8 * (end - begin); bit++) {
			data[begin + bit / 8] ^= (uint8_t)(1u << bit % 8);
			LLVMFuzzerTestOneInput(data + begin, end - begin);
			data[begin + bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

const struct replay replay = {.bytes_max = 1 << 12, .cut_bytes = 1, .flip_rounds = 20000, .more = try_lines};
