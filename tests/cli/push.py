#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap push and start --push: what arrives, added up, is what xheap heap says of the trace; a server that fails, hangs, refuses or talks nonsense, one that is not there;
a queue that is full; words that are wrong."""
import collections
import contextlib
import gzip
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

XHEAP, SOURCE = os.environ["XHEAP"], pathlib.Path(os.environ["SOURCE"])
sys.path.insert(0, str(SOURCE / "tests/cli"))
sys.path.insert(0, str(SOURCE / "tests/live"))
sys.path.insert(0, str(SOURCE / "tests/python"))
import packages  # noqa: E402
from protobuf import fields, numbers  # noqa: E402
from pushing import PROGRAM, Server, Target, answer_of, expect, nonsense, of_otlp, run, until  # noqa: E402

os.environ["XDG_STATE_HOME"] = str(pathlib.Path("state").absolute())
os.environ.pop("OTEL_RESOURCE_ATTRIBUTES", None)
os.environ.pop("http_proxy", None)
SENDER = pathlib.Path(XHEAP).with_name("xheap-send")

# Kills the program it is loaded into at its KILL_AT-th change of a file, once its queue is open.
KILLER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int left = -1;
static void step(void)
{
	if (left > 0 && !--left)
		kill(getpid(), SIGKILL);
}
#define NEXT(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))
int openat64(int directory, const char *name, int flags, ...)
{
	if (flags & O_CREAT)
		step();
	int made = NEXT(openat64)(directory, name, flags, 0600);
	if (left < 0 && !strcmp(name, "lock"))
		left = atoi(getenv("KILL_AT"));
	return made;
}
int openat(int directory, const char *name, int flags, ...) __attribute__((alias("openat64")));
ssize_t write(int file, const void *bytes, size_t size)
{
	step();
	return NEXT(write)(file, bytes, size);
}
int renameat(int from, const char *name, int to, const char *other)
{
	step();
	return NEXT(renameat)(from, name, to, other);
}
int rename(const char *name, const char *other)
{
	step();
	return NEXT(rename)(name, other);
}
int unlinkat(int directory, const char *name, int flags)
{
	step();
	return NEXT(unlinkat)(directory, name, flags);
}
"""


# ---- what arrives ----

def figures_of_heap(trace):
    report = json.loads(run("heap", trace, "-frames", "-inclusive", "-format", "json").stdout)
    rows = {row["frame"].get("symbol"): row for row in report["actions"][0]["rows"]}
    return {(figure, name): rows[name][key] for name in ("kept", "dropped")
            for figure, key in (("alloc_objects", "total_count"), ("alloc_space", "total_bytes"), ("inuse_objects", "outstanding_count"), ("inuse_space", "outstanding_bytes"))}


def check_sums():
    """Three profiles: totals add up, what is in use is that of the last one; so for an exact trace, and for a sample. Then labels and a token."""
    for name, options in (("exact", ()), ("sampled", ("--sample", "2K"))):
        server = Server()
        target = Target(name, "-o", f"{name}.xht", *options)
        pathlib.Path("token").write_text("secret\nmore\n")
        os.chmod("token", 0o600)
        push = subprocess.Popen([XHEAP, "push", name, f"otlp+http://127.0.0.1:{server.port}", "--every", "2s", "--service", "steps", "--label", "team=memory", "--token-file", "token"])
        for count in (1, 2):
            target.step()
            until(lambda: sum(of_otlp(body)[0]["alloc_objects", "kept"] for _, _, body in server.requests) > 900 * count, lambda: f"{len(server.requests)} profiles")
        target.step()
        target.stop()
        expect(push.wait(60) == 0, f"push ends with {push.returncode}")
        wanted, sums = figures_of_heap(f"{name}.xht"), collections.Counter()
        for path, headers, body in server.requests:
            figures, labels = of_otlp(body)
            expect(path == "/v1development/profiles" and headers["Content-Type"] == "application/x-protobuf" and headers["Authorization"] == "Bearer secret", f"{path} {headers}")
            expect(labels["service.name"] == "steps" and labels["team"] == "memory" and labels["host.name"] == socket.gethostname(), f"labels {labels}")
            expect(re.fullmatch("[0-9a-f]{8,}", labels["service.version"]), f"labels {labels}")
            for key, value in figures.items():
                sums[key] += value if key[0].startswith("alloc") else 0
        for key, value in figures.items():
            sums[key] = value if key[0].startswith("inuse") else sums[key]
        # A sample's estimates are rounded in each profile.
        for key, value in wanted.items():
            expect(abs(sums[key] - value) <= (len(server.requests) if options else 0), f"{name}: {key} {sums[key]}, not {value}, in {len(server.requests)} profiles")
        server.close()


def check_context():
    """A process that publishes what it is, as OpenTelemetry's SDKs do: that is said before what is found, and after what the user says."""
    from opentelemetry.proto.resource.v1 import resource_pb2
    resource = resource_pb2.Resource()
    for key, value in (("service.name", "shop"), ("service.version", "2.5"), ("host.name", "elsewhere"), ("team", "theirs"), ("xheap.push.number", "77")):
        one = resource.attributes.add()
        one.key, one.value.string_value = key, value
    message = resource.SerializeToString()
    pathlib.Path("context").write_bytes(b"\x0a" + bytes([len(message) & 127 | 128, len(message) >> 7]) + message)
    server = Server()
    target = Target("context", "-o", "context.xht", words=["context"])
    target.step()
    run("push", "context", f"otlp+http://127.0.0.1:{server.port}", "--once", "--label", "team=ours")
    os.mkdir("told")
    run("push", "context", f"file:{os.path.abspath('told')}", "--once")
    file, = os.listdir("told")
    body = gzip.decompress(pathlib.Path("told", file).read_bytes())
    expect(b"team=theirs" in body and b"xheap.push.number=77" not in body and b"xheap.push.number=" in body, "a process says which push it is")
    target.stop()
    labels = of_otlp(server.requests[0][2])[1]
    wanted = {"service.name": "shop", "service.version": "2.5", "host.name": socket.gethostname(), "team": "ours"}
    expect(wanted.items() <= labels.items(), labels)
    server.close()


def check_environment():
    """What the environment of the recorded process says is said of it, also when it has ended; the command's own comes before. What is wrong there counts for nothing."""
    filling = {f"FILL{i}": "x" * 30000 for i in range(4)}
    good = {"OTEL_SERVICE_NAME": "shop", "OTEL_RESOURCE_ATTRIBUTES": "host.name=web-07,service.version=2.5,team=theirs,xheap.push.number=77,city=K%C3%B6ln"}
    for number, (environment, wanted) in enumerate((
            (filling | good, {"service.name": "shop", "host.name": "web-07", "service.version": "2.5", "team": "ours", "city": "K\u00f6ln"}),
            (good | {"OTEL_RESOURCE_ATTRIBUTES": "host.name=web-07,team=%zz"}, {"service.name": "shop", "host.name": socket.gethostname(), "team": "ours"}),
            ({"OTEL_SERVICE_NAME": "a\nb", "NOT_OTEL_SERVICE_NAME": "other", "OTEL_RESOURCE_ATTRIBUTES": "k" * 30000 + "=1"}, {"service.name": os.path.basename(os.path.realpath("/bin/sh")), "host.name": socket.gethostname()}))):
        session, place = f"environment{number}", os.path.abspath(f"environment{number}")
        os.mkdir(place)
        run("start", session, "-q", "-o", "none", "--push", f"file:{place}", "--push-every", "1s", "--label", "team=ours")
        # Before the first program there is nothing to say, and nobody to say it of.
        time.sleep(1.5)
        expect(not os.listdir(place), os.listdir(place))
        launched = subprocess.Popen([XHEAP, "launch", session, "sh", "-c", "sleep 2; sleep 1.5"], env=os.environ | environment)
        expect(launched.wait(60) == 0, "launch failed")
        time.sleep(1.5)
        run("stop", session, "-q")
        until(lambda: len(os.listdir(place)) >= 3, lambda: os.listdir(place))
        files = sorted(os.listdir(place), key=lambda name: int(name.split(".")[-3]))
        expect(len(files) >= 3, files)
        for file in files:
            body = gzip.decompress(pathlib.Path(place, file).read_bytes())
            found = dict(value.decode().split("=", 1) for field, value in fields(body) if field == 6 and b"=" in value)
            expect(wanted.items() <= found.items() and found["xheap.push.number"] != "77", f"{file}: {found}, not {wanted}")
        answer = json.loads(run("fleet", "versions", place, "--format", "json").stdout)
        expect(answer["complete"] and answer["hosts"] == 1 and answer["pushes"] == len(files), answer)


def check_pyroscope():
    """The name of the service with its labels, the time, and a profile of pprof whose figures are those of the session."""
    server = Server()
    target = Target("pyro", "-o", "pyro.xht")
    target.step()
    run("push", "pyro", f"pyroscope+http://127.0.0.1:{server.port}/", "--once", "--service", "steps", "--label", "service.version=1.4", "--label", "odd=a,b}")
    target.stop()
    path, headers, body = server.requests[0]
    address = urllib.parse.urlsplit(path)
    asked = urllib.parse.parse_qs(address.query)
    expect(address.path == "/ingest" and asked["format"] == ["pprof"] and asked["until"] >= asked["from"], path)
    expect(asked["name"][0].startswith("steps{service_version=1.4,odd=a_b_,") and f"host_name={socket.gethostname()}" in asked["name"][0], asked["name"])
    expect(b"alloc_space" in gzip.decompress(body) and b"service.version=1.4" in gzip.decompress(body), "no profile of pprof")
    server.close()


def check_labels():
    """Whatever a value is, it arrives whole at each kind of place, or is refused before anything is pushed; what an environment says is left out then."""
    server, target = Server(), Target("labels", "-o", "labels.xht")
    long = "x" * 9998 + "\u00e9"
    good = {"service.version": 'a"b\'c\\d,{e}=f', "long": long, "space": " a b "}
    os.mkdir("labels")
    for place in ("otlp+http", "pyroscope+http", "clickhouse+http", "file"):
        words = ["push", "labels", f"file:{os.path.abspath('labels')}" if place == "file" else f"{place}://127.0.0.1:{server.port}", "--once"]
        for bad in (b"a\nb", b"a\x1b[1m", b"a\xff", b"a\xc3", b""):
            for options in ([b"--service", bad], [b"--label", b"team=" + bad]):
                done = subprocess.run([XHEAP, *words, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                expect(done.returncode == 2 and (b"a value is UTF-8" in done.stderr or not bad), f"{place} {options}: {done}")
        expect(not server.requests and not os.listdir("labels"), f"{place}: something was pushed")
        environment = os.environ | {"OTEL_SERVICE_NAME": "bad\nname", "OTEL_RESOURCE_ATTRIBUTES": "team%20of=a,city=K%C3%B6ln%2C%20Deutz"}
        done = subprocess.run([XHEAP, *words, "--service", long, *[word for key, value in good.items() for word in ("--label", f"{key}={value}")]], env=environment, stderr=subprocess.PIPE, text=True)
        expect(done.returncode == 0 and not done.stderr, f"{place}: {done}")
        wanted = good | {"service.name": long, "city": "K\u00f6ln, Deutz"}
        body = server.requests.pop()[2] if place != "file" else pathlib.Path("labels", os.listdir("labels")[0]).read_bytes()
        if place == "otlp+http":
            found = of_otlp(body)[1]
        elif place == "clickhouse+http":
            push = of_clickhouse(body)
            found = push["labels"]
            expect((push["service"], push["version"]) == (long, good["service.version"]), push)
        else:
            found = dict(value.decode().split("=", 1) for field, value in fields(gzip.decompress(body)) if field == 6 and b"=" in value)
        expect(wanted.items() <= found.items() and not any(key.startswith("team") for key in found), f"{place}: {found}")
        expect(place != "pyroscope+http" or target.query()["dropped"] == 0, target.query())
    version, = json.loads(run("fleet", "versions", os.path.abspath("labels"), "--format", "json").stdout)["rows"]
    expect((version["service"], version["version"]) == (long, good["service.version"]), version)
    # Of a variable that cannot be decoded nothing counts, which is said once.
    environment = os.environ | {"OTEL_RESOURCE_ATTRIBUTES": b"city=a,team=a\xff".decode("utf-8", "surrogateescape")}
    for value in ("city=a,team=100%", environment["OTEL_RESOURCE_ATTRIBUTES"]):
        done = subprocess.run([XHEAP, "push", "labels", f"otlp+http://127.0.0.1:{server.port}", "--once"], env=environment | {"OTEL_RESOURCE_ATTRIBUTES": value}, stderr=subprocess.PIPE, text=True)
        found = of_otlp(server.requests.pop()[2])[1]
        expect(done.returncode == 0 and done.stderr.count("\n") == 1 and 'push: all of OTEL_RESOURCE_ATTRIBUTES is left out: in "team=' in done.stderr, f"{value}: {done}")
        expect("city" not in found and "team" not in found, f"{value}: {found}")
    # More than an address takes is told, and counts as dropped.
    options = [word for i in range(15) for word in ("--label", f"key{i}={'x' * 9000}")]
    said = run("push", "labels", f"pyroscope+http://127.0.0.1:{server.port}", "--once", *options, status=2).stderr
    expect("too long for an address" in said and target.query()["dropped"] == 1 and not server.requests, said)
    target.stop()
    server.close()


class Row:
    """A row of RowBinary, read field by field."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, size=8):
        self.at += size
        return int.from_bytes(self.data[self.at - size:self.at], "little")

    def length(self):
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text(self):
        size = self.length()
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def array(self, item):
        return [item() for _ in range(self.length())]


def of_clickhouse(body):
    """A push as a dictionary; its stacks by id."""
    row, push = Row(body), {}
    for key in ("host", "name", "service", "version"):
        push[key] = row.text()
    for key, size in (("session", 8), ("whole", 4), ("push", 4), ("started", 8), ("from", 8), ("time", 8), ("sample", 8), ("bytes", 8), ("objects", 8), ("variance", 8)):
        push[key] = row.number(size)
    push["labels"] = dict(zip(row.array(row.text), row.array(row.text)))
    names = ("stack", "function", "bytes_step", "objects_step", "variance_step", "held_step", "made_bytes", "made_objects")
    columns = [row.array(lambda: row.number(1 if name == "held_step" else 8)) for name in names]
    push["stacks"] = {values[0]: dict(zip(names, values)) for values in zip(*columns)}
    names = row.array(row.number), row.array(lambda: row.array(row.text)), row.array(lambda: row.array(row.text))
    push["names"] = {stack: functions for stack, functions, _ in zip(*names)}
    expect(row.at == len(body) and len(names[0]) == len(names[1]) == len(names[2]), f"{len(body)} bytes, read {row.at}")
    return push


def check_clickhouse():
    """Pushes have the stacks that changed, with names once; steps add up, and so do the sums, to what the trace has. After one that is refused comes a whole one."""
    server = Server()
    target = Target("rows", "-o", "rows.xht")
    pathlib.Path("token").write_text("me:secret\n")
    os.chmod("token", 0o600)
    push = subprocess.Popen([XHEAP, "push", "rows", f"clickhouse+http://127.0.0.1:{server.port}/heaps", "--every", "2s", "--service", "steps", "--token-file", "token"])
    for count in (1, 2, 3):
        target.step()
        until(lambda: sum(stack["made_objects"] for _, _, body in server.requests for stack in of_clickhouse(body)["stacks"].values()) > 1900 * count, lambda: f"{len(server.requests)} pushes")
        server.answers = [400] if count == 2 else []
        until(lambda: not server.answers, lambda: f"{server.answers}")
    target.step()
    target.stop()
    push.wait(60)
    pushes = [of_clickhouse(body) for _, _, body in server.requests]
    address = urllib.parse.urlsplit(server.requests[0][0])
    expect(urllib.parse.parse_qs(address.query) == {"database": ["heaps"], "query": ["INSERT INTO arrivals FORMAT RowBinary"]} and address.path == "/", server.requests[0][0])
    expect(server.requests[0][1]["Authorization"] == "Basic bWU6c2VjcmV0", server.requests[0][1])
    expect(pushes[0]["service"] == pushes[0]["labels"]["service.name"] == "steps" and pushes[0]["host"] == socket.gethostname() and pushes[0]["name"] == "rows", pushes[0])
    lost = next(i for i in range(1, len(pushes)) if pushes[i]["push"] != pushes[i - 1]["push"] + 1)
    names, state = {}, {}
    for i, one in enumerate(pushes):
        expect(one["session"] == pushes[0]["session"] and (one["push"] == one["whole"]) == (i in (0, lost)) and bool(one["names"]) >= (i in (0, lost)), f"{i}: {one}")
        expect(i in (0, lost) or len(one["stacks"]) < len(pushes[0]["stacks"]), "a stack that is the same comes again")
        names.update(one["names"])
        state = {} if i in (0, lost) else state
        for stack, values in one["stacks"].items():
            so_far = state.setdefault(stack, collections.Counter())
            for key, mask in (("bytes", 1 << 64), ("objects", 1 << 64), ("held", 256)):
                step = values[f"{key}_step"]
                so_far[key] += step - (mask if step >= mask // 2 else 0)
            expect(so_far["bytes"] >= 0 and so_far["held"] == (so_far["bytes"] > 0) and not values["variance_step"], f"{i}: {stack} {values}: {so_far}")
        for key in ("bytes", "objects"):
            expect(one[key] == sum(values[key] for values in state.values()), f"{i}: {key} of all stacks: {one[key]}, not {state}")
    wanted, found = figures_of_heap("rows.xht"), collections.Counter()
    for stack, values in state.items():
        for name in set(names[stack]) & {"kept", "dropped"}:
            found["inuse_objects", name] += values["objects"]
            found["inuse_space", name] += values["bytes"]
    expect(all(found[key] == value for key, value in wanted.items() if key[0].startswith("inuse")), f"{found}, not {wanted}")
    server.close()


def check_directory():
    """start --push into a directory, without a trace: a file for each push, and nothing is left but them."""
    os.mkdir("pushed")
    target = Target("files", "-o", "none", "--push", f"file:{os.path.abspath('pushed')}", "--push-every", "1s", "--service", "a/b")
    target.step()
    until(lambda: len(os.listdir("pushed")) >= 2, lambda: os.listdir("pushed"))
    push = target.query()
    expect(push and push["pushed"] >= 1 and push["waiting"] == push["dropped"] == 0, push)
    expect("pushes to file:" in run("query", "files").stdout, "query says nothing")
    target.step()
    expect("files.xht" not in target.stop(), "the end names a trace that does not stay")
    until(lambda: not os.path.exists("state/xheap/push/files.xht"), lambda: os.listdir("state/xheap/push"))
    names = sorted(os.listdir("pushed"))
    expect(all(re.fullmatch(rf"a_b\.{re.escape(socket.gethostname())}\.files\.\d+\.\d+\.pb\.gz", name) for name in names), names)
    # A file says which push it is, whatever became of its name.
    files = [gzip.decompress(pathlib.Path("pushed", name).read_bytes()) for name in names]
    texts = [dict(value.split(b"=", 1) for field, value in fields(file) if field == 6 and b"=" in value) for file in files]
    marks = [[int(text[key]) for key in (b"xheap.push.number", b"xheap.push.time", b"xheap.session.start")] for text in texts]
    marks.sort()
    expect([mark[0] for mark in marks] == list(range(len(names))) and len({mark[2] for mark in marks}) == 1, marks)
    expect(all(one[1] < other[1] for one, other in zip(marks, marks[1:])) and marks[0][2] < marks[0][1], marks)
    expect(all(os.stat(f"pushed/{name}").st_mode & 0o777 == 0o600 for name in names), "others can read the profiles")


def check_ended():
    """A service that is started again: what the ended process had is not in use, and stays in the totals."""
    os.mkdir("ended")

    def push():
        """The sum of all alloc_space, and the inuse_space of a profile that is made now."""
        known, used = set(os.listdir("ended")), [0, 0]
        run("push", "ended", f"file:{os.path.abspath('ended')}", "--once")
        for file in os.listdir("ended"):
            for key, sample in fields(gzip.decompress(pathlib.Path("ended", file).read_bytes())):
                for number, value in fields(sample) if key == 2 else ():
                    used[0] += numbers(value)[1] if number == 2 else 0
                    used[1] += numbers(value)[3] if number == 2 and file not in known else 0
        return used

    target = Target("ended", "-o", "ended.xht")
    for _ in range(3):
        target.step()
    first = push()
    expect(first[0] > first[1] > 3 * 3000000, first)
    target.process.stdin.close()
    target.process.wait()
    until(lambda: not json.loads(run("query", "ended", "-format", "json").stdout)["targets"], lambda: run("query", "ended").stdout)
    ended = push()
    expect(ended == [first[0], 0], f"{first}, and after the end {ended}")
    # A new version comes to the same path, and the symbols of the old one go.
    os.rename("steps", "steps.old")
    subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id=0x2222222222", "-o", "steps", "steps.c"], check=True)
    target.process = subprocess.Popen([XHEAP, "launch", "ended", "./steps"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target.step()
    again = push()
    expect(3050000 < again[1] < 3600000 and 3500000 < again[0] - first[0] < 4100000, f"{first}, and started again {again}")
    versions = [text.decode() for file in sorted(pathlib.Path("ended").iterdir(), key=lambda file: int(file.name.split(".")[-3])) for key, text in fields(gzip.decompress(file.read_bytes()))
                if key == 6 and text.startswith(b"service.version=")]
    expect(versions[0] == versions[1] != versions[2] == "service.version=2222222222", versions)
    target.stop()
    os.rename("steps.old", "steps")


# ---- a pusher that is killed ----

def pushed_objects(directory):
    """What all files of it say was allocated."""
    return sum(numbers(value)[0] for file in pathlib.Path(directory).glob("*.pb.gz") for key, sample in fields(gzip.decompress(file.read_bytes())) if key == 2
               for number, value in fields(sample) if number == 2)


def arrived_objects(server):
    """The same of a server, which takes no profile twice: a pusher that is killed before it has read the answer sends again."""
    return sum(of_otlp(body)[0]["alloc_objects", name] for body in {body for _, _, body in server.requests} for name in ("kept", "dropped"))


def check_kills(place, objects):
    """Killed at each change of a file, and then followed by another one: the totals of all profiles are those of the session, and nothing is dropped. A past that is damaged is
    told, and only makes a profile of all."""
    name = f"killed_{place.partition(':')[0].partition('+')[0]}"
    target, steps, past = Target(name, "-o", f"{name}.xht"), 1, pathlib.Path(f"state/xheap/push/{name}/past")
    environment = os.environ | {"LD_PRELOAD": os.path.abspath("killer.so"), "ASAN_OPTIONS": "verify_asan_link_order=0"}
    target.step()
    run("push", name, place, "--once")
    others = objects() - 2000
    for kill_at in range(1, 1000):
        target.step()
        killed = subprocess.run([XHEAP, "push", name, place, "--once"], env=environment | {"KILL_AT": str(kill_at)})
        if killed.returncode == 0:
            break
        expect(killed.returncode == -signal.SIGKILL, killed)
        # In the same second, a file of the same number would take its name.
        time.sleep(1 - time.time() % 1)
        target.step()
        run("push", name, place, "--once")
        steps += 2
        expect(objects() == others + 2000 * steps, f"{name}, killed at change {kill_at}: {objects()} were pushed, {others + 2000 * steps} allocated")
        expect(target.query()["dropped"] == 0 and sorted(os.listdir(past.parent)) == ["lock", "past", "status"], f"{target.query()} {os.listdir(past.parent)}")
    expect(kill_at > 8, f"{kill_at} changes of files only")
    whole = past.read_bytes()
    for damaged in (whole[:-1], whole[:40], b"", whole[:60] + bytes([whole[60] ^ 1]) + whole[61:], whole + b"x"):
        past.write_bytes(damaged)
        before = objects()
        said = run("push", name, place, "--once", status=0 if "http" in place else 2).stderr
        expect("past of the queue is damaged" in said, f"{len(damaged)} bytes: {said!r}")
        expect(objects() - before == others + 2000 * (steps + 1), f"{len(damaged)} bytes of a past: {objects() - before}")
    # Of another place, nothing was pushed.
    os.mkdir(f"{name}.other")
    run("push", name, f"file:{os.path.abspath(name)}.other", "--once")
    expect(pushed_objects(f"{name}.other") >= 2000 * (steps + 1), "what was pushed to one place is missing in another")
    target.stop()


def check_kills_of_files():
    os.mkdir("kills")
    check_kills(f"file:{os.path.abspath('kills')}", lambda: pushed_objects("kills"))


def check_kills_of_sending():
    server = Server()
    check_kills(f"otlp+http://127.0.0.1:{server.port}", lambda: arrived_objects(server))
    server.close()


def check_kills_of_refusals():
    """Killed at each change of a file: a profile that the server refuses waits still, or is counted."""
    target, refusals = Target("refused", "-o", "refused.xht"), 0
    environment = os.environ | {"LD_PRELOAD": os.path.abspath("killer.so"), "ASAN_OPTIONS": "verify_asan_link_order=0"}
    for kill_at in range(1, 1000):
        server, queue = Server([400]), pathlib.Path(f"refused{kill_at}")
        words = ["push", "refused", f"otlp+http://127.0.0.1:{server.port}", "--once", "-q", "--queue", queue]
        killed = subprocess.run([XHEAP, *words], env=environment | {"KILL_AT": str(kill_at)})
        waiting = len(list(queue.glob("*.profile")))
        dropped = int(re.search(r"dropped=(\d+)", (queue / "status").read_text()).group(1)) if (queue / "status").exists() else 0
        refusals += not server.answers
        expect(server.answers or waiting + dropped, f"killed at change {kill_at}: {waiting} wait, {dropped} were dropped")
        server.close()
        if killed.returncode >= 0:
            break
    expect(refusals > 2 and dropped == 1, f"{refusals} refusals, {dropped} dropped")
    target.stop()


# ---- a logger that is killed ----

def damage(trace, other):
    """Make a copy with a byte changed, so that its events cannot be read."""
    whole = pathlib.Path(trace).read_bytes()
    for at in range(len(whole) - 256, 0, -256):
        pathlib.Path(other).write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1:])
        if b"events at offset" in subprocess.run([XHEAP, "heap", other], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE).stderr:
            return
    expect(False, f"{trace} cannot be damaged")


def check_logger_killed():
    """What came since the last profile counts as one that was dropped, and the pusher says so. What is recovered can be pushed, once."""
    os.mkdir("orphan")
    target = Target("orphan", "-o", "orphan.xht")
    logger = json.loads(run("query", "orphan", "-format", "json").stdout)["logger_pid"]
    push = subprocess.Popen([XHEAP, "push", "orphan", f"file:{os.path.abspath('orphan')}", "--every", "2s"], stderr=subprocess.PIPE, text=True)
    target.step()
    until(lambda: os.listdir("orphan"), lambda: "no profile")
    target.step()
    os.kill(logger, signal.SIGKILL)
    said = push.communicate(timeout=60)[1]
    status = pathlib.Path("state/xheap/push/orphan/status").read_text()
    expect(push.returncode == 2 and "no trace" in said and "dropped=1" in status and 2000 <= pushed_objects("orphan") < 2100, f"{push.returncode}: {said} {status} {pushed_objects('orphan')}")
    place = f"file:{os.path.abspath('orphan')}"
    run("recover", "orphan.xht")
    # Of a damaged trace nothing is pushed, and what is known of former pushes stays.
    damage("orphan.xht", "damaged.xht")
    said = run("push", "orphan", place, "--trace", "damaged.xht", status=2).stderr
    expect("events at offset" in said and os.path.exists("state/xheap/push/orphan/past"), f"{said} {os.listdir('state/xheap/push/orphan')}")
    run("push", "orphan", place, "--trace", "orphan.xht")
    expect(4000 <= pushed_objects("orphan") < 4100, f"{pushed_objects('orphan')} with what was recovered")
    said = run("push", "orphan", place, "--trace", "orphan.xht", status=2).stderr
    expect("nothing is known" in said and pushed_objects("orphan") < 4100, said)
    expect(os.path.exists("orphan.xht") and sorted(os.listdir("state/xheap/push/orphan")) == ["lock", "status"], os.listdir("state/xheap/push/orphan"))
    target.process.stdin.close()
    target.process.wait()


def end_while_asked(name, words, begin):
    """Have the logger of a session be asked for a profile, and be told to end, while it stands still. Check that all of the session is pushed, and that no trouble is told. begin: asks."""
    os.mkdir(name)
    target = Target(name, "-o", f"{name}.xht", "--keep", "live")
    target.step()
    logger = json.loads(run("query", name, "-format", "json").stdout)["logger_pid"]
    push = subprocess.Popen([XHEAP, "push", name, f"file:{os.path.abspath(name)}", *words], stderr=subprocess.PIPE, text=True)
    until(lambda: os.path.exists(f"state/xheap/push/{name}/lock"), lambda: "no queue")
    begin(push, logger)
    stop = subprocess.Popen([XHEAP, "stop", name, "-q"])
    time.sleep(0.5)
    os.kill(logger, signal.SIGCONT)
    said = push.communicate(timeout=60)[1]
    expect(not stop.wait() and not push.returncode and not said and 2000 <= pushed_objects(name) < 2100, f"{name}: {push.returncode}: {said} {pushed_objects(name)}")
    target.process.stdin.close()
    target.process.wait()


def check_ending():
    """A session that ends while a profile is made: the last one follows, and no logger is said to be gone; so if the command is told to end, too."""
    def at_its_time(_, logger):
        until(lambda: os.listdir("ending"), lambda: "no profile")
        os.kill(logger, signal.SIGSTOP)
        time.sleep(1.5)

    def by_signal(push, logger):
        time.sleep(1)
        os.kill(logger, signal.SIGSTOP)
        push.send_signal(signal.SIGTERM)
        time.sleep(0.5)

    end_while_asked("ending", ["--every", "1s"], at_its_time)
    end_while_asked("both", ["--every", "100s"], by_signal)


# ---- memory ----

def check_memory():
    """A window of a million calls, whose rows are in a file."""
    if "asan" in subprocess.run(["ldd", XHEAP], stdout=subprocess.PIPE, text=True).stdout:
        return
    os.mkdir("much")
    target = Target("much", "-o", "much.xht", "--keep", "live")
    for _ in range(250):
        target.step()
    push = subprocess.Popen([XHEAP, "push", "much", f"file:{os.path.abspath('much')}", "--every", "1s"])
    until(lambda: os.listdir("much"), lambda: "no profile")
    push.send_signal(signal.SIGSTOP)
    status = pathlib.Path(f"/proc/{push.pid}/status").read_text()
    push.send_signal(signal.SIGCONT)
    target.stop()
    push.wait()
    expect(pushed_objects("much") >= 500000, f"{pushed_objects('much')} objects")
    most = int(re.search(r"VmHWM:\s+(\d+)", status).group(1))
    expect(most < 36 << 10, f"{most} KiB at most")


# ---- servers ----

def check_partial():
    """A server that answers 200 and takes only a part, as OpenTelemetry's may: that is dropped, with its reason. Any other answer of 200 is a success."""
    from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service
    partial = service.ExportProfilesServiceResponse()
    partial.partial_success.rejected_profiles = 300
    partial.partial_success.error_message = "no \x1b[31m room"
    refusal, warning = partial.SerializeToString(), service.ExportProfilesServiceResponse()
    warning.partial_success.error_message = "an old version"
    target = Target("partial", "-o", "partial.xht")
    target.step()
    good = [b"", b"\n", warning.SerializeToString(), refusal[:1] + b"\x7f" + refusal[2:], b"\n\xff" * 2000, b"OK"]
    server = Server([answer_of(refusal)] + [answer_of(body) for body in good])
    place = f"otlp+http://127.0.0.1:{server.port}"
    said = run("push", "partial", place, "--once", status=2).stderr
    expect("the server rejects 300 of the profiles: no ?[31m room" in said and target.query()["dropped"] == 1, f"{said} {target.query()}")
    for _ in good:
        run("push", "partial", place, "--once")
    push = target.query()
    expect(not server.answers and push["pushed"] == len(good) and push["dropped"] == 1 and "error" not in push, push)
    server.close()
    target.stop()


def check_failures():
    """500, a broken answer and 429 are tried again; 400 drops; what waits is sent in the end. The session never notices."""
    server = Server([500, nonsense, (429, {"Retry-After": "1"})])
    target = Target("failing", "-o", "failing.xht")
    target.step()
    run("push", "failing", f"otlp+http://127.0.0.1:{server.port}", "--once")
    expect(len(server.requests) == 1 and not server.answers, f"{len(server.requests)} arrived")
    push = target.query()
    expect(push["pushed"] == 1 and push["waiting"] == 0 and push["dropped"] == 0 and "error" not in push, push)
    server.answers = [(400, {})]
    said = run("push", "failing", f"otlp+http://127.0.0.1:{server.port}", "--once", status=2).stderr
    push = target.query()
    expect("the server answers 400" in said and push["dropped"] == 1 and push["pushed"] == 1 and "400" in push["error"], f"{said} {push}")
    server.close()
    target.stop()


def check_hanging():
    """A server that takes the profile and never answers, or is not there: profiles wait, up to the limit, and a later push sends them."""
    released = threading.Event()
    server = Server([lambda handler: released.wait()] * 10)
    target = Target("hanging", "-o", "hanging.xht")
    push = subprocess.Popen([XHEAP, "push", "hanging", f"otlp+http://127.0.0.1:{server.port}", "--every", "1s", "-q"])
    until(lambda: (target.query() or {"waiting": 0})["waiting"] >= 3, target.query)
    # Its end does not wait for the server for ever.
    push.send_signal(signal.SIGKILL)
    push.wait()
    waiting = target.query()["waiting"]
    server.close()
    released.set()
    server = Server(port=server.port)
    target.step()
    run("push", "hanging", f"otlp+http://127.0.0.1:{server.port}", "--once", "-q")
    expect(len(server.requests) in (waiting + 1, waiting + 2), f"{len(server.requests)} of {waiting} and one arrived")
    server.close()
    # Nobody is there: the oldest are dropped.
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        push = subprocess.Popen([XHEAP, "push", "hanging", f"otlp+http://127.0.0.1:{nobody.getsockname()[1]}/", "--every", "1s", "-q", "--queue-size", "64K", "--lines",
                                 *[word for i in range(40) for word in ("--label", f"filler{i}={'x' * 1000}")]])
        until(lambda: target.query()["dropped"] > 1 and "error" in target.query(), target.query)
        expect(target.query()["waiting_bytes"] <= 65536, target.query())
        push.kill()
        push.wait()
    target.stop()


def check_restart():
    """A session that begins again while the pusher of the one before still tries to send: it is pushed, and nothing stays of it but profiles."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        place = f"otlp+http://127.0.0.1:{nobody.getsockname()[1]}"
        target = Target("again", "-o", "none", "--push", place, "--push-every", "1s")
        target.step()
        until(lambda: (target.query() or {"waiting": 0})["waiting"], target.query)
        target.stop("-q")
        target = Target("again", "-o", "none", "--push", place, "--push-every", "1s")
        target.step()
        until(target.query, target.query)
    target.stop("-q")
    until(lambda: not os.path.exists("state/xheap/push/again.xht"), lambda: os.listdir("state/xheap/push"))


# ---- words ----

def check_words():
    os.chmod("token", 0o644)
    target = Target("words", "-o", "words.xht")
    for words, wanted in (
        (["push"], "name"), (["push", "words"], "a place is missing"), (["push", "nosuch", "file:."], "no session nosuch"), (["push", "words", "http://h"], "begins with"),
        (["push", "words", "otlp+http://"], "a host is missing"), (["push", "words", "otlp+http://a:b@h"], "--token-file"), (["push", "words", "otlp+http://h/ x"], "does not belong"),
        (["push", "words", "clickhouse+http://h/a-b"], "name of a database"), (["push", "words", "clickhouse+http://u:p@h/"], "--token-file"),
        (["push", "words", "file:"], "a directory is missing"), (["push", "words", "file:.", "--every", "10ms"], "--every"), (["push", "words", "file:.", "--label", "a"], "KEY=VALUE"),
        (["push", "words", "file:.", "--label", "a b=c"], "KEY=VALUE"), (["push", "words", "file:.", "--token-file", "/nosuch"], "cannot be read"), (["push", "words", "file:.", "x"], "not expected"),
        (["push", "words", "file:.", "--trace", "nosuch"], "--trace nosuch: No such file"),
        (["start", "other", "--push", "ftp://h"], "begins with"), (["start", "other", "--service", "x"], "--push PLACE"),
        (["start", "other", "--push-every", "2s"], "--push PLACE"), (["start", "other", "--push", f"file:{os.path.abspath('nowhere')}"], "nowhere: nothing can be written there: No such file"),
        (["start", "other", "--push", "file:/etc/passwd"], "nothing can be written there: Not a directory"),
        (["push", "words", f"file:{os.path.abspath('nowhere')}", "--once"], "nowhere"),
    ):
        said = run(*words, status=2).stderr
        expect(wanted in said, f"{words}: {said!r} does not say {wanted!r}")
    expect("others may read the token" in run("push", "words", "otlp+http://127.0.0.1:1", "--once", "--token-file", "token", status=2).stderr, "a token that all can read")
    os.mkdir("open")
    os.chmod("open", 0o777)
    expect("no other may write there" in run("push", "words", "otlp+http://127.0.0.1:1", "--once", "--queue", "open", status=2).stderr, "a queue of all")
    first = subprocess.Popen([XHEAP, "push", "words", f"file:{os.getcwd()}", "--every", "100s", "-q", "--queue", "own"])
    until(lambda: os.path.exists("own/lock"), lambda: "no lock")
    time.sleep(1)
    expect("another xheap pushes" in run("push", "words", f"file:{os.getcwd()}", "--once", "--queue", "own", status=2).stderr, "two push at once")
    first.terminate()
    expect(first.wait(60) == 0, f"a push that is told to end: {first.returncode}")
    target.stop()


def main():
    pathlib.Path("steps.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-o", "steps", "steps.c"], check=True)
    pathlib.Path("killer.c").write_text(KILLER)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", "killer.so", "killer.c", "-ldl"], check=True)
    skipped = []
    check_directory()
    check_environment()
    check_ended()
    check_kills_of_files()
    check_logger_killed()
    check_ending()
    check_memory()
    if not SENDER.exists():
        skipped.append("not checked: there is no xheap-send, which needs libcurl")
    elif not packages.use():
        skipped.append("not checked: there is no opentelemetry-proto: tests/python/packages.py installs it")
    else:
        check_sums()
        check_context()
        check_pyroscope()
        check_clickhouse()
        check_labels()
        check_failures()
        check_partial()
        check_hanging()
        check_restart()
        check_kills_of_sending()
        check_kills_of_refusals()
        check_words()
    print(*skipped, sep="\n")
    sys.exit(77 if skipped else 0)


with contextlib.suppress(KeyboardInterrupt):
    main()
