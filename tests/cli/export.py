#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap export: each figure that a format can hold, stack by stack, is that of xheap heap. The readers here share no code with the writers."""
import collections
import contextlib
import csv
import gzip
import io
import json
import os
import pathlib
import pty
import random
import re
import shutil
import subprocess
import sys
import time

from protobuf import fields, many, numbers

XHEAP, BUILD, SOURCE = os.environ["XHEAP"], os.environ["BUILD"], pathlib.Path(os.environ["SOURCE"])
TRACES = SOURCE / "tests/golden/traces"
FIGURES = ["total_count", "total_bytes", "outstanding_count", "outstanding_bytes", "peak_count", "peak_bytes"]


def expect(condition, what):
    if not condition:
        sys.exit(what)


def xheap(*words, status=0):
    run = subprocess.run([XHEAP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    expect(run.returncode == status, f"{words}: {run.returncode}: {run.stderr.decode()}")
    return run


# ---- what is right ----

def text_of(frame):
    return frame.get("symbol") or (f"{frame['image']}+{frame['offset']}" if "image" in frame else frame.get("mark", "[no image]"))


def figures_of_heap(trace, figures, options):
    """By figure: the number of each stack, whose frames are from outside in."""
    report = json.loads(xheap("heap", trace, "-stacks", "-top", 1 << 40, "-format", "json", *options).stdout)
    found = {figure: collections.Counter() for figure in figures}
    for row in report["actions"][0]["rows"]:
        outer = [row[by] for by in ("process", "thread", "size") if by in row]
        stack = tuple(outer + [text_of(frame) for frame in reversed(row["stack"])] or ["[no stack]"])
        for figure in figures:
            found[figure][stack] += row.get(figure, 0)
    return found, report["totals"]


# ---- pprof ----

def read_pprof(data):
    profile = collections.defaultdict(list)
    for field, value in fields(gzip.decompress(data)):
        profile[field].append(value)
    strings = [text.decode() for text in profile[6]]
    expect(strings[0] == "", "the first string is not empty")
    types = [strings[dict(fields(value))[1]] for value in profile[1]]
    functions = {message[1]: strings[message[2]] for message in map(dict, map(fields, profile[5]))}
    mappings = {message[1]: message for message in map(dict, map(fields, profile[3]))}
    locations = {}
    for value in profile[4]:
        message = collections.defaultdict(list)
        for field, part in fields(value):
            message[field].append(part)
        expect(message.get(2, [None])[0] in (None, *mappings), "a location has no mapping")
        locations[message[1][0]] = [functions[dict(fields(line))[1]] for line in message[4]]
    expect(all(mapping[2] < mapping[3] and strings[mapping[5]] for mapping in mappings.values()), "a mapping is empty")
    expect(strings[profile[14][0]] == types[-1] == "inuse_space", "the default is not inuse_space")
    found = [collections.Counter() for _ in types]
    labels = set()
    for value in profile[2]:
        sample = collections.defaultdict(list)
        for field, part in fields(value):
            sample[field].append(part)
        outer = []
        for label in map(dict, map(fields, sample[3])):
            labels.add(strings[label[1]])
            outer += [strings[label[2]]] if 2 in label else []
        stack = [name for location in numbers(sample[1][0]) for name in locations[location]]
        for counter, part in zip(found, numbers(sample[2][0]), strict=True):
            counter[tuple(outer + stack[::-1])] += part
    expect(types == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"], f"sample types {types}")
    return dict(zip(FIGURES, found)), labels


# ---- otlp ----

def read_otlp(data):
    request = many(data)
    tables = many(request[2][0])
    strings = [text.decode() for text in tables[5]]
    functions = [strings[dict(fields(function)).get(1, 0)] for function in tables[3]]
    locations = [[functions[dict(fields(line))[1]] for line in many(location)[3]] for location in tables[2]]
    stacks = [[name for location in numbers(many(stack)[1][0]) for name in locations[location]] if stack else [] for stack in tables[7]]
    attributes = [dict(fields(dict(fields(attribute)).get(2, b""))).get(1, b"").decode() for attribute in tables[6]]
    types, found = [], []
    scope = many(many(request[1][0])[2][0])
    for profile in map(many, scope[2]):
        types.append(strings[dict(fields(profile[1][0]))[1]])
        found.append(collections.Counter())
        for sample in map(many, profile[2]):
            outer = [attributes[at] for part in sample[2] for at in numbers(part)]
            found[-1][tuple(outer + stacks[sample[1][0]][::-1])] += numbers(sample[4][0])[0]
    expect(types == ["alloc_space", "alloc_objects", "inuse_space", "inuse_objects"], f"types {types}")
    return {figure: found[at] for figure, at in zip(FIGURES, (1, 0, 3, 2))}, set()


# ---- folded ----

def read_folded(data):
    found = collections.Counter()
    for line in data.decode().splitlines():
        stack, number = line.rsplit(" ", 1)
        found[tuple(frame.split("!", 1)[-1] for frame in stack.split(";"))] += int(number)
    return {"outstanding_bytes": found}, set()


# ---- speedscope ----

def read_speedscope(data):
    scope = json.loads(data)
    names = {"outstanding bytes": "outstanding_bytes", "bytes at the peak": "peak_bytes", "total bytes": "total_bytes", "outstanding blocks": "outstanding_count",
             "blocks at the peak": "peak_count", "total blocks": "total_count"}
    found = {}
    for profile in scope["profiles"]:
        counter = found[names[profile["name"]]] = collections.Counter()
        expect(profile["type"] == "sampled" and profile["unit"] == ("bytes" if "bytes" in profile["name"] else "none"), f"profile {profile['name']}")
        expect(profile["endValue"] - profile["startValue"] == sum(profile["weights"]), f"{profile['name']} ends elsewhere")
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            counter[tuple(scope["shared"]["frames"][frame]["name"] for frame in stack)] += weight
    return {figure: found[figure] for figure in FIGURES}, set()


# ---- callgrind ----

def read_callgrind(data):
    """What functions cost by themselves, and with all that they call; levels of a recursion are one function."""
    lines = data.decode().splitlines()
    head = dict(line.split(": ", 1) for line in lines[1:lines.index("")])
    events = head["events"].split()
    sums = [int(word) for word in head["summary"].split()]
    figure_of = [re.sub("(Outstanding|Peak|Total)(Bytes|Blocks)", lambda match: f"{match[1].lower()}_{ {'Bytes': 'bytes', 'Blocks': 'count'}[match[2]]}", event) for event in events]
    names, found = {}, {figure: collections.Counter() for figure in FIGURES}

    def name(key, text):
        number, _, said = text.partition(") ")
        kind, number = {"cfi": "fl", "cob": "ob", "cfn": "fn"}.get(key, key), number.strip("()")
        expect(bool(said) == ((kind, number) not in names), f"callgrind: {key}={text}")
        return names.setdefault((kind, number), said)

    is_call = False
    for line in lines[lines.index(""):]:
        key, _, text = line.partition("=")
        if key in ("fn", "cfn", "fl", "cfi", "ob", "cob"):
            said = name(key, text)
            if key == "fn":
                function, level = re.fullmatch(r"(.*?)('\d+)?", said).groups()
        elif key == "calls":
            is_call = True
        elif line:
            for figure, cost in zip(figure_of, line.split()[1:], strict=True):
                if not is_call:
                    found[figure][("self", function)] += int(cost)
                if not level:
                    found[figure][("all", function)] += int(cost)
            is_call = False
    for figure, total in zip(figure_of, sums, strict=True):
        expect(sum(cost for (kind, _), cost in found[figure].items() if kind == "self") == total, f"callgrind: the summary says {total}")
    return found, set()


def by_function(stacks):
    found = collections.Counter()
    for stack, number in stacks.items():
        found[("self", stack[-1])] += number
        for function in set(stack):
            found[("all", function)] += number
    return found


# ---- heaptrack ----

def read_heaptrack(data):
    """Blocks one by one: what remains is outstanding, and the most that was live at once is the peak."""
    lines = iter(data.decode().split("\n"))
    expect(next(lines) == "v 10400 3", "heaptrack: the version")
    texts, places, traces, kinds = [""], [()], [()], []
    found = {figure: collections.Counter() for figure in FIGURES}
    most = live = time = 0
    live_of, most_of = collections.Counter(), collections.Counter()
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind in ("X", "I", ""):
            continue
        if kind == "s":
            size, _, text = rest.partition(" ")
            expect(int(size, 16) == len(text.encode()), f"heaptrack: a text of {size}: {text[:40]}")
            texts.append(text)
            continue
        numbers = [int(word, 16) for word in rest.split()]
        if kind == "i":
            places.append(tuple(texts[function] for function in numbers[2::3]))
        elif kind == "t":
            traces.append(traces[numbers[1]] + places[numbers[0]][::-1])
        elif kind == "a":
            kinds.append((numbers[0], numbers[1]))
        elif kind == "c":
            expect(numbers[0] >= time, "heaptrack: times go back")
            time = numbers[0]
        else:
            size, trace = kinds[numbers[0]]
            stack = traces[trace]
            sign = {"+": 1, "-": -1}[kind]
            found["total_count"][stack] += kind == "+"
            found["total_bytes"][stack] += size if kind == "+" else 0
            found["outstanding_count"][stack] += sign
            found["outstanding_bytes"][stack] += sign * size
            live_of[trace] += sign * size
            most_of[trace] = max(most_of[trace], live_of[trace])
            live += sign * size
            most = max(most, live)
    read_heaptrack.most, read_heaptrack.most_of = most, most_of
    return {figure: found[figure] for figure in FIGURES[:4]}, set()


# ---- Firefox ----

def read_firefox(data):
    """Blocks by their addresses. What is given back has the stack that freed it."""
    profile = json.loads(data)
    shared, strings = profile["shared"], profile["shared"]["stringArray"]
    expect(profile["meta"]["preprocessedProfileVersion"] == 70 and profile["meta"]["version"] == 36, "firefox: the version")
    tables = [shared[name] for name in ("stackTable", "frameTable", "funcTable", "resourceTable", "sources", "nativeSymbols", "sourceLocationTable")]
    for table in tables + [part for thread in profile["threads"] for part in (thread["samples"], thread["markers"], thread.get("nativeAllocations", {"length": 0}))]:
        expect(all(len(column) == table["length"] for column in table.values() if isinstance(column, list)), f"firefox: columns of {list(table)}")
    names = [strings[function] for function in shared["funcTable"]["name"]]
    stacks = []
    for i, (frame, prefix) in enumerate(zip(shared["stackTable"]["frame"], shared["stackTable"]["prefixOffset"])):
        expect(0 <= prefix <= i, "firefox: a stack before its caller")
        stacks.append((stacks[i - prefix] if prefix else ()) + (names[shared["frameTable"]["func"][frame]],))
    found = {figure: collections.Counter() for figure in FIGURES[:4]}
    sums = {}
    for index, thread in enumerate(profile["threads"]):
        expect(("nativeAllocations" in thread) == thread["isMainThread"], "firefox: blocks of a thread that is not its process's main one")
        blocks, live, last = thread.get("nativeAllocations", {"length": 0}), {}, 0
        for i in range(blocks["length"]):
            weight, key = blocks["weight"][i], blocks.get("memoryAddress", [None])[i if "memoryAddress" in blocks else 0]
            expect(blocks["time"][i] >= last, "firefox: times go back")
            last = blocks["time"][i]
            sums[index] = sums.get(index, 0) + weight
            # An empty block has the weight 0 at both its points.
            if weight > 0 or (not weight and key not in live):
                stack = stacks[blocks["stack"][i]]
                live[key] = (weight, stack)
                found["total_count"][stack] += 1
                found["total_bytes"][stack] += weight
            else:
                size, stack = live.pop(key)
                expect(size == -weight, f"firefox: {size} bytes at {key:x}, {-weight} are given back")
                found["outstanding_count"][stack] -= 1
                found["outstanding_bytes"][stack] -= size
    for figure in ("count", "bytes"):
        for stack, number in found[f"total_{figure}"].items():
            found[f"outstanding_{figure}"][stack] += number
    for counter in profile["counters"]:
        if counter["name"] == "malloc":
            expect(sum(counter["samples"]["count"]) == sums[counter["mainThreadIndex"]], "firefox: the curve ends elsewhere")
    return found, set()


# ---- DHAT ----

def read_dhat(data):
    dhat = json.loads(data)
    expect(dhat["dhatFileVersion"] == 2 and dhat["mode"] == "heap" and dhat["bklt"] and not dhat["bkacc"] and dhat["ftbl"][0] == "[root]", "dhat: the head")
    keys = dict(zip(FIGURES, ("tbk", "tb", "ebk", "eb", "gbk", "gb")))
    found = {figure: collections.Counter() for figure in FIGURES}
    read_dhat.most_of = collections.Counter()
    expect(len({tuple(point["fs"]) for point in dhat["pps"]}) == len(dhat["pps"]), "dhat: a stack is there twice")
    for point in dhat["pps"]:
        # "0x12AB: function (file:line)" or "... (in image)"
        stack = tuple(re.sub(r"^0x[0-9A-F]+: | \((?:in [^()]*|[^()]*:\d+)\)$", "", dhat["ftbl"][frame]) for frame in reversed(point["fs"]))
        expect(point["mb"] <= point["tb"] and point["mbk"] <= point["tbk"], f"dhat: {point}")
        for figure, key in keys.items():
            found[figure][stack] += point[key]
    read_dhat.lifetimes_us = sum(point["tl"] for point in dhat["pps"])
    read_dhat.points = [(point["mb"], point["tb"]) for point in dhat["pps"]]
    return found, set()


def check_blocks(trace):
    """The events of a trace of one process have its peak; the lifetimes of DHAT are those of all blocks."""
    _, totals = figures_of_heap(trace, FIGURES, [])
    read_heaptrack(xheap("export", trace, "-format", "heaptrack").stdout)
    expect(read_heaptrack.most == totals["peak_bytes"], f"{trace.name}: the events have a peak of {read_heaptrack.most}, not {totals['peak_bytes']}")
    read_dhat(xheap("export", trace, "-format", "dhat").stdout)
    blocks = list(csv.DictReader(io.StringIO(xheap("dump", trace, "-allocations", "-format", "csv").stdout.decode())))
    lifetimes_us = sum(int(block["lifetime_ns"]) // 1000 for block in blocks)
    expect(read_dhat.lifetimes_us == lifetimes_us, f"{trace.name}: DHAT has lifetimes of {read_dhat.lifetimes_us}, not {lifetimes_us}")
    expect(sorted(most for most, total in read_dhat.points if total) == sorted(most for most in read_heaptrack.most_of.values()),
           f"{trace.name}: the most of each stack differs between DHAT and heaptrack")


def check_findings(trace):
    """The markers of Firefox are the findings of xheap report, at their times; their texts have the lines of functions, too."""
    profile = json.loads(xheap("export", trace, "-format", "firefox").stdout)
    report = json.loads(xheap("report", trace, "-format", "json").stdout)
    found = []
    for thread in profile["threads"]:
        markers = thread["markers"]
        for i, data in enumerate(markers["data"]):
            expect((markers["endTime"][i] is None) == (markers["phase"][i] == 0), f"{trace.name}: marker {i} of {markers}")
            if data["type"] == "Finding":
                expect(thread["isMainThread"], f"{trace.name}: a finding of a thread")
                found.append(data["command"])
                if "of the peak" in data["text"]:
                    peak_ms = report["totals"]["peak_at_us"] / 1000
                    expect(abs(markers["startTime"][i] - peak_ms) < 1e-5 and not markers["phase"][i], f"{trace.name}: the peak is at {markers['startTime'][i]}, not {peak_ms}")
    # Its functions are apart by line already.
    expect(found and sorted(found) == sorted(finding["command"].replace(" -lines", "") for finding in report["findings"]), f"{trace.name}: findings {found}, not {report['findings']}")


# By format: its reader, the figures that it holds, the options of xheap heap that show its frames, and what becomes of the stacks.
FORMATS = {
    "pprof": (read_pprof, FIGURES[:4], ["-lines"], dict),
    "otlp": (read_otlp, FIGURES[:4], ["-lines"], dict),
    "speedscope": (read_speedscope, FIGURES, [], dict),
    "callgrind": (read_callgrind, FIGURES, ["-lines"], by_function),
    "firefox": (read_firefox, FIGURES[:4], ["-lines"], dict),
    "heaptrack": (read_heaptrack, FIGURES[:4], ["-lines"], dict),
    "dhat": (read_dhat, FIGURES, ["-lines"], dict),
    "folded": (read_folded, ["outstanding_bytes"], ["-noDefaultCull"], dict),
}
OPTIONS = (
    [], ["-range", "0", "10ms"], ["-size", "100", "5000"], ["-by", "process"], ["-by", "thread"], ["-by", "size"], ["-at", "5ms"], ["-requireFrames", "main"],
    ["-cullFrames", "main"],
)


def check_format(name, trace, options):
    read, figures, shown, fold = FORMATS[name]
    run = xheap("export", trace, "-format", name, *options)
    found, labels = read(run.stdout)
    wanted, totals = figures_of_heap(trace, figures, shown + options)
    by = options[1] if options[:1] == ["-by"] else None
    expect(name != "pprof" or labels == {"bytes", *([by] if by else []), *{"process": ["pid"], "thread": ["pid", "tid"]}.get(by, [])}, f"{trace.name}: labels {labels}")
    expect(list(found) == figures, f"{name}: figures {list(found)}")
    for figure in figures:
        expect(sum(wanted[figure].values()) == totals.get(figure, 0), f"{trace.name} {options}: the rows of heap have not {figure} {totals[figure]}")
        right = collections.Counter(fold(plain(wanted[figure])))
        different = {stack: (found[figure][stack], right[stack]) for stack in found[figure] | right if found[figure][stack] != right[stack]}
        expect(not different, f"{name} {trace.name} {options}: {figure} of {len(different)} stacks: {list(different.items())[:2]}")
    said = run.stderr.decode().splitlines()
    expect(len([line for line in said if f"{name} has no " in line]) == (name != "folded"), f"{name}: {said}")


# ---- names of strangers ----

HOSTILE = [b"f", b"g", b"f", b'a "quoted" name', b"back\\slash\\", b"semi;colon", b"fn=(1) other", b"(7) parenthesis", b"calls=1 1", b"%s%n", b"</script>", b"-1 2 3",
           b"+ 5", b"#comment", b"bad \xff\xfe utf-8 \xc3", b"\xed\xa0\x80", b"bell\x07 and \x1b[2J", b"\r", b" blanks ", "名前".encode(), b"x" * 10000, b"'", b"{", b"]}", b"[root]",
           b"0x12: f (a.c:3)", b"name\tfile \"quoted\" \\ \xff.c\t17", b"name\t/a file;with.c\t4294967295", b"a\x00"]


def plain(stacks):
    """Bytes and characters that are no text are a question mark in formats of tools, while JSON keeps them."""
    found = collections.Counter()
    for stack, number in stacks.items():
        found[tuple(re.sub("[\0-\x1f\x7f\ufffd]", "?", frame) for frame in stack)] += number
    return found


def check_hostile(count):
    """Each round has the names of the list, and random bytes."""
    for round in range(count):
        source = random.Random(round)
        names = source.sample(HOSTILE, len(HOSTILE)) + [bytes(source.choice(b"f;\\\"'(){}=%\x01\x80\xc3\xb6 12") for _ in range(source.randrange(1, 40))) for _ in range(20)]
        lines = [name.replace(b"\n", b"").replace(b"\0", b"") for name in names]
        subprocess.run([f"{BUILD}/tests/golden/make_names", f"hostile{round}.xht"], input=b"\n".join(lines), check=True)
        for name in FORMATS:
            if name != "folded":
                check_format(name, pathlib.Path(f"hostile{round}.xht"), ["-noDefaultCull"])


def check_many():
    """Firefox has sums above two million blocks, and the command says what is lost."""
    if not shutil.which("perl"):
        print("not checked without perl: more than two million blocks")
        return
    xheap("record", "-q", "-o", "many.xht", "perl", "-e", "for (1..110) { my @a = map { 'x' x 300 } 1..20000 }")
    run = xheap("export", "many.xht", "-format", "firefox")
    totals = json.loads(xheap("heap", "many.xht", "-totals", "-format", "json").stdout)["totals"]
    expect(totals["total_count"] > 2000000 and b"blocks are more than firefox takes" in run.stderr, f"{totals['total_count']} blocks: {run.stderr.decode()}")
    blocks = json.loads(run.stdout)["threads"][0]["nativeAllocations"]
    expect("memoryAddress" not in blocks and blocks["length"] < 1000000, f"firefox: {list(blocks)}, {blocks['length']} events")
    expect(sum(weight for weight in blocks["weight"] if weight > 0) == totals["total_bytes"], "firefox: the sums are not the total")
    expect(sum(blocks["weight"]) == totals["outstanding_bytes"], "firefox: the sums are not what is outstanding")
    check_progress()


def check_progress():
    """A reader that is slow in the beginning: somebody at a terminal sees how far it is, and then no more of it."""
    terminal, own = pty.openpty()
    export = subprocess.Popen([XHEAP, "export", "many.xht", "-format", "heaptrack"], stdout=subprocess.PIPE, stderr=own)
    os.close(own)
    time.sleep(0.5)
    written, said = export.stdout.read(), b""
    expect(export.wait() == 0 and written, f"heaptrack: {export.returncode}")
    # The end of a terminal is an error.
    with contextlib.suppress(OSError):
        while more := os.read(terminal, 4096):
            said += more
    shown = [int(percent) for percent in re.findall(rb"\rwriting: (\d+) %", said)]
    expect(shown and shown == sorted(shown) and shown[-1] <= 100, f"the progress is {said}")
    expect(b"writing" not in said.split(b"\r\x1b[K")[-1], f"the progress stays: {said}")


def check_words():
    trace = TRACES / "c.xht"
    for words, wanted in ((["export", trace], "-format is missing"), (["export", trace, "-format", "flame"], "pprof"),
                          (["heap", trace, "-format", "pprof"], "xheap export -format pprof"), (["export", trace, "-format", "pprof", "-o", trace], "one of the files")):
        expect(wanted in xheap(*words, status=2).stderr.decode(), f"{words} does not say {wanted!r}")
    expect(not xheap("export", trace, "-format", "pprof", "-o", "out.pb.gz").stdout and pathlib.Path("out.pb.gz").read_bytes()[:2] == b"\x1f\x8b", "-o: no profile")
    for name in ("heaptrack", "dhat", "firefox"):
        for words, wanted in (([TRACES / "python.xht"], "is a sample"), ([trace, "-innermost"], "-innermost")):
            said = xheap("export", *words, "-format", name, "-o", "out", status=2).stderr.decode()
            expect(wanted in said and not pathlib.Path("out").exists(), f"{name} {words}: {said}")
    content = trace.read_bytes()
    pathlib.Path("cut.xht").write_bytes(content[:len(content) * 3 // 4])
    said = xheap("export", "cut.xht", "-format", "callgrind", "-o", "cut.callgrind").stderr.decode()
    expect("the trace is cut at byte " in said, f"a cut trace: {said}")
    # A disk that is full after the first bytes.
    for name in FORMATS:
        os.mkdir(f"full-{name}")
        words = ["sh", "-c", f"ulimit -f 1; trap '' XFSZ; exec \"$0\" \"$@\" -o full-{name}/out", XHEAP, "export", TRACES / "libstdcxx.xht", "-format", name]
        run = subprocess.run(words, stderr=subprocess.PIPE, text=True)
        expect(run.returncode == 2 and "cannot write" in run.stderr and "has no" not in run.stderr, f"{name} on a full disk: {run.returncode}: {run.stderr}")
        expect(not os.listdir(f"full-{name}"), f"{name} on a full disk leaves {os.listdir(f'full-{name}')}")
    full = xheap("export", trace, "-format", "pprof", "-o", "/dev/full", status=2).stderr.decode()
    expect("No space left" in full and "has no" not in full, full)


def unpacked(path):
    """What the compressor's own program makes of the file."""
    program = {".gz": ["gzip", "-dc"], ".zst": ["zstd", "-dqc"]}[path.suffix]
    done = subprocess.run([*program, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    expect(done.returncode == 0, f"{path}: {done.stderr.decode()}")
    return done.stdout


def check_compressed():
    """A file is compressed as its name says, whatever the format is; a name that promises something else is refused, and nothing is written."""
    trace, folder = TRACES / "libstdcxx.xht", pathlib.Path("compressed")
    folder.mkdir()
    commands = [["export", trace, "-format", name] for name in FORMATS if name not in ("pprof", "folded")]
    commands += [["heap", trace, "-stacks", "-format", name] for name in ("json", "csv", "folded")] + [["heap", trace, "-map"], ["report", trace], ["diff", trace, TRACES / "rust.xht"],
                 ["dump", trace, "-allocations", "-format", "csv"], ["dump", trace]]
    for words in commands:
        plain = folder / "plain"
        xheap(*words, "-o", plain)
        for end in (".gz", ".zst"):
            path = folder / f"file{end}"
            xheap(*words, "-o", path)
            # Each file of otlp has an id of its own.
            found, wanted = unpacked(path), plain.read_bytes()
            expect(wanted and (len(found) == len(wanted) if "otlp" in words else found == wanted), f"{words} -o {path}: other content")
            path.unlink()
        plain.unlink()
        for end in (".xz", ".bz2", ".zstd", ".zip"):
            said = xheap(*words, "-o", folder / f"file{end}", status=2).stderr.decode()
            expect(f"file{end}: such a file is not written" in said and said.count("\n") == 1 and not os.listdir(folder), f"{words} {end}: {said}")
    # By itself a file of gzip: it is not compressed twice.
    pprof = folder / "file.pb.gz"
    xheap("export", trace, "-format", "pprof", "-o", pprof)
    expect(unpacked(pprof)[:1] == b"\x0a" and pprof.read_bytes() == xheap("export", trace, "-format", "pprof").stdout, "pprof with .gz")
    pprof.unlink()
    for words, message in ((["export", trace, "-format", "pprof", "-o", folder / "file.pb.zst"], "the format is a file of gzip"), (["report", trace, "-format", "html", "-o", folder / "page.html.gz"], "a page is not compressed"),
                           (["view", trace, "--html", folder / "page.html.zst"], "a page is not compressed")):
        said = xheap(*words, status=2).stderr.decode()
        expect(message in said and not os.listdir(folder), f"{words}: {said}")
    for end in (".gz", ".zst"):
        words = ["sh", "-c", f"ulimit -f 1; trap '' XFSZ; exec \"$0\" \"$@\" -o {folder}/out{end}", XHEAP, "dump", trace, "-format", "csv"]
        run = subprocess.run(words, stderr=subprocess.PIPE, text=True)
        expect(run.returncode == 2 and "cannot write" in run.stderr and not os.listdir(folder), f"{end} on a full disk: {run.returncode}: {run.stderr}")


def main():
    check_words()
    check_compressed()
    for name in FORMATS:
        for trace in (TRACES / "libstdcxx.xht", TRACES / "processes.xht", TRACES / "rust.xht"):
            for options in OPTIONS if trace.name == "processes.xht" else OPTIONS[:1]:
                # A number at the end of a folded frame would be one of the line.
                if (name, *options) != ("folded", "-by", "thread"):
                    check_format(name, trace, options)
    for trace in (TRACES / "libstdcxx.xht", TRACES / "c.xht", TRACES / "rust.xht"):
        check_blocks(trace)
        check_findings(trace)
    # Blocks from before an attach, annotated heaps, sums in place of events, a sample.
    for trace in ("attached.xht", "annotated.xht", "kept.xht", "sampled.xht"):
        for name in ("pprof", "otlp", "speedscope", "callgrind"):
            check_format(name, SOURCE / "tests/older" / trace, [])
    check_format("speedscope", SOURCE / "tests/older/annotated.xht", ["-innermost"])
    check_hostile(int(os.environ.get("ROUNDS", 3)))
    check_many()
    print(f"{len(FORMATS)} formats")


if __name__ == "__main__":
    main()
