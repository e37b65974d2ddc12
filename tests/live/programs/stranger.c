/* SPDX-License-Identifier: MIT */
/*
 * What a user does to whoever opens the user's files.
 *
 * stranger load LIBRARY: load it between two heap calls, print "loaded", and wait for the end of the input.
 *
 * stranger map FILE LIBRARY: map the file as code first, and touch none of it.
 *
 * stranger serve DIRECTORY DEVICE FILE ANSWERED SECONDS: a FUSE file system there, through the device, whose file
 * `file` is a copy of FILE. All opens of it are answered but the one after the first ANSWERED; with -1 all opens are
 * answered, and no reads. Nobody gets an answer about the name `silent`. What is not answered makes a file
 * `DIRECTORY.unanswered`. Print "serves" when it is mounted. After so many seconds it ends by itself.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ROOT = FUSE_ROOT_ID, FILE_NODE = 2, SECONDS_VALID = 1000 };

static int device;
static char *data, note[4096];
static size_t size;
static long answered;
static int has_no_reads;

static void reply(uint64_t request, int error, const void *body, size_t bytes)
{
	struct fuse_out_header head = {.len = (uint32_t)(sizeof(head) + bytes), .error = error, .unique = request};
	struct iovec parts[] = {{&head, sizeof(head)}, {(void *)body, bytes}};
	if (writev(device, parts, 2) < 0 && errno != ENOENT)
		_exit(1);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){.ino = node,
				  .nlink = 1,
				  .blksize = 4096,
				  .mode = node == ROOT ? S_IFDIR | 0755 : S_IFREG | 0755,
				  .size = node == ROOT ? 0 : size,
				  .blocks = node == ROOT ? 0 : size / 512 + 1};
}

static void answer_lookup(const struct fuse_in_header *head, const char *name)
{
	struct fuse_entry_out entry = {.nodeid = FILE_NODE,
				       .entry_valid = SECONDS_VALID,
				       .attr_valid = SECONDS_VALID,
				       .attr = attributes(FILE_NODE)};
	if (strcmp(name, "file") == 0)
		reply(head->unique, 0, &entry, sizeof(entry));
	else if (strcmp(name, "silent") == 0)
		close(open(note, O_CREAT | O_WRONLY, 0644));
	else
		reply(head->unique, -ENOENT, NULL, 0);
}

static void answer_open(const struct fuse_in_header *head)
{
	struct fuse_open_out open_out = {.fh = 1};
	if (answered-- != 0)
		reply(head->unique, 0, &open_out, sizeof(open_out));
	else
		close(open(note, O_CREAT | O_WRONLY, 0644));
}

static void answer_read(const struct fuse_in_header *head, const struct fuse_read_in *wish)
{
	if (has_no_reads) {
		close(open(note, O_CREAT | O_WRONLY, 0644));
		return;
	}
	size_t left = wish->offset < size ? size - wish->offset : 0;
	reply(head->unique, 0, data + wish->offset, left < wish->size ? left : wish->size);
}

static void answer(const struct fuse_in_header *head)
{
	const void *body = head + 1;
	struct fuse_init_out init = {.major = 7, .minor = 31, .max_readahead = 65536, .max_write = 65536};
	struct fuse_attr_out facts = {.attr_valid = SECONDS_VALID, .attr = attributes(head->nodeid)};
	struct fuse_statfs_out room = {.st = {.bsize = 4096, .namelen = 255}};
	struct fuse_open_out directory = {.fh = 2};
	switch (head->opcode) {
	case FUSE_INIT:
		reply(head->unique, 0, &init, sizeof(init));
		break;
	case FUSE_GETATTR:
		reply(head->unique, 0, &facts, sizeof(facts));
		break;
	case FUSE_LOOKUP:
		answer_lookup(head, body);
		break;
	case FUSE_OPEN:
		answer_open(head);
		break;
	case FUSE_OPENDIR:
		reply(head->unique, 0, &directory, sizeof(directory));
		break;
	case FUSE_READ:
		answer_read(head, body);
		break;
	case FUSE_STATFS:
		reply(head->unique, 0, &room, sizeof(room));
		break;
	case FUSE_READDIR:
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_ACCESS:
		reply(head->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(head->unique, -ENOSYS, NULL, 0);
	}
}

static int serve(const char *directory, const char *device_path, const char *file)
{
	static char request[1 << 20];
	char options[200];
	struct stat status;
	int fd = open(file, O_RDONLY);
	if (fd < 0 || fstat(fd, &status) != 0 || !(data = malloc((size_t)status.st_size)) ||
	    read(fd, data, (size_t)status.st_size) != status.st_size)
		return 1;
	size = (size_t)status.st_size;
	device = open(device_path, O_RDWR);
	snprintf(note, sizeof(note), "%s.unanswered", directory);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0", device);
	if (device < 0 || mount("stranger", directory, "fuse", MS_NOSUID | MS_NODEV, options) != 0) {
		perror("no FUSE file system");
		return 1;
	}
	puts("serves");
	fflush(stdout);
	for (;;) {
		ssize_t got = read(device, request, sizeof(request));
		if (got > 0)
			answer((void *)request);
		else if (errno != EINTR)
			return 0;
	}
}

static int load(const char *library)
{
	free(malloc(10));
	if (!dlopen(library, RTLD_NOW)) {
		puts(dlerror());
		return 1;
	}
	free(malloc(20));
	puts("loaded");
	fflush(stdout);
	return getchar() != EOF;
}

static int map(const char *path)
{
	int fd = open(path, O_RDONLY);
	void *mapped = mmap(NULL, 1 << 16, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	return fd < 0 || mapped == MAP_FAILED;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "map") == 0)
		return map(argv[2]) || load(argv[3]);
	if (argc == 3 && strcmp(argv[1], "load") == 0)
		return load(argv[2]);
	if (argc != 7 || strcmp(argv[1], "serve") != 0)
		return 2;
	answered = atol(argv[5]);
	has_no_reads = answered < 0;
	alarm((unsigned)atoi(argv[6]));
	return serve(argv[2], argv[3], argv[4]);
}
