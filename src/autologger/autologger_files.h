/* SPDX-License-Identifier: MIT */
/** The files of autologgers, one NAME.conf for each, and the state that xheap keeps of them. Only files are trusted
    that belong to the caller or to root, as their directory does, and that nobody else may write. */
#ifndef XHEAP_AUTOLOGGER_AUTOLOGGER_FILES_H
#define XHEAP_AUTOLOGGER_AUTOLOGGER_FILES_H

#include <sys/types.h>

#include "autologger/autologger.h"
#include "session/directory/fields.h"

enum autologger_directory {
	AUTOLOGGER_DIRECTORY_FILES,  /**< /etc/xheap/autologger.d */
	AUTOLOGGER_DIRECTORY_STATE,  /**< /var/lib/xheap/autologger: Status, and the state of boot traces */
	AUTOLOGGER_DIRECTORY_TRACES, /**< /var/lib/xheap/traces */
	AUTOLOGGER_DIRECTORY_COUNT
};

/** Write the directory's path, behind trusted_root(). */
void autologger_directory(enum autologger_directory directory, char *path, size_t size);

/** Make the directory for traces, which is its owner's alone, and those above it. Return 0 or a negative errno. */
int autologger_make_traces(struct diag *diag);

/** A file as it was read. */
struct autologger_entry {
	struct autologger logger;
	int error;          /**< 0, or a negative errno: it is not in force */
	struct diag reason; /**< with the file and the line */
};

/** All files, in the order of their names. Zero it first. */
struct autologger_list {
	struct autologger_entry *items;
	size_t count, capacity;
};

/** Read all files. A missing directory has none. Return 0, or a negative errno if the directory cannot be trusted. */
int autologger_list_read(struct autologger_list *list, struct diag *diag);
/** Free the list. */
void autologger_list_fini(struct autologger_list *list);

/** Return the file with this name, or NULL. */
struct autologger_entry *autologger_list_find(const struct autologger_list *list, const char *name);

/** Set Start in the file, and leave the rest as it is, comments too. Return 0 or a negative errno. */
int autologger_file_start(const char *name, bool is_on, struct diag *diag);

/** Write the file, whole or not at all; it survives a power loss. Return 0 or a negative errno. */
int autologger_file_write(const struct autologger *logger, struct diag *diag);

/** Remove the file, and the status of its last start. Return 0 or a negative errno. */
int autologger_file_remove(const char *name, struct diag *diag);

/** The last start of an autologger. */
struct autologger_status {
	bool is_known;   /**< it was started once */
	uint32_t number; /**< Status: 0, or the documented number of the error */
	int64_t at_s;    /**< time of the start, seconds since the epoch */
	char text[512];  /**< of the error; "": there was none */
};

/** Read the status; is_known is false if there is none. */
void autologger_status_read(const char *name, struct autologger_status *status);

/** Write the status of a start now. Return 0 or a negative errno. */
int autologger_status_write(const char *name, int error, const char *text, struct diag *diag);

/** Write a file of fields into the directory for states, whole or not at all. Return 0 or a negative errno. */
int autologger_state_write(const char *file, const struct fields *fields, struct diag *diag);

/** Return the text of such a file, which the caller frees; NULL with errno set. */
char *autologger_state_read(const char *file);

/** Remove such a file; it may be missing. */
void autologger_state_remove(const char *file);

#endif
