#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every JSON output is as docs/schema says: those about the older traces and about written ones, and those about sessions.

A key that the schemas do not have fails, and so does a key of the schemas that no output here has, unless UNSEEN names it."""
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys

import pushed_files
from live import BUILD, PROGRAMS, XHEAP, expect, run_tests, stop_session, wait_for, xheap

try:
    import jsonschema
except ImportError:
    print("there is no jsonschema (python3-jsonschema)")
    sys.exit(77)

SOURCE = pathlib.Path(os.environ["SOURCE"])
SCHEMAS = {path.name: json.loads(path.read_text()) for path in sorted((SOURCE / "docs/schema").glob("*.json"))}
SUBJECTS = ("events", "allocations", "stacks", "images", "processes", "memory", "mappings")
SCENES = ("plain", "forks", "losses", "earlier", "untraced", "circular", "nested", "growing", "put_in", "limited", "resident", "ended", "python")
# What takes a machine without room, a damage, or chance, by the schema's file.
UNSEEN = {
    "common.json": {"kind_counts": {"alloc", "realloc", "create", "destroy", "lock", "unlock", "protect", "reserve", "release", "earlier"},
                    "inactive": {"pid", "command", "bytes", "threads"}, "culled_wrappers": {"image", "symbol", "offset", "offset_end"}},
    "heap.json": {"": {"untraced_calls", "unhooked", "untraced_execs", "damaged_memory", "unfinished", "limited", "unwritten_events", "events_without_heap", "pythonless_stacks"}},
    "diff.json": {"source": {"untraced_calls", "unhooked", "untraced_execs", "damaged_memory", "unfinished", "limited", "unwritten_events", "events_without_heap", "pythonless_stacks"}},
    "info.json": {"": {"untraced_calls", "unhooked", "untraced_execs", "damaged_memory", "unfinished", "limited", "unwritten_events", "events_without_heap", "pythonless_stacks", "inactive"},
                  "cost": {"recorder_us"}},
    "query.json": {"target": {"limited"}, "": {"folding_bytes"}},
    "explain.json": {"of_end": {"core"}, "call": {"freed_again"}, "core": {"path", "signal", "tid", "address", "message", "message_meaning", "damage", "use_after_free", "use_beyond", "stack", "pointers"},
                     "damage": {"kind", "certainty", "address", "word", "more_count", "block"}, "use_beyond": {"certainty", "used", "block"},
                     "use_after_free": {"certainty", "used", "inside", "address", "block", "earlier_block"}, "core_frame": {"image", "symbol", "file", "line", "inlined", "offset"},
                     "pointer": {"register", "stack_offset", "value", "state", "offset", "block"}},
    "dump-images.json": {"": {"unload_ns"}},
    "dx.json": {"": {"stopped"}},
}
NAME = f"schema{os.getpid()}"
seen = set()              # (file, name of the object, key)


# ---- schemas ----

def objects(file):
    """Each object of a schema that has properties, by its name: "" at the top, that of its definition, or that of the property around it."""
    def walk(schema, name):
        if not isinstance(schema, dict):
            return
        if "properties" in schema:
            yield name, schema
        for key, inner in schema.get("$defs", {}).items():
            yield from walk(inner, key)
        for key, inner in schema.get("properties", {}).items():
            yield from walk(inner, f"{name}.{key}" if name else key)
        yield from walk(schema.get("items"), name)
    yield from walk(SCHEMAS[file], "")


def follow(file, reference):
    """The file and the schema that a reference leads to, and the name of its definition."""
    other, _, place = reference.partition("#")
    file, schema, name = other or file, SCHEMAS[other or file], ""
    for step in filter(None, place.split("/")):
        schema, name = schema[step], step
    return file, schema, name


def note(file, schema, name, value):
    """Remember which keys of the schemas this valid output has."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        note(*follow(file, schema["$ref"]), value)
    for inner in schema.get("allOf", ()):
        if "if" not in inner:
            note(file, inner, name, value)
        elif value["action"] == inner["if"]["properties"]["action"]["const"]:
            note(file, inner["then"], name, value)
    if isinstance(value, list):
        for item in value:
            note(file, schema.get("items"), name, item)
    if isinstance(value, dict):
        for key in schema.get("properties", {}).keys() & value.keys():
            seen.add((file, name, key))
            note(file, schema["properties"][key], f"{name}.{key}" if name else key, value[key])


def inlined(file, schema):
    """The same schema without references, which validators of some years follow slowly. No schema contains itself."""
    if not isinstance(schema, dict):
        return [inlined(file, inner) for inner in schema] if isinstance(schema, list) else schema
    parts = [{"$ref": schema[key]} for key in schema if key == "$ref"] + [inner for inner in schema.get("allOf", ()) if "if" not in inner]
    parts = [inlined(*follow(file, part["$ref"])[:2]) if part.keys() == {"$ref"} else inlined(file, part) for part in parts]
    found = {"properties": {}, "required": [], "allOf": [inlined(file, inner) for inner in schema.get("allOf", ()) if "if" in inner]}
    for part in parts:
        found = {**part, **{key: found[key] + part.get(key, []) for key in ("required", "allOf")}, "properties": {**found["properties"], **part.get("properties", {})}}
    found["properties"].update({key: inlined(file, inner) for key, inner in schema.get("properties", {}).items()})
    found["required"] = found["required"] + schema.get("required", [])
    rest = {key: inlined(file, inner) for key, inner in schema.items() if key not in ("$ref", "$defs", "$id", "allOf", "properties", "required", "description", "title")}
    found.update(rest)
    if "unevaluatedProperties" in found:
        found["additionalProperties"] = found.pop("unevaluatedProperties")
    return {key: inner for key, inner in found.items() if inner or key not in ("properties", "required", "allOf")}


def validator(file):
    """Of the schema as it is, by the way of references that this release of jsonschema has."""
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[file])
    stored = {schema["$id"]: schema for schema in SCHEMAS.values()}
    try:
        import referencing
        registry = referencing.Registry().with_resources([(uri, referencing.Resource.from_contents(schema)) for uri, schema in stored.items()])
        return jsonschema.Draft202012Validator(SCHEMAS[file], registry=registry)
    except ImportError:
        resolver = jsonschema.RefResolver(SCHEMAS[file]["$id"], SCHEMAS[file], store=stored)
        return jsonschema.Draft202012Validator(SCHEMAS[file], resolver=resolver)


VALIDATORS = {file: validator(file) for file in SCHEMAS}
QUICK_VALIDATORS = {file: jsonschema.Draft202012Validator(inlined(file, schema)) for file, schema in SCHEMAS.items()}


def check(file, value, where):
    error = next(QUICK_VALIDATORS[file].iter_errors(value), None)
    if error:
        place = "".join(f"[{step!r}]" for step in error.absolute_path)
        expect(False, f"{where}: {place or 'at the top'}: {error.message[:500]}")
    note(file, SCHEMAS[file], "", value)


def documented():
    """Each key has a description, which says when it is absent if it can be; no object takes other keys."""
    keys = 0
    for file in SCHEMAS:
        for name, schema in objects(file):
            is_part = name in ("action", "row", "changes", "split", "split_by_process_or_heap", "details", "numbers")
            expect(is_part or schema.get("additionalProperties") is False or schema.get("unevaluatedProperties") is False, f"{file}: {name} takes any key")
            for key, inner in schema["properties"].items():
                keys += 1
                text = inner.get("description", "")
                expect(text, f"{file}: {name}.{key} has no description")
                must_say = key not in schema.get("required", ()) and file != "query.json"
                expect(("Absent:" in text) or not must_say, f"{file}: {name}.{key} does not say when it is absent")
    return f"{keys} keys"


def is_valid(file, answer):
    """By both validators, which must agree."""
    exact, quick = VALIDATORS[file].is_valid(answer), QUICK_VALIDATORS[file].is_valid(answer)
    expect(exact == quick, f"{file}: the schema says {exact}, the one without references {quick}")
    return exact


def refused():
    """The validator sees what is wrong: another key in any object, a key that is missing, a number in place of a text."""
    trace = "plain.xht"
    subprocess.run([os.path.join(BUILD, "tests/golden/make_trace"), "plain", trace], check=True)
    tried = 0
    for file, words in (("heap.json", ("heap", trace, *ACTIONS)), ("info.json", ("info", trace))):
        answer = json.loads(output(*words, "-format", "json"))
        for place in list(places(answer)):
            is_open = place[-1:] in (["options"], ["filters"])
            target = find(answer, place)
            target["undocumented"] = 1
            expect(not is_valid(file, answer), f"{file}: another key at {place} is not seen")
            del target["undocumented"]
            tried += 1
            for key in () if is_open else ("total_count", "missing_calls", "exec_generation", "row_count", "from_us"):
                if key in target:
                    kept = target.pop(key)
                    expect(not is_valid(file, answer), f"{file}: {key} is missing at {place}, which is not seen")
                    target[key] = kept
        expect(is_valid(file, answer), f"{file}: not as it was")
    return f"{tried} objects"


def places(value, at=()):
    """The paths of all objects of an answer, of lists those of the first row."""
    if isinstance(value, dict):
        yield list(at)
    for key, inner in value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ():
        yield from places(inner, (*at, key))


def find(value, place):
    for key in place:
        value = value[key]
    return value


# ---- outputs ----

ACTIONS = ("-stacks", "-frames", "-image", "-heaps", "-tree", "-callers", "*")
TOP, ALIKE_MAX = 20, 8   # rows of a table; rows of a dump that have the same keys


def output(*words):
    return subprocess.run([XHEAP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


def check_trace(trace, is_sample=False, is_folded=False):
    def ask(*words):
        check(f"{words[0]}.json", json.loads(output(words[0], trace, *words[1:], *(["-top", TOP] if words[0] == "heap" else []), "-format", "json")), f"{words} of {trace}")
    ask("info")
    ask("heap", *ACTIONS, "-lines")
    ask("report")
    ask("heap", "-frames", "-inclusive")
    if not is_sample and not is_folded:
        check("heap-map.json", json.loads(output("heap", trace, "-map", "-format", "json")), f"map of {trace}")
        if any(json.loads(line)["files_bytes"] for line in output("dump", trace, "-memory", "-format", "json").splitlines() if "files_bytes" in line):
            ask("why")
            ask("why", "-at", "end")
    if not is_sample and not is_folded:
        ask("heap", "-chains")
        ask("heap", "-innermost", "-closed", "-size", "1", "1G", "-lifetime", "0", "1000s", "-window", "AIFI", "0", "1000s")
    ask("heap", "-range", "0", "1000s", "-cullFrames", "malloc", "libc!")
    compare(trace)
    for by in ("process", "thread", "heap") if is_folded else ("process", "thread", "heap", "size", "lifetime", "time", "class"):
        ask("heap", *(action for action in ACTIONS if action != "-heaps" or by != "heap"), "-by", by)
    for subject in SUBJECTS:
        alike = collections.Counter()
        for line in output("dump", trace, f"-{subject}", *(["-wholeStacks"] if subject == "stacks" else []), "-format", "json").splitlines():
            row = json.loads(line)
            alike[tuple(row)] += 1
            if alike[tuple(row)] <= ALIKE_MAX:
                check(f"dump-{subject}.json", row, f"dump -{subject} of {trace}")


def compare(trace):
    """The trace beside one of make_trace, or as one of several runs."""
    ways = ((trace, "plain.xht", *ACTIONS[:3], "-tree", "-callers", "*"), (trace, "--", "plain.xht", trace, "-frames", "-inclusive", "-normalise", "2"))
    words = ways[len(str(trace)) % len(ways)]
    check("diff.json", json.loads(output("diff", *words, "-top", TOP, "-format", "json")), f"diff {words}")


def compare_split():
    """Windows of one trace, split by each property; and a trace whose symbols another one has."""
    for by in ("process", "thread", "heap", "size", "lifetime", "time", "class"):
        check("diff.json", json.loads(output("diff", "forks.xht@..2us", "forks.xht@2us..", "-by", by, "-format", "json")), f"diff -by {by}")
    check("diff.json", json.loads(output("diff", "forks.xht@10s..20s", "forks.xht", "-format", "json")), "diff of a time behind the end")
    check("diff.json", json.loads(output("diff", "forks.xht@=1us", "forks.xht@=2us", "-format", "json")), "diff of moments")
    for command in ("heap", "report"):
        for words in (("-range", "10s", "20s", "-window", "AIFO", "10s", "20s"), ("-at", "20s")):
            check(f"{command}.json", json.loads(output(command, "forks.xht", *words, "-format", "json")), f"{command} of {words}")
    pathlib.Path("bare.c").write_text("#include <stdlib.h>\nint main(void) { void *volatile p = malloc(1); (void)p; return 0; }\n")
    subprocess.run([os.environ.get("CC", "cc"), "-Wl,--build-id", "-o", "bare", "bare.c"], check=True)
    xheap("record", "-q", "-o", "named.xht", "./bare")
    xheap("record", "-q", "-o", "other.xht", "--stack-depth", "9", "./bare")
    xheap("merge", "named.xht", "other.xht", "-o", "merged.xht")
    check("info.json", json.loads(output("info", "merged.xht", "-format", "json")), "info of a merged trace")
    xheap("symbols", "named.xht")
    subprocess.run(["strip", "bare"], check=True)
    xheap("record", "-q", "-o", "bare.xht", "./bare")
    answer = json.loads(output("diff", "named.xht", "bare.xht", "-format", "json"))
    expect("lent_names" in answer["b"][0], "no names are lent")
    check("diff.json", answer, "diff of a trace without symbols")


def frames():
    """A frame that names match by their last part, and wrappers."""
    trace = SOURCE / "tests/golden/traces/libcxx.xht"
    for file, words in (("heap.json", ("heap", trace)), ("report.json", ("report", trace)), ("diff.json", ("diff", trace, trace))):
        answer = json.loads(output(*words, "-requireFrames", "handle", "-format", "json"))
        expect(any(row["pattern"] == "handle" and "server!Server::handle(int)" in row["frames"] for row in answer["matched_last_parts"]), f"{words}: no match is named")
        check(file, answer, f"{words}")
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-g", "-pthread", "-o", "wrapped", SOURCE / "tests/live/cull/wrappers.c"], check=True)
    xheap("record", "-q", "-o", "wrapped.xht", "./wrapped")
    answer = json.loads(output("heap", "wrapped.xht", "-format", "json"))
    expect(answer["culled_wrappers"], "no wrapper is named")
    check("heap.json", answer, "wrappers")


def traces():
    os.environ["XHEAP_INDEX_EVENTS"] = "none"
    for scene in SCENES:
        subprocess.run([os.path.join(BUILD, "tests/golden/make_trace"), scene, f"{scene}.xht", "1", "200"], check=True)
        check_trace(f"{scene}.xht")
        for query in ("@$cursession.TTD.Data.Heap()", "@$cursession.TTD.Data.Allocations()", "@$cursession.Processes", "@$curprocess.Name"):
            check("dx.json", json.loads(output("dx", f"{scene}.xht", "-format", "json", query)), f"{query} of {scene}")
    check("dx.json", json.loads(output("dx", f"{SCENES[0]}.xht", "-format", "json", "@$cursession.TTD.Data.Heap().Average(h => h.Size)")), "an average")
    older = sorted((SOURCE / "tests/older").glob("*.xht"))
    expect(len(older) >= 20, f"only {len(older)} older traces")
    for path in older:
        check_trace(path, path.stem == "sampled", path.stem == "kept")
    return f"{len(SCENES) + len(older)} traces"


BUDGET = """peak <= 1 B varies 5%
blocks in app* except nothing <= 1 +5%
bytes self * thread * process * <= 1T
outstanding in nowhere <= 10 blocks
bytes in handle except paint <= 1T
"""


FAULT = """#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
	char *volatile p = malloc(5000);
	if (*words[1] == 'e') return 3;
	if (*words[1] == 'f' && fork()) { wait(NULL); abort(); }
	if (*words[1] == 'r') p = realloc(p + 16, 9000);
	free(p + 16);
	return 0; }
"""


def explanations():
    """Of addresses and of ends, with all that may be known."""
    older = SOURCE / "tests/older"
    for trace, *words in (("plain.xht",), ("ended.xht",), ("ended.xht", "-pid", "107"), ("plain.xht", "0x7f0000030010"), ("plain.xht", "0x7f0000010090", "4us"),
                          ("forks.xht", "0x7f0000020010", "-pid", "200"), (older / "reallocs.xht", address_of(older / "reallocs.xht"))):
        check("explain.json", json.loads(output("explain", trace, *words, "-format", "json")), f"explain {words} of {trace}")
    fault = pathlib.Path("fault.c")
    fault.write_text(FAULT)
    subprocess.run([os.environ.get("CC", "cc"), "-w", "-Wl,--build-id", "-o", "fault", fault], check=True)
    for way in ("inside", "forked", "exit", "resized"):
        xheap("record", "-q", "-o", f"{way}.xht", "./fault", way, status=None)
        last = json.loads(output("info", f"{way}.xht", "-format", "json"))["processes"][-1]["pid"]
        check("explain.json", json.loads(output("explain", f"{way}.xht", "-pid", last, "-format", "json")), f"explain of the end {way}")


def lost_blocks():
    """Of a program that loses some."""
    lose = pathlib.Path("lose.c")
    lose.write_text("#include <stdlib.h>\nstruct node { struct node *volatile next; } *volatile kept;\n"
                    "int main(void) { kept = malloc(100); kept = malloc(8); kept->next = malloc(9); kept = malloc(10); kept = (void *)((char *)malloc(50) + 8); return 0; }\n")
    subprocess.run([os.environ.get("CC", "cc"), "-w", "-fno-builtin", "-Wl,--build-id", "-o", "lose", lose], check=True)
    for words in (("-range", "0", "3600s"), (), ("-size", "1", "60")):
        check("leaks.json", json.loads(xheap("leaks", "--at-end", "-format", "json", *words, "--", "./lose", status=1)), f"leaks {words}")
    running = pathlib.Path("running.c")
    running.write_text("#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
                       "int main(void) { while (getchar() != EOF) { for (int i = 0; i < 9; i++) malloc(50); putchar(10); fflush(stdout); } return 0; }\n")
    subprocess.run([os.environ.get("CC", "cc"), "-w", "-fno-builtin", "-Wl,--build-id", "-o", "running", running], check=True)
    with subprocess.Popen("./running", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            xheap("start", "running", "-p", process.pid, "-o", "running.xht")
            process.stdin.write(b"x")
            process.stdin.flush()
            process.stdout.read(1)
            for words in ((), ("-looks", "2", "-every", "100ms")):
                check("leaks.json", json.loads(xheap("leaks", "-p", process.pid, "-format", "json", *words, status=None)), f"leaks -p {words}")
            stop_session("running")
        finally:
            process.kill()


def fleet():
    """Each question, by each group, with each filter, over two versions and a file that is none."""
    os.mkdir("profiles")
    stacks = pushed_files.Stacks([("web!kept", "web!main")])
    for version in ("1.4", "1.5"):
        for index in range(2):
            pushed_files.write("profiles", stacks, [(1, 100, 1, 100 * index)], version=version, host=f"h{version}", index=index)
    with open("profiles/none.pb.gz", "w") as file:
        file.write("none")
    for words in (["top"], ["top", "--by", "function"], ["top", "--by", "service", "--service", "web"], ["top", "--by", "host", "--host", "h1.4", "--version", "1.4"],
                  ["diff", "--after", "1.5", "--before", "1.4"], ["growth", "--last", "1h"], ["hosts", "kept"], ["versions"]):
        answer = json.loads(output("fleet", words[0], "profiles", *words[1:], "--format", "json"))
        check("fleet.json", answer, words)
        expect(answer["rows"] and answer["missing"], words)


def address_of(trace):
    """Of the block that the most reallocs made."""
    rows = [json.loads(line) for line in output("dump", trace, "-allocations", "-format", "json").splitlines()]
    return max((row for row in rows if "previous_id" in row), key=lambda row: row["previous_id"])["address"]


def checks():
    """A budget against one trace, several, and a sample."""
    pathlib.Path("all.budget").write_text(BUDGET)
    older = SOURCE / "tests/older"
    for traces in (["plain.xht"], ["plain.xht", "losses.xht"], [older / "sampled.xht"], [older / "forks.xht"], [older / "circular.xht"], [SOURCE / "tests/golden/traces/libcxx.xht"]):
        run = subprocess.run([XHEAP, "check", *map(str, traces), "--budget", "all.budget", "--format", "json"], stdout=subprocess.PIPE, text=True)
        expect(run.returncode == 1, f"check of {traces}: status {run.returncode}")
        check("check.json", json.loads(run.stdout), f"check of {traces}")
    run = subprocess.run([XHEAP, "check", "losses.xht", "plain.xht", "--fail-above", "1%", "--by", "function", "--least", "1", "--format", "json"], stdout=subprocess.PIPE, text=True)
    expect(run.returncode == 1, f"check with --fail-above: status {run.returncode}")
    check("check.json", json.loads(run.stdout), "check with --fail-above")
    # The program of the first trace was built over.
    for size in ("1", "2"):
        pathlib.Path("built.c").write_text(f"#include <stdlib.h>\nint main(void) {{ void *volatile p = malloc({size}); (void)p; return 0; }}\n")
        subprocess.run([os.environ.get("CC", "cc"), "-Wl,--build-id", "-o", "built", "built.c"], check=True)
        xheap("record", "-q", "-o", f"built{size}.xht", "./built")
    run = subprocess.run([XHEAP, "check", "built1.xht", "built2.xht", "--fail-above", "1%", "--format", "json"], stdout=subprocess.PIPE, text=True)
    check("check.json", json.loads(run.stdout), "check without names")


# ---- sessions ----

def query(name, *words):
    state = json.loads(output("query", name, *words, "--format", "json"))
    check("query.json", state, f"query {name} {words}")
    return state


def sessions_with(name):
    rows = json.loads(output("sessions", "--format", "json"))
    check("sessions.json", rows, "sessions")
    expect(any(row["name"] == name for row in rows), f"{name} is not in {rows}")


def target(*words):
    return subprocess.Popen([os.path.join(PROGRAMS, words[0]), *words[1:]], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def sessions():
    """One that records, keeps what lives, folds the rest, and whose logger is killed; and one without a process, whose file has no room any more."""
    program, busy = target("attached", "often", "2"), target("leaking", "0", "3", "0")
    try:
        xheap("start", NAME, "-o", "s.xht", "-p", f"{program.pid},{busy.pid}", "--keep", "live", "--max-file", "1M", "--flush-timer", "100ms", "--wait-limit", "60s")
        wait_for("threads with events", lambda: all(row["thread_rows"] for row in query(NAME, "--threads")["targets"]))
        wait_for("folding", lambda: query(NAME).get("folded_bytes"), 60, 0.1)
        sessions_with(NAME)
        os.kill(query(NAME)["logger_pid"], signal.SIGKILL)
        wait_for("end of the logger", lambda: "is gone" in xheap("sessions"))
        sessions_with(NAME)
        said = xheap("recover", "s.xht", status=None)
        expect("lives" not in said, f"the killed logger is in the way: {said}")
    finally:
        busy.kill()
        busy.wait()
    try:
        xheap("start", NAME, "-o", "full.xht", "-p", program.pid, "--max-file", "64K")
        query(NAME)
        # A directory that is not there: a trouble, and a profile that is dropped.
        xheap("push", NAME, f"file:{os.path.abspath('no-directory')}", "--once", status=None)
        expect(query(NAME)["push"]["error"], "no trouble of a push is told")
        state = wait_for("end of the file", lambda: (state := query(NAME)).get("calls_after_end") and state, 60, 0.1)
        expect("greatest size" in state["error"], f"{state['error']}")
        sessions_with(NAME)
    finally:
        stop_session(NAME)
        program.kill()
        program.wait()


def images():
    """Registered images, a file with a mistake, and a time without a watcher; nobody watches here."""
    root = os.path.abspath("images")
    for directory in ("etc/xheap/image.d", "run/xheap-images"):
        os.makedirs(f"{root}/{directory}", mode=0o755)
    os.chmod(root, 0o755)
    with open(f"{root}/run/xheap-images/status", "w") as file:
        file.write("intervals=1\ninterval.0=1 2 1\noptions=0\nunwatched=1\nunwatched.0.namespace=1\nunwatched.0.pid=2\nunwatched.0.place=/mnt\nunwatched.0.why=x\n")
    with open(f"{root}/etc/xheap/image.d/bad.conf", "w") as file:
        file.write("[image]\nImage = a/b\n")
    os.environ["XHEAP_IMAGE_ROOT"] = root
    try:
        xheap("image", "add", "perl", "--first", "3")
        state = json.loads(output("image", "list", "--format", "json"))
    finally:
        del os.environ["XHEAP_IMAGE_ROOT"]
    check("images.json", state, "image list")
    expect(len(state["images"]) == len(state["mistakes"]) == len(state["intervals"]) == len(state["not_watched"]) == 1, f"{state}")


def autologgers():
    """One that was never started, and one whose file has a mistake and whose last start is known."""
    root = pathlib.Path("autologgers").absolute()
    files, states = root / "etc/xheap/autologger.d", root / "var/lib/xheap/autologger"
    for directory in (files, states):
        directory.mkdir(parents=True)
    (files / "bad.conf").write_text("[autologger]\nStart = 2\n")
    (states / "bad.status").write_text("Status=0\ntext=\nat_s=1700000000\n")
    os.environ["XHEAP_IMAGE_ROOT"] = str(root)
    try:
        xheap("autologger", "add", "good")
        rows = json.loads(output("autologger", "list", "--format", "json"))
    finally:
        del os.environ["XHEAP_IMAGE_ROOT"]
    check("autologgers.json", rows, "autologger list")
    expect([row["valid"] for row in rows] == [False, True] and rows[0]["started_s"] == 1700000000, f"{rows}")


def everything():
    """No schema has keys that no output above has: they may be no more."""
    known = {(file, name, key) for file in SCHEMAS for name, schema in objects(file) for key in schema["properties"]}
    unseen = {(file, name, key) for file, names in UNSEEN.items() for name, keys in names.items() for key in keys}
    expect(not unseen - known, f"UNSEEN names what no schema has: {sorted(unseen - known)}")
    expect(not known - seen - unseen, f"no output has {sorted(known - seen - unseen)}")
    return f"{len(seen)} keys, {len(known - seen)} more are not seen here"


sys.exit(run_tests(documented, refused, frames, traces, explanations, lost_blocks, fleet, checks, compare_split, sessions, images, autologgers, everything))
