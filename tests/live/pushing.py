# SPDX-License-Identifier: MIT
"""What tests of pushing have in common: a session of one process that allocates when it is told to, a server that takes profiles, or does not, and what is in them."""
import collections
import http.server
import json
import os
import subprocess
import sys
import threading
import time

XHEAP = os.environ["XHEAP"]
# Blocks of two functions: one keeps all, one a tenth, and the oldest are freed in their turn. Each line of the input is a step.
PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* What an SDK of OpenTelemetry publishes: a message that is in this file. */
static void publish(const char *path)
{
	struct { char mark[8]; uint32_t version, size; uint64_t published; char *payload; } *head, made = {"OTEL_CTX", 2, 0, 1, malloc(4096)};
	int file = memfd_create("OTEL_CTX", MFD_CLOEXEC), from = open(path, O_RDONLY);
	made.size = read(from, made.payload, 4096);
	close(from);
	ftruncate(file, sizeof(*head));
	head = mmap(NULL, sizeof(*head), PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	memcpy(head, &made, sizeof(made));
	close(file);
}
__attribute__((noinline)) void *kept(void) { return malloc(3000); }
__attribute__((noinline)) void *dropped(void) { return malloc(500); }
/* From a second place later, which earlier profiles do not know. */
__attribute__((noinline)) void *keep(int is_late)
{
	void *block;
	if (is_late) {
		block = kept();
		__asm__ volatile("nop");
	} else {
		block = kept();
		__asm__ volatile("");
	}
	return block;
}
int main(int count_of, char **words)
{
	if (count_of > 1)
		publish(words[1]);
	char line[16];
	enum { KEPT = 1 << 15, TENTHS = KEPT / 10 };
	static void *volatile all[KEPT], *volatile tenths[TENTHS];
	unsigned count = 0;
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < 1000; i++) {
			free(all[count % KEPT]);
			all[count % KEPT] = keep(count % 2 && count > 1000);
			void *volatile block = dropped();
			if (i % 10 == 0) {
				void *before = tenths[count / 10 % TENTHS];
				tenths[count / 10 % TENTHS] = block;
				block = before;
			}
			free(block);
			count++;
		}
		puts("done");
		fflush(stdout);
	}
}
"""


def expect(condition, what):
    if not condition:
        sys.exit(what)


def run(*words, status=0):
    done = subprocess.run([str(word) for word in (XHEAP, *words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(done.returncode == status, f"{words}: {done.returncode}: {done.stderr}")
    return done


class Target:
    """A session with one process, which allocates when it is told to."""

    def __init__(self, name, *options, words=()):
        self.name = name
        self.process = subprocess.Popen(["./steps", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        run("start", name, "-q", "-p", self.process.pid, *options)

    def step(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        expect(self.process.stdout.readline() == "done\n", "the target ended")

    def stop(self, *options):
        said = run("stop", self.name, *options).stderr
        self.process.stdin.close()
        self.process.wait()
        return said

    def query(self):
        return json.loads(run("query", self.name, "-format", "json").stdout).get("push")


class Server:
    """Takes profiles; `answers` has the first answers: a status, (status, headers), or a function of the connection. Afterwards it is `usual`. What it has answered 4xx but 429 is refused."""

    def __init__(self, answers=(), port=0, usual=200):
        self.requests, self.refused, self.answers, self.usual = [], [], list(answers), usual
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = outer.answers.pop(0) if outer.answers else outer.usual
                if callable(answer):
                    answer(self)
                    return
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                if status < 300:
                    outer.requests.append((self.path, dict(self.headers), body))
                elif status < 500 and status != 429:
                    outer.refused.append(body)
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, f"after {seconds} s: {what()}")
        time.sleep(0.1)


def of_otlp(body):
    """By figure, of the functions `kept` and `dropped`: sums of the samples below them; the labels."""
    from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2
    request = profiles_service_pb2.ExportProfilesServiceRequest.FromString(body)
    dictionary, texts, found = request.dictionary, request.dictionary.string_table, collections.Counter()
    for profile in request.resource_profiles[0].scope_profiles[0].profiles:
        for sample in profile.samples:
            names = {texts[dictionary.function_table[line.function_index].name_strindex] for at in dictionary.stack_table[sample.stack_index].location_indices
                     for line in dictionary.location_table[at].lines}
            for name in names & {"kept", "dropped"}:
                found[texts[profile.sample_type.type_strindex], name] += sample.values[0]
    return found, {one.key: one.value.string_value for one in request.resource_profiles[0].resource.attributes}


def nonsense(handler):
    handler.wfile.write(b"\xff\xfe\x00garbage\r\n\r\n" * 100)
    handler.close_connection = True


def answer_of(body):
    def handle(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
    return handle
