/* SPDX-License-Identifier: MIT */
/** The state that the watcher's files share. */
#ifndef XHEAP_IMAGE_WATCHER_STATE_H
#define XHEAP_IMAGE_WATCHER_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "image/image_option.h"
#include "image/watch_message.h"
#include "image/watcher.h"

enum {
	LOGGER_MAX = 512,
	START_MAX = 512,
	EACH_MAX = 8,
	LINK_MAX = 2048,
	UNREGISTERED_MAX = 1024,
	IGNORED_MAX = 4096,
	UNWATCHED_MAX = 8,
	REPORTED_MAX = 64
};

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

/** What is registered. A reader compares with it, without a lock, as long as it takes. */
struct watch_table {
	unsigned users; /**< readers that use it; it is changed only if there is none */
	unsigned option_count, link_count;
	struct registered options[IMAGE_OPTION_MAX];
	struct watcher_link links[LINK_MAX];
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

/** What an overlay's file and that of its layer have in common, and the device, by which they differ. */
struct start_file {
	bool is_of_overlay;
	dev_t device;
	off_t size;
	struct timespec changed;
};

/** A start from an overlay, whose end was reported while the thread may still be in the exec. */
struct reported_start {
	pid_t tid; /**< 0: the row is free */
	struct start_file file;
	uint64_t until_ns; /**< it counts no longer */
};

/** A start that a logger has got and has not reported the end of. */
struct start {
	uint32_t token; /**< 0: the row is free */
	uint32_t option, logger;
	pid_t tid;
	int event;                       /**< descriptor of the file, which the answer needs; -1: it was answered */
	unsigned group;                  /**< row of its group */
	bool is_local;                   /**< to close the file waits for nobody */
	struct start_file file;          /**< that was opened */
	uint32_t user;                   /**< whose loggers may trace it */
	uint32_t share;                  /**< whose places it takes */
	struct control_message *waiting; /**< for a logger that begins; NULL: it was sent */
	bool is_late;
	uint64_t deadline_ns; /**< of the answer, then of the report */
};

/** A group of the kernel's, with its marks, its queue and its unanswered events. */
struct watcher_group {
	int group;              /**< -1: the row is free */
	unsigned ignored_count; /**< files about which it does not ask */
	uint64_t until_ns; /**< it has no marks, and since then no exec can be on its way to it; 0: it has its marks */
};

enum reader_state {
	READER_IDLE,
	READER_OPENS, /**< the kernel opens the file of an event for it, which may take long */
	READER_HOLDS, /**< it has an event that nobody has answered */
	READER_LATE   /**< it has an event that was answered in its place */
};

/** A thread that reads events, one at a time. */
struct watcher_reader {
	struct watcher *watcher;
	/** state, row of the group, descriptor of the file, and how many events it has read: whoever changes the word
	    answers just that event */
	uint64_t word;
	uint64_t since_ns; /**< it holds the event */
	dev_t device;      /**< of the file; 0: unknown */
	pid_t tid;         /**< 0: it is about to begin */
};

/** A file system whose events wait too often. */
struct watcher_unwatched {
	dev_t device;      /**< 0: all */
	uint64_t until_ns; /**< when it is tried again; 0: the row is free */
};

struct watcher {
	int keeper, guardian;
	int ready;          /**< epoll: wakes one reader for each event */
	unsigned group;     /**< row of the group with the marks in force; WATCHER_GROUP_MAX: nothing is marked */
	unsigned new_group; /**< the same of the group that gets its marks */
	struct watch_life *life;
	struct watcher_opens *opens;
	ino_t mounts;         /**< the namespace of mounts */
	uint64_t deadline_ns; /**< time that a start may wait for its logger */
	bool is_over, is_new, has_failed;
	pthread_mutex_t lock; /**< of all that follows */
	uint32_t token;
	uint64_t messages;                          /**< of the keeper, so far */
	unsigned pending, start_count, taker_count; /**< rows that are not free */
	struct watch_table *table;
	struct watcher_group groups[WATCHER_GROUP_MAX];
	struct taker takers[LOGGER_MAX];
	struct start starts[START_MAX];
	struct reported_start reported[REPORTED_MAX];
	unsigned reported_next;                                  /**< the row of the next one */
	struct unregistered_file unregistered[UNREGISTERED_MAX]; /**< each at its place; inode 0: the row is free */
	bool has_unregistered;
	unsigned reader_count, busy_count; /**< busy_count: of the readers that do not wait for an event */
	struct watcher_reader readers[WATCHER_READER_MAX];
	bool is_full;       /**< so many readers wait that nothing may be marked */
	bool is_judging;    /**< a thread finds out which file system is to blame */
	uint64_t judged_ns; /**< readers that wait since before then have been judged */
	struct watcher_unwatched unwatched[UNWATCHED_MAX];
};

/** Return the option with the number; NULL: it is not registered any more. */
const struct registered *watcher_registered(const struct watch_table *table, uint32_t id);

#endif
