/* SPDX-License-Identifier: MIT */
/** The state that the watcher's files share. */
#ifndef XHEAP_IMAGE_WATCHER_STATE_H
#define XHEAP_IMAGE_WATCHER_STATE_H

#include <stdbool.h>
#include <time.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "image/image_option.h"
#include "image/watch_message.h"
#include "image/watcher.h"

enum { LOGGER_MAX = 512, START_MAX = 512, EACH_MAX = 8, LINK_MAX = 2048, OLD_GROUP_MAX = 8, UNREGISTERED_MAX = 1024 };

/** A registered image. */
struct registered {
	struct watch_option option;
	uint32_t id;
	char image[1024];
	const char *name; /**< its part after the last slash */
};

/** A symbolic link that concerns an option. */
struct watcher_link {
	uint32_t option, kind; /**< kind: enum watch_link */
	uint64_t device, inode;
	char path[256];
};

/** The file of an event. */
struct watcher_file {
	struct stat status;
	bool is_mounted;        /**< it is the root of its mount, whose place gives its name, or that is unknown */
	char path[1024];        /**< as the kernel has it, without what does not fit; "": unknown */
	char name[256];         /**< its part after the last slash */
	bool is_by_link;        /**< only an exec by the option's name is meant */
	bool is_of_interpreter; /**< the program that it names is meant, whose owner is unknown */
	bool is_script;         /**< its content names another program, which may belong to an option */
};

/** A file that belongs to no option, as it was then. */
struct unregistered_file {
	uint64_t device, inode;
	struct timespec changed; /**< with any change of its name, too */
};

/** A session that takes starts. */
struct taker {
	struct watch_logger logger;
	int socket;        /**< -1: the row is free */
	uint64_t second;   /**< of the monotonic clock, in which it last sent something */
	unsigned messages; /**< that it sent in that second */
};

/** A start that a logger has got and has not reported the end of. */
struct start {
	uint32_t token; /**< 0: the row is free */
	uint32_t option, logger;
	pid_t tid;
	int event, group; /**< event: descriptor of the file, which the answer needs; -1: it was answered */
	uint32_t user;    /**< whose loggers may trace it */
	uint32_t share;   /**< whose places it takes */
	struct control_message *waiting; /**< for a logger that begins; NULL: it was sent */
	bool is_late;
	uint64_t deadline_ns; /**< of the answer, then of the report */
};

/** A group without marks, which may have unanswered events, or get some. */
struct watcher_group {
	int group;         /**< -1: the row is free */
	uint64_t until_ns; /**< when no exec can be on its way to it any more */
};

struct watcher {
	int keeper;
	int group;     /**< fanotify; -1: nothing is marked */
	int new_group; /**< gets its marks; -1: none */
	struct watcher_group old[OLD_GROUP_MAX];
	struct watch_life *life;
	dev_t device; /**< with the inode: of xheap itself */
	ino_t inode;
	ino_t mounts, users;  /**< the namespaces of mounts and users */
	uint64_t deadline_ns; /**< time that a start may wait for its logger */
	bool is_over, is_new, has_failed;
	uint32_t token;
	unsigned option_count, link_count, pending;
	unsigned start_count, taker_count; /**< rows that are not free */
	struct registered options[IMAGE_OPTION_MAX];
	struct watcher_link links[LINK_MAX];
	struct taker takers[LOGGER_MAX];
	struct start starts[START_MAX];
	struct unregistered_file unregistered[UNREGISTERED_MAX]; /**< each at its place; inode 0: the row is free */
	bool has_unregistered;
};

/** Take a message of the keeper. */
void watcher_take_message(struct watcher *watcher, const struct watch_message *message, int fd);

/** Answer, or pass on, what the kernel asks. */
void watcher_take_event(struct watcher *watcher, int group, const struct fanotify_event_metadata *event);

/** Return the option that the event's file belongs to, for this thread, and find the file's path. A path goes before a
    name, a name before a service. NULL: none. */
const struct registered *watcher_match(const struct watcher *watcher, int event, pid_t tid, struct watcher_file *file);

/** Describe the file of an event but for its path. Return false if that is impossible. */
bool watcher_file_status(int event, struct watcher_file *file);

/** Return whether the file belongs to no option, as far as that was found out before. */
bool watcher_is_unregistered(const struct watcher *watcher, const struct watcher_file *file);

/** Note that the file belongs to no option, if only a change of its name or a message of the keeper can change that. */
void watcher_note_unregistered(struct watcher *watcher, int event, const struct watcher_file *file);

/** Forget what was noted of all files. */
void watcher_forget_unregistered(struct watcher *watcher);

/** Take the messages of a logger. */
void watcher_take_answers(struct watcher *watcher, struct taker *taker);

/** Answer starts whose deadline is over. Return the time until the next deadline in ms, WATCHER_BEAT_MS at most. */
int watcher_check_deadlines(struct watcher *watcher);

/** Report a start to the keeper. taker: its logger; NULL: none. */
void watcher_report(const struct watcher *watcher, uint32_t option, pid_t pid, enum control_outcome outcome,
		    const char *why, const struct taker *taker);

/** Return the user whose share of places, loggers and traces a start by the thread takes: the real user, or whoever has
    made the namespace of users that it is in. */
uint32_t watcher_share(const struct watcher *watcher, pid_t tid);

/** Return the last start of the share that has the most places, but for root's, of those that wait for an answer or of
    all; NULL: a further start of `share` would make that the greatest. */
struct start *watcher_greatest(struct watcher *watcher, uint32_t share, bool is_pending);

/** Return whether a process of the share may have a logger for itself. */
bool watcher_has_each(const struct watcher *watcher, uint32_t option, uint32_t share);

/** Return whether a spare may become a logger for starts of the share. */
bool watcher_has_spare(const struct watcher *watcher, uint32_t share);

/** Return the share of the session for a start, if none has its own share yet: with many users, that of all others. */
uint32_t watcher_session_share(const struct watcher *watcher, uint32_t option, uint32_t share);

/** Send the starts that wait for a logger, if there is one for them by now. */
void watcher_send_waiting(struct watcher *watcher);

/** Return the option with the number; NULL: it is not registered any more. */
struct registered *watcher_registered(struct watcher *watcher, uint32_t id);

/** Return the taker with the number; NULL: it is gone. */
struct taker *watcher_taker(struct watcher *watcher, uint32_t id);

/** Answer and report all starts of a logger that has ended, and forget it. */
void watcher_taker_gone(struct watcher *watcher, struct taker *taker);

#endif
