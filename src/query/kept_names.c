/* SPDX-License-Identifier: MIT */
#include "query/kept_names.h"

#include "base/memory.h"
#include "symbols/kept_symbols.h"
#include "table/kept_answer.h"

static void arrays_keep(struct kept_answer *kept, struct kept_symbols *names)
{
	names->texts = kept_answer_array(kept, names->texts, &names->text_bytes, sizeof(*names->texts));
	names->images = kept_answer_array(kept, names->images, &names->image_count, sizeof(*names->images));
	names->symbols = kept_answer_array(kept, names->symbols, &names->symbol_count, sizeof(*names->symbols));
	names->frames = kept_answer_array(kept, names->frames, &names->frame_count, sizeof(*names->frames));
}

void kept_names_learn(struct symbols *symbols, const struct heap_table *table)
{
	struct kept_symbols names = {.texts = NULL};
	struct kept_answer kept;
	kept_answer_begin(&kept, table, HEAP_ANSWER_NAMES, NULL, 0);
	if (kept.is_known) {
		arrays_keep(&kept, &names);
		symbols_learn(symbols, &names);
	}
	kept_answer_end(&kept, false);
}

struct noting {
	struct symbols *symbols;
	const struct heap_table *table;
};

static void names_note(void *context)
{
	const struct noting *noting = context;
	struct kept_symbols names;
	struct kept_answer kept;
	symbols_keep(noting->symbols, &names);
	kept_answer_anew(&kept, noting->table, HEAP_ANSWER_NAMES, NULL, 0);
	arrays_keep(&kept, &names);
	kept_answer_end(&kept, true);
	kept_symbols_fini(&names);
}

void kept_names_note(struct symbols *symbols, const struct heap_table *table)
{
	struct noting noting = {symbols, table};
	/* Without memory nothing is kept. */
	if (heap_index_keeps_answers(table) && symbols_has_news(symbols))
		memory_try(names_note, &noting);
}
