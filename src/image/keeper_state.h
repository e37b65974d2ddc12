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

/** Follow an early keeper as long as it runs: pass signals on to it. Return true when this process is to end, too;
    false if there is no early keeper, or it has ended otherwise. */
bool keeper_follow(const struct keeper *keeper);

/** Tell the service manager, if one waits for it, that starts are recorded from now on. */
void keeper_announce_ready(void);

/** Block the signals that end a keeper or have it read its options. Return a descriptor that receives them. */
int keeper_signals_open(void);

/** Say a line to the user. */
__attribute__((format(printf, 2, 3))) void keeper_say(const struct keeper *keeper, const char *format, ...);

/** Return the option with the number; NULL: it is not kept any more. */
struct kept_option *keeper_option(struct keeper *keeper, uint32_t id);

/* ---- keeper_marks.c ---- */

/** Send the watcher all marks anew. */
void keeper_mark(struct keeper *keeper);
/** Send the marks of files again, if any is registered: a mount may have changed what their paths mean. */
void keeper_mark_files(struct keeper *keeper);
/** Send the marks of file systems again: some may be new. */
void keeper_mark_systems(struct keeper *keeper);
/** Return whether file systems are to be marked. */
bool keeper_marks_systems(const struct keeper *keeper);
/** Return whether marks are on their way to the watcher. */
bool keeper_sends_marks(const struct keeper *keeper);
/** Return whether file systems at the place are to be watched. */
bool keeper_watches_below(const struct keeper *keeper, const char *place);
/** Learn from the kernel which file systems are marked. */
void keeper_find_marked(struct keeper *keeper);
/** Send the marks of the namespace's file systems that are not marked yet, from the mount `first` on (0: from the first
    one), until a time of the monotonic clock. Return the mount to go on with; 0: none is left. */
uint32_t keeper_mark_namespace(struct keeper *keeper, const struct mount_namespace *space, uint32_t first,
			       uint64_t until_ns);
/** Note that starts at the place are not seen. */
void keeper_note_unwatched(struct keeper *keeper, const struct mount_namespace *space, const char *place,
			   const char *why);
/** Describe the option to the watcher. */
void keeper_send_option(struct keeper *keeper, const struct kept_option *kept);

/* ---- keeper_search.c ---- */

/** Send the marks of file systems that only processes in other mount namespaces see. */
void keeper_search(struct keeper *keeper);
/** Do that while all marks are set anew. */
void keeper_search_anew(struct keeper *keeper);
/** Return whether the namespace's process is still in it. */
bool keeper_namespace_lasts(const struct mount_namespace *space);

/* ---- keeper_links.c ---- */

/** Send the watcher the symbolic links that concern options in force. */
void keeper_send_links(struct keeper *keeper);
/** Send them again if a directory of programs has changed. */
void keeper_check_links(struct keeper *keeper);

/* ---- keeper_users.c ---- */

/** Make the socket where sessions of users announce themselves. Return it, or a negative errno. */
int keeper_announced_open(struct diag *diag);
/** Take the sessions that have come to it. */
void keeper_take_announced(struct keeper *keeper);
/** Take the first message of such a session. Return false if it is none. */
bool keeper_announced_name(struct kept_session *session, const struct control_message *message);

/* ---- keeper_loggers.c ---- */

/** Start processes that wait for starts, as many as the options in force may need. */
void keeper_add_spares(struct keeper *keeper);
/** End the spares: they know the options as they were. */
void keeper_drop_spares(struct keeper *keeper);
/** Note that a spare is a logger now. */
void keeper_spare_taken(struct keeper *keeper, uint32_t id);
/** Find sessions that have begun or ended; ask new ones whether they take registered images. */
void keeper_scan_sessions(struct keeper *keeper);
/** Take the answers of the sessions that were asked, and pass those that take starts to the watcher. */
void keeper_take_sessions(struct keeper *keeper);
/** Return whether a session has not answered yet. */
bool keeper_asks_sessions(const struct keeper *keeper);
/** Note in the status how many sessions take starts, beside the images' own. */
void keeper_count_sessions(struct keeper *keeper);
/** Consider the sessions again: options have changed. */
void keeper_review_sessions(struct keeper *keeper);
/** Forget that sessions were passed to the watcher, which has ended. */
void keeper_forget_sessions(struct keeper *keeper);
/** Forget a session that has ended. */
void keeper_session_gone(struct keeper *keeper, uint32_t id);
/** End the sessions of images. */
void keeper_stop_sessions(struct keeper *keeper);
/** Remove the oldest traces of the images' own sessions that exceed the limits. */
void keeper_trim_traces(const struct keeper *keeper);

#endif
