/* SPDX-License-Identifier: MIT */
#include "fleet/clickhouse_epochs.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/sink.h"

/* The list that is made. */
struct epoch_list {
	struct counted_epoch *items;
	size_t count, capacity;
};

static uint32_t kind_find(const struct fleet_question *question, const struct clickhouse_epoch *last,
			  struct intern *kinds)
{
	struct sink name;
	size_t size;
	sink_to_memory(&name);
	sink_format(&name, "%s%c%s", last->service, 0, question->asked == FLEET_GROWTH ? last->version : "");
	char *text = sink_take(&name, &size);
	const uint32_t kind = intern_bytes(kinds, text, size);
	free(text);
	return kind;
}

static int service_order(const void *a, const void *b)
{
	const struct counted_epoch *one = a, *other = b;
	int order = (one->service > other->service) - (one->service < other->service);
	if (!order)
		order = (one->kind > other->kind) - (one->kind < other->kind);
	return order ? order : (one->epoch > other->epoch) - (one->epoch < other->epoch);
}

static void entry_add(struct epoch_list *list, struct counted_epoch entry)
{
	const struct counted_epoch *last = list->count ? &list->items[list->count - 1] : NULL;
	entry.keeper = last && last->session->host == entry.session->host ? last->keeper : entry.epoch->id;
	memory_grow(list->items, list->count, list->capacity);
	list->items[list->count++] = entry;
}

size_t clickhouse_epochs_count(const struct fleet_question *question, const struct clickhouse_sessions *sessions,
			       struct intern *services, struct intern *kinds, struct counted_epoch **entries)
{
	const enum fleet_kind asked = question->asked;
	struct epoch_list list = {.count = 0};
	/* They are sorted by host, and by service there. */
	for (size_t i = 0; i < sessions->count; i++) {
		const struct clickhouse_session *session = &sessions->items[i];
		const uint32_t service = intern_text(services, session->last->service);
		const uint32_t kind = kind_find(question, session->last, kinds);
		for (size_t j = 0; j < session->count; j++) {
			const struct clickhouse_epoch *epoch = &session->epochs[j];
			struct counted_epoch entry = {
				.epoch = epoch, .session = session, .service = service, .kind = kind};
			if (epoch == session->last && (asked != FLEET_GROWTH || session->first))
				entry.uses |= session->side == FLEET_BEFORE ? USED_BEFORE : USED_AFTER;
			entry.uses |= epoch == session->first ? FIRST : 0;
			if (asked == FLEET_TOP && clickhouse_session_is_made(session, epoch))
				entry.uses |= MADE;
			if (entry.uses)
				entry_add(&list, entry);
		}
	}
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), service_order);
	for (size_t i = 0; i < list.count; i++) {
		struct counted_epoch *entry = &list.items[i];
		const bool is_first =
			!i || entry[-1].kind != entry->kind || entry[-1].session->host != entry->session->host;
		entry->keeper_of_kind = is_first ? entry->epoch->id : entry[-1].keeper_of_kind;
	}
	*entries = list.items;
	return list.count;
}
