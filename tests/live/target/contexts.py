#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Blocks of a sample have the trace and span that their thread had published, as the program itself says for each block.

usage: contexts.py [TEST...]"""
import collections
import contextlib
import gzip
import http.server
import os
import pathlib
import subprocess
import sys
import threading

from live import PROGRAMS, SOAK, XHEAP, attach, expect, for_preload, run_tests, told, wait_until_begun, xheap
from protobuf import fields, many, numbers

ROUNDS = 2000 if SOAK else 150
RUNS_MAX = 5
SAMPLE = "16K"  # no block of 4 MiB is missed: exp(-256)
HEAP, BLOCKS = "@$cursession.TTD.Data.Heap()", "@$cursession.TTD.Data.Allocations()"


def is_built(name):
    return os.path.exists(os.path.join(PROGRAMS, name))


def read(lines):
    """By size, the trace and the span."""
    return {int(size): (trace_id, span_id) for size, trace_id, span_id in map(str.split, lines)}


def record(trace, program, *words, sample=SAMPLE, **more):
    """What the program says of its blocks."""
    done = subprocess.run([XHEAP, "record", "-q", "-o", trace, *(["--sample", sample] if sample else []), "--",
                           os.path.join(PROGRAMS, program), *map(str, words)], stdout=subprocess.PIPE, text=True, check=True, **more)
    return read(done.stdout.splitlines())


def ask(trace, query):
    return [row["value"] for row in told("dx", trace, "-r2", query)["result"]]


def ids(row):
    return row.get("TraceId", "-"), row.get("SpanId", "-")


def check(trace, wanted):
    """Calls and blocks have what was published. Return how many have a context."""
    select = "Where(b => b.Size >= 0x400000).Select(b => new { b.Size, b.TraceId, b.SpanId })"
    for objects in (HEAP, BLOCKS):
        rows = ask(trace, f"{objects}.{select}")
        found = {int(row["Size"]): ids(row) for row in rows}
        expect(len(rows) == len(found) and found.keys() == wanted.keys(), f"{trace}: {len(rows)} blocks, not {len(wanted)}")
        wrong = [(size, found[size], wanted[size]) for size in wanted if found[size] != wanted[size]]
        expect(not wrong, f"{trace}: {len(wrong)} of {len(wanted)} blocks have another context, such as {wrong[:2]}")
    return sum(context != ("-", "-") for context in wanted.values())


def of_the_program():
    """The variable is the program's own, and published rightly and wrongly."""
    said = []
    for program in filter(is_built, ("contexts", "contexts_static", "contexts_musl")):
        wanted = record(f"{program}.xht", program, ROUNDS)
        published = check(f"{program}.xht", wanted)
        expect(len(wanted) / 3 < published < len(wanted), f"{published} of {len(wanted)} blocks have a context")
        said.append(f"{program} {published} of {len(wanted)}")
    return ", ".join(said)


def of_a_library():
    """The variable is a library's, which was there at the start, or came later. A preloaded library has to be xheap's, too: not one for musl."""
    said = []
    for way in filter(lambda way: is_built(f"context_{way}.so"), ("general", "descriptor", "initial", "general_musl")):
        library, program = for_preload(f"context_{way}.so"), "contexts_elsewhere_musl" if "musl" in way else "contexts_elsewhere"
        first, later = ("first", (), {"env": {**os.environ, "LD_PRELOAD": library}}), ("later", (library,), {})
        for when, words, more in (later,) if "musl" in way else (first, later):
            name = f"{way}_{when}"
            wanted = record(f"{name}.xht", program, ROUNDS, *words, **more)
            said.append(f"{name} {check(f'{name}.xht', wanted)} of {len(wanted)}")
    return ", ".join(said)


def of_a_process_that_runs():
    """Its library was loaded before it was attached to."""
    said = []
    for program, library in (("contexts", None), ("contexts_elsewhere", "context_descriptor.so")):
        environment = {**os.environ, "LD_PRELOAD": for_preload(library)} if library else None
        with subprocess.Popen([os.path.join(PROGRAMS, program), str(-ROUNDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as process:
            wait_until_begun(process)
            attach("start", "contexts", "-p", process.pid, "--sample", SAMPLE, "-o", "attached.xht")
            wanted = read(process.communicate("\n")[0].splitlines())
        xheap("stop", "contexts")
        said.append(f"{program} {check('attached.xht', wanted)} of {len(wanted)}")
        os.remove("attached.xht")
    return ", ".join(said)


def by_stack(trace, has_lines):
    """Of each stack its contexts with their blocks' bytes, as dx has them. Of frames with lines: the forked process works at another one."""
    found = collections.defaultdict(collections.Counter)
    for row in ask(trace, f"{BLOCKS}.Where(b => b.Size >= 0x400000).Select(b => new {{ b.Size, b.TraceId, b.SpanId, b.Stack, Of = b.Process.UniqueId }})"):
        found[row["Stack"], has_lines and row["Of"]][ids(row)] += int(row["Size"])
    return found


def largest(contexts):
    """The links of a stack, and the bytes of all else."""
    links = sorted(((size, *context) for context, size in contexts.items() if context != ("-", "-")), key=lambda link: (-link[0], *link[1:]))[:4]
    return sorted((*context, size) for size, *context in links), sum(contexts.values()) - sum(link[0] for link in links)


def links_of_otlp(data):
    """Of each stack its links with their allocated bytes, and the rest."""
    request = many(data)
    tables = many(request[2][0])
    table = [(message.get(1, b"").hex(), message.get(2, b"").hex()) for message in map(dict, map(fields, tables[4]))]
    expect(table[0] == ("0" * 32, "0" * 16) and len(set(table)) == len(table), f"links {table[:2]}")
    found = collections.defaultdict(lambda: ([], 0))
    for sample in map(many, many(many(many(request[1][0])[2][0])[2][0])[2]):
        links, rest = found[sample[1][0]]
        value = numbers(sample[4][0])[0]
        link = sample[3][0] if sample[3] else 0
        found[sample[1][0]] = (links + [(*table[link], value)], rest) if link else (links, rest + value)
    return [(sorted(links), rest) for links, rest in found.values() if links]


def links_of_pprof(data):
    profile = many(gzip.decompress(data))
    strings = [text.decode() for text in profile[6]]
    found = collections.defaultdict(lambda: ([], 0))
    for sample in map(many, profile[2]):
        labels = {strings[label[1]]: strings[label[2]] for label in map(dict, map(fields, sample[3])) if 2 in label}
        stack, value = sample[1][0], numbers(sample[2][0])[1]
        links, rest = found[stack]
        found[stack] = (links + [(labels["trace_id"], labels["span_id"], value)], rest) if labels else (links, rest + value)
    return [(sorted(links), rest) for links, rest in found.values() if links]


def in_exports():
    """At most four links of a stack, those of most bytes; what they have and the rest are the stack's bytes."""
    record("exported.xht", "contexts", 12)
    stacks = by_stack("exported.xht", True)
    wanted = sorted(largest(contexts) for contexts in stacks.values() if len(contexts) > 1)
    for name, links_of in (("otlp", links_of_otlp), ("pprof", links_of_pprof)):
        found = sorted(links_of(subprocess.run([XHEAP, "export", "exported.xht", "-format", name], stdout=subprocess.PIPE, check=True).stdout))
        expect(found == wanted, f"{name}: links {found}, not {wanted}")
    return f"{sum(len(links) for links, _ in wanted)} links of {len(wanted)} stacks"


@contextlib.contextmanager
def server():
    """Something that takes all; what it has taken, and its port."""
    bodies = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield bodies, served.server_address[1]
        served.shutdown()


def in_pushes():
    """A push has the links of what was allocated since the one before. Pyroscope gets the spans alone."""
    with subprocess.Popen([os.path.join(PROGRAMS, "contexts"), "-12"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        wait_until_begun(process)
        attach("start", "contexts", "-p", process.pid, "--sample", SAMPLE, "-o", "pushed.xht")
        process.stdin.write("\n")
        process.stdin.flush()
        for _ in range(2 + 6 * 12 + 20):
            process.stdout.readline()
        pushed, known = [], set()
        os.mkdir("pushed")
        for _ in range(2):
            xheap("push", "contexts", "file:pushed", "--once", "--service", "shop")
            profile, = set(pathlib.Path("pushed").iterdir()) - known
            known.add(profile)
            pushed.append(sorted(links_of_pprof(profile.read_bytes())))
        with server() as (bodies, port):
            xheap("push", "contexts", f"pyroscope+http://127.0.0.1:{port}", "--once", "--service", "shop")
        strings = [text.decode() for text in many(gzip.decompress(bodies[0]))[6]]
        expect("span_id" in strings and "trace_id" not in strings, f"labels of {strings}")
        process.communicate("\n")
    xheap("stop", "contexts")
    stacks = by_stack("pushed.xht", False)
    wanted = sorted(largest(contexts) for contexts in stacks.values() if len(contexts) > 1)
    expect(pushed == [wanted, []], f"links {pushed}, not {wanted} and none")


def of_signal_handlers():
    """A handler has its own, also inside a heap call, whose block has that of before."""
    wanted = {10000: ("-", "-"), 20000: ("01" + "00" * 15, "02" + "00" * 7), 30000: ("03" + "00" * 15, "04" + "00" * 7)}
    # All handlers of a run may come inside of a call.
    for _ in range(RUNS_MAX):
        subprocess.run([XHEAP, "record", "-q", "-o", "signals.xht", "--sample", "500", "--", os.path.join(PROGRAMS, "contexts_signals")], stdout=subprocess.DEVNULL, check=True)
        rows = ask("signals.xht", f"{HEAP}.Where(h => h.Size >= 10000).Select(h => new {{ h.Size, h.TraceId, h.SpanId, Of = h.Thread.Name }})")
        found = collections.Counter((int(row["Size"]), ids(row), "(signal)" in row["Of"]) for row in rows)
        expect(all(wanted.get(size) == context for size, context, _ in found), f"contexts {found}")
        inside = sum(count for (_, _, is_inside), count in found.items() if is_inside)
        expect(inside >= 20, f"contexts {found}")
        if len(found) >= 4:
            return f"{inside} calls of handlers inside of others, of {len(rows)}"
    raise AssertionError(f"no handler outside of a call in {RUNS_MAX} runs: contexts {found}")


def of_no_sample():
    """A session that does not sample reads none."""
    wanted = record("whole.xht", "contexts", 20, sample=None)
    check("whole.xht", dict.fromkeys(wanted, ("-", "-")))


if __name__ == "__main__":
    sys.exit(run_tests(of_the_program, of_a_library, of_a_process_that_runs, in_exports, in_pushes, of_signal_handlers, of_no_sample))
