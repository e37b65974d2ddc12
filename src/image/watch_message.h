/* SPDX-License-Identifier: MIT */
/** The messages between the watcher, its keeper and their guardian, over sockets of whole datagrams. A message may
    carry one descriptor. */
#ifndef XHEAP_IMAGE_WATCH_MESSAGE_H
#define XHEAP_IMAGE_WATCH_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "session/control/control.h"

enum watch_kind {
	WATCH_OPTION, /**< to the watcher: `option` is in force; `text` is its image. Replaces the one with its id */
	/** to the watcher: a symbolic link concerns option `id`; value is an enum watch_link, `text` a path, and the
	    device and inode of `option` its file */
	WATCH_LINK,
	WATCH_NO_LINKS,  /**< to the watcher: forget all links */
	WATCH_NO_OPTION, /**< to the watcher: `id` is no longer in force */
	/** to the watcher, with the socket of a session: starts may go to `logger` */
	WATCH_LOGGER,
	WATCH_NO_LOGGER, /**< to the watcher: forget the logger `id`, if it is a spare that was not used */
	/** to the watcher: the marks from here to WATCH_MARKED replace all marks before */
	WATCH_MARK_ANEW,
	/** to the watcher, with a descriptor of the object: value is an enum watch_mark, `text` the object's path */
	WATCH_MARK,
	WATCH_MARKED, /**< to the watcher: the new marks are complete, the old ones end */
	/** from the guardian, with a socket: a new watcher. value: enum watch_end, of the last one; `beat_ns`: time
	    of its last sign of life */
	WATCH_WATCHER,
	/** from the watcher: a start of option `id`, by `pid`. value: enum control_outcome; text: why */
	WATCH_STARTED,
	WATCH_TAKEN,       /**< from the watcher: the spare `id` is the logger of option `value` now */
	WATCH_LOGGER_GONE, /**< from the watcher: the logger `id` has ended */
	/** from the watcher: a mark could not be set; `id` is its enum watch_mark, value an errno, or 0 if too many
	    starts of its files wait, `text` the path */
	WATCH_REFUSED,
	WATCH_IN_FORCE, /**< from the watcher: it has done WATCH_MARKED */
	WATCH_OVERFLOW, /**< from the watcher: the kernel had no room for events, and some starts are untraced */
	/** from the watcher: other file systems are to have no marks now, so the keeper is to send all marks anew;
	    value 1: nothing is marked, until the same comes with value 0 */
	WATCH_UNWATCHED,
	WATCH_GROUP /**< to the guardian, with a descriptor: the group `id` of the kernel's; without: it has ended */
};

/** X(id, text): why a watcher ended. BLOCKED: it goes on, but for a moment without the marks of file systems. */
#define WATCH_ENDS(X) \
	X(NONE, "it began") \
	X(STUCK, "it gave no sign of life") \
	X(KILLED, "it was killed") \
	X(EXITED, "it could not go on") \
	X(BLOCKED, "too many starts waited for their files")

enum watch_end {
#define X(id, text) WATCH_END_##id,
	WATCH_ENDS(X)
#undef X
		WATCH_END_COUNT
};

enum watch_mark {
	WATCH_MARK_FILE,
	WATCH_MARK_DIRECTORY, /**< executions of the files in it */
	WATCH_MARK_SYSTEM     /**< of all files of the file system */
};

enum watch_link {
	WATCH_LINK_FILE,       /**< the file, executed by the option's name, is meant */
	WATCH_LINK_INTERPRETER /**< a script whose first line has the path is meant */
};

enum watch_logger_kind {
	WATCH_LOGGER_SPARE, /**< runs ahead of need */
	WATCH_LOGGER_OWN,   /**< of the option */
	WATCH_LOGGER_EACH,  /**< of one process of the option */
	WATCH_LOGGER_NAMED, /**< a session that only options which name it use */
	WATCH_LOGGER_TAKER  /**< a session that takes registered images of `user`, or of all users if that is root */
};

enum { WATCH_UNIT_BYTES = 256 };

struct watch_option {
	struct control_image image; /**< token is not set */
	uint32_t logger;            /**< the session that it names, if that runs; 0: none */
	bool is_path, is_each;
	bool is_shared;                 /**< users have sessions of their own */
	bool is_any;                    /**< any image of the service is meant */
	uint64_t device, inode;         /**< of the file at the path; 0: unknown */
	char service[WATCH_UNIT_BYTES]; /**< the unit whose processes are meant; "": all processes */
};

struct watch_logger {
	uint32_t id, kind, option, user;
	uint32_t share; /**< of an image's own session: whose starts it takes */
};

struct watch_message {
	uint32_t kind, id;
	int32_t pid, value;
	union {
		struct watch_option option;
		struct watch_logger logger;
		int64_t beat_ns;
	};
	char text[1024];
};

/** Send the message, with a descriptor if fd is not negative. wait: wait for room, until the socket's
    SO_SNDTIMEO, which ends the connection. Return false if the other side is
    gone, or there is no room. */
bool watch_send(int socket, const struct watch_message *message, int fd, bool wait);

/** Receive a message without waiting, and its descriptor or -1. Return 1, 0 if none is there, -1 if the other side is
    gone. */
int watch_receive(int socket, struct watch_message *message, int *fd);

#endif
