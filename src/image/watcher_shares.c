/* SPDX-License-Identifier: MIT */
/*
 * Shares: whoever may execute a registered image, or name a file so, may start it as often as he likes. Users share the
 * places of starts, the loggers that begin, and the room for traces: one who floods them loses his own.
 */
#include "image/watcher_shares.h"

#include "image/watcher_state.h"

/* Sessions of single users, for each option; of spares and of traces of single processes, those for root alone. */
enum { SHARE_SESSION_MAX = 4, SPARES_OF_ROOT = 1, EACH_OF_ROOT = EACH_MAX / 2 };

/* ---- places ---- */

struct share_count {
	uint32_t share;
	unsigned count;
	struct start *last;
};

static bool is_counted(const struct start *start, bool is_pending)
{
	return start->token && (!is_pending || start->event >= 0);
}

struct start *watcher_greatest(struct watcher *watcher, uint32_t share, bool is_pending)
{
	struct share_count shares[START_MAX], *greatest = NULL;
	unsigned count = 0, own = 0;
	for (int i = 0; i < START_MAX; i++) {
		struct start *start = &watcher->starts[i];
		unsigned at = 0;
		if (!is_counted(start, is_pending))
			continue;
		while (at < count && shares[at].share != start->share)
			at++;
		if (at == count)
			shares[count++] = (struct share_count){.share = start->share};
		shares[at].count++;
		if (!shares[at].last || start->token > shares[at].last->token)
			shares[at].last = start;
	}
	for (unsigned i = 0; i < count; i++) {
		if (shares[i].share == share)
			own = shares[i].count;
		else if (shares[i].share != IMAGE_SHARE_ROOT && (!greatest || shares[i].count > greatest->count))
			greatest = &shares[i];
	}
	/* Root's starts go before those of a user who has as many. */
	unsigned least = share == IMAGE_SHARE_ROOT ? own : own + 2;
	return greatest && greatest->count >= least ? greatest->last : NULL;
}

/* ---- loggers ---- */

/* Count the loggers of one kind and option. of_users: without root's. */
static unsigned count_takers(const struct watcher *watcher, enum watch_logger_kind kind, uint32_t option, bool of_users)
{
	unsigned count = 0;
	for (int i = 0; i < LOGGER_MAX; i++) {
		const struct taker *taker = &watcher->takers[i];
		count += taker->socket >= 0 && taker->logger.kind == kind && taker->logger.option == option &&
			 (!of_users || taker->logger.share != IMAGE_SHARE_ROOT);
	}
	return count;
}

bool watcher_has_each(const struct watcher *watcher, uint32_t option, uint32_t share)
{
	return count_takers(watcher, WATCH_LOGGER_EACH, option, false) < EACH_MAX &&
	       (share == IMAGE_SHARE_ROOT ||
		count_takers(watcher, WATCH_LOGGER_EACH, option, true) < EACH_MAX - EACH_OF_ROOT);
}

bool watcher_has_spare(const struct watcher *watcher, uint32_t share)
{
	return count_takers(watcher, WATCH_LOGGER_SPARE, 0, false) > (share == IMAGE_SHARE_ROOT ? 0 : SPARES_OF_ROOT);
}

/* A session that runs may be known twice, as it began and as the keeper has found it. */
uint32_t watcher_session_share(const struct watcher *watcher, uint32_t option, uint32_t share)
{
	uint32_t known[SHARE_SESSION_MAX];
	unsigned count = 0;
	for (int i = 0; i < LOGGER_MAX && count < SHARE_SESSION_MAX; i++) {
		const struct watch_logger *logger = &watcher->takers[i].logger;
		unsigned at = 0;
		if (watcher->takers[i].socket < 0 || logger->kind != WATCH_LOGGER_OWN || logger->option != option ||
		    logger->share == IMAGE_SHARE_ROOT)
			continue;
		while (at < count && known[at] != logger->share)
			at++;
		if (at == count)
			known[count++] = logger->share;
	}
	return share != IMAGE_SHARE_ROOT && count == SHARE_SESSION_MAX ? IMAGE_SHARE_OTHERS : share;
}
