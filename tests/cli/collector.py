#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A real Collector takes what xheap push sends, and hands it on: what comes out of it is xheap heap of the trace, stack by stack, with the labels of the service."""
import http.server
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

from export import expect, figures_of_heap, plain, read_otlp, xheap
from protobuf import fields, many

COLLECTOR = pathlib.Path(os.environ["BUILD"]).absolute() / "collector/collector"
PATIENCE_S = 60
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) void *kept(int size) { return malloc(size); }
__attribute__((noinline)) void *dropped(int size) { return malloc(size); }
int main(void)
{
	static void *volatile all[1000];
	getchar();
	for (int i = 0; i < 1000; i++) {
		all[i] = kept(100 + i);
		free(dropped(50));
	}
	puts("done");
	fflush(stdout);
	getchar();
}
"""
CONFIGURATION = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{otlp_http: {{profiles_endpoint: "http://127.0.0.1:{server}/out", compression: none, sending_queue: {{enabled: false}}}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{profiles: {{receivers: [otlp], exporters: [otlp_http]}}}}
"""


class Handler(http.server.BaseHTTPRequestHandler):
    bodies = []

    def do_POST(self):
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def await_port(port, collector):
    end = time.monotonic() + PATIENCE_S
    while collector.poll() is None and time.monotonic() < end:
        with socket.socket() as one:
            if not one.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.1)
    sys.exit(f"the Collector does not listen: {pathlib.Path('collector.log').read_text()[-500:]}")


def labels_of(body):
    """The attributes of the resource. A Collector of proto 1.10 and later writes places of texts in place of texts."""
    request = many(body)
    texts, found = [text.decode() for text in many(request[2][0])[5]], {}
    for row in many(many(request[1][0])[1][0])[1]:
        row = dict(fields(row))
        value = dict(fields(row[2]))
        found[row[1].decode() if 1 in row else texts[row[3]]] = value[1].decode() if 1 in value else texts[value[8]]
    return found


def main():
    if not COLLECTOR.exists():
        print("not checked: there is no Collector: tests/collector/build makes one from Go's modules")
        sys.exit(77)
    if not pathlib.Path(os.environ["XHEAP"]).with_name("xheap-send").exists():
        print("not checked: there is no xheap-send, which needs libcurl")
        sys.exit(77)
    os.environ["XDG_STATE_HOME"] = str(pathlib.Path("state").absolute())
    for name in ("OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME", "http_proxy"):
        os.environ.pop(name, None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = free_port()
    pathlib.Path("collector.yaml").write_text(CONFIGURATION.format(port=port, server=server.server_port))
    pathlib.Path("program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-o", "program", "program.c"], check=True)
    with open("collector.log", "wb") as log:
        collector = subprocess.Popen([COLLECTOR, "--config", "collector.yaml", "--feature-gates=+service.profilesSupport"], stdout=log, stderr=log)
    with collector, subprocess.Popen(["./program"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as target:
        try:
            await_port(port, collector)
            xheap("start", "collected", "-q", "-p", target.pid, "-o", "collected.xht")
            target.stdin.write("\n")
            target.stdin.flush()
            expect(target.stdout.readline() == "done\n", "the program ended")
            xheap("push", "collected", f"otlp+http://127.0.0.1:{port}", "--once", "--service", "shop")
            xheap("stop", "collected")
            target.stdin.close()
        finally:
            collector.terminate()
    expect(len(Handler.bodies) == 1, f"{len(Handler.bodies)} profiles came out of the Collector: {pathlib.Path('collector.log').read_text()[-500:]}")
    found, _ = read_otlp(Handler.bodies[0])
    wanted, totals = figures_of_heap("collected.xht", list(found), [])
    for figure, stacks in found.items():
        right = plain(wanted[figure])
        expect(dict(stacks) == {stack: value for stack, value in right.items() if value}, f"{figure}: {stacks}, not {right}")
        expect(sum(stacks.values()) == totals[figure] > 0, f"{figure}: {sum(stacks.values())}, not {totals[figure]}")
    labels = labels_of(Handler.bodies[0])
    expect(labels["service.name"] == "shop" and labels["host.name"] == socket.gethostname(), labels)


main()
