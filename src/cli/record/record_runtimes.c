/* SPDX-License-Identifier: MIT */
#include "cli/record/record_runtimes.h"

#include <fnmatch.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/sink.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/record/record.h"
#include "os/proc.h"
#include "query/library_frames.h"

enum { OPTIONS_MAX = 3 };

/* Runtimes by patterns of their program's name. Without options: it takes none of its command line, and `instead` says
   what its user may do. */
static const struct named_runtime {
	const char *name;
	const char *options[OPTIONS_MAX + 1];
	const char *instead;
} runtimes[] = {
	{"node", {"--perf-basic-prof", "--interpreted-frames-native-stack"}, NULL},
	{"nodejs", {"--perf-basic-prof", "--interpreted-frames-native-stack"}, NULL},
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
