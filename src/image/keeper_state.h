/* SPDX-License-Identifier: MIT */
/** The state that the keeper's files share. */
#ifndef XHEAP_IMAGE_KEEPER_STATE_H
#define XHEAP_IMAGE_KEEPER_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "image/image_files.h"
#include "image/image_status.h"
#include "image/keeper.h"
#include "image/mount_namespace.h"
#include "image/watch_message.h"
#include "image/watcher.h"

/** SPARE_MAX: for eight traces of single processes, and for the common one of the next processes. */
enum { SPARE_MAX = 9, KEPT_SESSION_MAX = 256, KEPT_ANNOUNCED_MAX = 128 };

/** An option with the number that the watcher knows. */
struct kept_option {
	uint32_t id;
	struct image_option option;
	bool is_in_force;
	uint32_t session_logger; /**< number of the session that it names; 0: it does not run */
};

/** A process that waits for the first start of an image, to become its logger. */
struct spare {
	uint32_t id;
	pid_t pid; /**< 0: the row is free */
};

/** A session that runs, as far as the keeper knows it. */
struct kept_session {
	char name[128];
	uint32_t id;       /**< as a logger of the watcher */
	int socket;        /**< while its state is asked for; -1: it was passed to the watcher, or takes no starts */
	bool takes_images; /**< by its answer */
	bool is_own;       /**< of an image option */
	bool is_announced; /**< of a user other than root; its name is "" until it has sent it */
	bool is_seen;      /**< used by the scan */
	bool is_passed;    /**< the watcher has its socket */
	uint32_t option, user;
	uint32_t share; /**< of an announced one: whose places it takes */
	uint64_t asked_ns;
};

enum { SEARCH_OWNER_MAX = 64 };

/** Whose processes a search looks at. A user may have as many namespaces and mounts as the kernel allows. */
struct search_owner {
	uint32_t user;
	uint64_t spent_ns; /**< by this search */
	pid_t next;        /**< the process where this search begins; 0: the first one */
	pid_t stopped;     /**< the process where its time was over; 0: it is not */
	uint32_t mount;    /**< of the table of `next`, then of `stopped`: where to go on; 0: at its begin */
};

/** A user who has made user namespaces: in their mount namespaces nothing is watched. */
struct namespace_owner {
	uint32_t user;
	uint64_t count, namespace;     /**< of mount namespaces; the inode of one */
	pid_t pid;                     /**< a process there */
	char place[IMAGE_PLACE_BYTES]; /**< of a file system there */
};

/** The search for other mount namespaces. */
struct namespace_search {
	struct search_owner owners[SEARCH_OWNER_MAX]; /**< the last row: all for whom there was no other one */
	struct namespace_owner makers[SEARCH_OWNER_MAX];
	unsigned owner_count, maker_count;
	struct map spaces;               /**< by their inodes */
	struct map devices;              /**< of this namespace's file systems */
	uint64_t users_ns;               /**< spent on users other than root */
	pid_t users_next, users_stopped; /**< as of an owner, for all of them */
	bool is_anew, is_cut;
};

struct keeper {
	const struct keeper_options *options;
	int guardian_socket, watcher, changes, mounts, signals;
	int announced; /**< listens for sessions of users */
	pid_t guardian;
	struct watch_life *life; /**< shared with the guardian and the watcher */
	uint64_t counted;        /**< starts of `life`, when the status was written */
	bool is_over;
	int options_watch;                   /**< of the directory of options; -1: there is none */
	bool lacks_directories;              /**< the file system of one is not there yet, or read-only */
	uint64_t options_due_ns;             /**< when changed files are read; 0: nothing has changed */
	uint64_t marks_due_ns;               /**< when files are marked again, since mounts have changed; 0: none has */
	uint64_t options_read_ns;            /**< when the files were read last */
	uint32_t marks_sent, marks_in_force; /**< how often to this watcher, and how often it has answered */
	uint64_t marks_sent_ns;
	bool lacks_sessions; /**< a session had not answered when the marks were sent last */
	uint32_t next_id;
	struct kept_option *kept;
	size_t kept_count, kept_capacity;
	struct spare spares[SPARE_MAX];
	struct kept_session sessions[KEPT_SESSION_MAX];
	size_t session_count;
	struct image_status status;
	bool is_status_new;
	char said[1024];    /**< mistakes that were said already */
	bool lacks_systems; /**< to look one up took too long: it is tried again */
	struct map marked;  /**< devices of file systems that are marked */
	struct namespace_search search;
	uint64_t links_sum; /**< of the directories of programs, whose links the watcher knows */
	uint64_t scanned_ns, written_ns, searched_ns;
};

/** Tell the service manager, if one waits for it, that starts are recorded from now on. */
void keeper_announce_ready(void);

/** Block the signals that end a keeper or have it read its options. Return a descriptor that receives them. */
int keeper_signals_open(void);

/** Say a line to the user. */
__attribute__((format(printf, 2, 3))) void keeper_say(const struct keeper *keeper, const char *format, ...);

/** Return the option with the number; NULL: it is not kept any more. */
struct kept_option *keeper_option(struct keeper *keeper, uint32_t id);

#endif
