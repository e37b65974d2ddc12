/* SPDX-License-Identifier: MIT */
#include "cli/record/record_runtimes.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/sink.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/record/record.h"
#include "cli/record/record_files.h"
#include "os/fd.h"
#include "os/proc.h"
#include "query/library_frames.h"

enum { OPTIONS_MAX = 6 };

#define NODE_MAP "--perf-basic-prof", "--interpreted-frames-native-stack"

/* Runtimes by patterns of their program's name. Without options: it takes none of its command line, and `instead` says
   what its user may do. */
static const struct named_runtime {
	const char *name;
	const char *options[OPTIONS_MAX + 1];
	const char *instead;
} runtimes[] = {
	{"node", {NODE_MAP}, NULL},
	{"nodejs", {NODE_MAP}, NULL},
	{"java", {"-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-XX:+PreserveFramePointer"}, NULL},
	{"php", {"-d", "opcache.jit_debug=0x10"}, NULL},
	{"php[1-9]*", {"-d", "opcache.jit_debug=0x10"}, NULL},
	{"dotnet", {NULL}, "set DOTNET_PerfMapEnabled=3 in its environment"},
	{"npm",
	 {NULL},
	 "set NODE_OPTIONS='--perf-basic-prof --interpreted-frames-native-stack' in its environment, which reaches the "
	 "programs that it starts"},
	{"npx",
	 {NULL},
	 "set NODE_OPTIONS='--perf-basic-prof --interpreted-frames-native-stack' in its environment, which reaches the "
	 "programs that it starts"},
	{"mvn", {NULL}, "set JAVA_TOOL_OPTIONS in its environment; docs/jit.md has its value"},
	{"gradle", {NULL}, "set JAVA_TOOL_OPTIONS in its environment; docs/jit.md has its value"},
};

/* Options of Java where its agent is installed: names come at once, with those of methods that were put into others.
   Methods are interpreted, and have no names, until they were called 20 times in place of 200. Java 8 knows no such
   option. */
#define AGENT_OPTION "-agentpath:"
static char agent_option[sizeof(AGENT_OPTION) + PATH_MAX];
static const struct named_runtime java_with_agent = {
	"java", {agent_option, "-XX:+PreserveFramePointer", "-XX:CompileThresholdScaling=0.1"}, NULL};

/* Find Java's agent: beside the command, as in a build, or where libraries are installed. Options of it would begin
   with '='. */
static bool agent_find(void)
{
	static const char *const places[] = {"libxheap-java.so", XHEAP_LIBRARIES "/xheap/libxheap-java.so"};
	char path[PATH_MAX], *found = agent_option + strlen(AGENT_OPTION);
	strcpy(agent_option, AGENT_OPTION);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (!proc_beside(path, sizeof(path), places[i]) && access(path, R_OK) == 0 && realpath(path, found))
			return !strchr(found, '=');
	return false;
}

/* Options of node's by which it logs what its compiler puts into a function, too, into a temporary file without a name
   (session/jit/v8_log.h). Before 20 it logs the sources with it. Each is known to a program that has its name. */
#define NODE_LOG "--no-logfile-per-isolate", "--logfile=+"
static const struct node_log {
	const char *option;
	struct named_runtime runtime;
} node_logs[] = {
	{"log_source_position", {"node", {NODE_MAP, "--log-code", "--log-source-position", NODE_LOG}, NULL}},
	{"log_source_code", {"node", {NODE_MAP, "--log-code", "--log-source-code", NODE_LOG}, NULL}},
};

/* Return the options that the program of node's knows; NULL: none, or it is a script. */
static const struct named_runtime *node_log_find(const char *program)
{
	const struct named_runtime *found = NULL;
	struct stat status;
	int fd = file_open_regular(program, &status);
	size_t size = fd < 0 ? 0 : (size_t)status.st_size;
	void *text = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	for (size_t i = 0; text != MAP_FAILED && !found && i < sizeof(node_logs) / sizeof(*node_logs); i++)
		if (memmem(text, size, node_logs[i].option, strlen(node_logs[i].option)))
			found = &node_logs[i].runtime;
	if (text != MAP_FAILED)
		munmap(text, size);
	fd_close(&fd);
	return found;
}

/* Choose the options for node, which ends where it cannot write its map, and logs to its output where it cannot write
   its log. 0, or an exit status after a message. */
static int node_find(struct record *record, const struct named_runtime **runtime)
{
	int error = record_find_program(record), temporary = file_temporary("/tmp");
	if (!error && temporary < 0)
		error = cli_fail("record: --jit-names: %s would end, as it cannot write a file in /tmp (%s)",
				 record->command[0], strerror(errno));
	fd_close(&temporary);
	const struct named_runtime *log = error ? NULL : node_log_find(record->program);
	*runtime = log ? log : *runtime;
	return error;
}

static const struct named_runtime *runtime_find(const char *command)
{
	const char *name = text_file_name(command);
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++)
		if (!fnmatch(runtimes[i].name, name, 0))
			return &runtimes[i];
	return NULL;
}

static size_t words_count(const char *const *words)
{
	size_t count = 0;
	while (words[count])
		count++;
	return count;
}

int record_name_code(struct record *record)
{
	if (!record->names_code)
		return 0;
	const char *command = record->command[0];
	const struct named_runtime *runtime = command ? runtime_find(command) : NULL;
	if (!command)
		return cli_fail("record: --jit-names is for a command that is started");
	const char *instead = runtime ? runtime->instead : library_runtime_advice(text_file_name(command));
	if (instead)
		return cli_fail("record: --jit-names sets nothing for %s; %s", command, instead);
	if (runtime && !strcmp(runtime->name, java_with_agent.name) && agent_find())
		runtime = &java_with_agent;
	if (!runtime)
		return cli_fail("record: --jit-names: %s is no runtime whose options are known: node, nodejs, java "
				"and php are",
				command);
	int error = strncmp(runtime->name, "node", 4) ? 0 : node_find(record, &runtime);
	if (error)
		return error;
	size_t words = words_count((const char *const *)record->command), options = words_count(runtime->options);
	char **longer = memory_zeroed(words + options + 1, sizeof(*longer));
	struct sink said;
	sink_to_memory(&said);
	longer[0] = record->command[0];
	for (size_t i = 0; i < options; i++) {
		longer[1 + i] = (char *)runtime->options[i];
		sink_format(&said, " %s", runtime->options[i]);
	}
	memcpy(longer + 1 + options, record->command + 1, (words - 1) * sizeof(*longer));
	record->command = longer;
	char *text = sink_take(&said, NULL);
	if (!record->is_quiet)
		cli_say("--jit-names: %s runs with%s, and writes /tmp/perf-PID.map, which stays", command, text);
	free(text);
	return 0;
}
