#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The server of xheap view, asked by its page and by others: who may ask, what the answers are, and what it survives."""
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.parse

XHEAP, SOURCE = os.environ["XHEAP"], pathlib.Path(os.environ["SOURCE"])
TRACES = SOURCE / "tests/golden/traces"
sys.path.insert(0, str(SOURCE / "tests/live"))
from pages import decode_cells, traces_of  # noqa: E402

PATIENCE_S = 60


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def xheap(*words, status=0):
    run = subprocess.run([XHEAP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode == status, f"{words}: status {run.returncode}: {run.stderr}")
    return run.stdout + run.stderr


class Server:
    def __init__(self, process):
        self.process = process
        line = process.stdout.readline().strip()
        self.port, self.token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=([0-9a-f]{32})", line).groups()
        self.port = int(self.port)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def ask(self, target, method="GET", **headers):
        """Status, headers, body; while the answer is made, again."""
        headers = {"X-Xheap-Token": self.token, "Host": f"127.0.0.1:{self.port}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            if answer.status != 202:
                return answer.status, dict(answer.getheaders()), body
            expect(0 <= json.loads(body)["share"] <= 1, body)

    def json(self, target):
        status, _, body = self.ask(target)
        expect(status == 200, f"{target}: {status} {body}")
        return json.loads(body)


@contextlib.contextmanager
def served(*words, environment=None, most_files=None):
    limited = [] if most_files is None else ["prlimit", f"--nofile={most_files}:{most_files}"]
    process = subprocess.Popen([*limited, XHEAP, "view", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        yield Server(process)
        expect(process.poll() is None, "the server has ended")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
        said = process.stderr.read()
        process.stdout.close()
    expect(process.returncode == 0 and "xheap: " not in said, f"status {process.returncode}: {said}")


# ---- who may ask ----


def files():
    """The page is there for everybody, with its policy; nothing else is."""
    with served("--no-open", TRACES / "c.xht") as server:
        for path, kind in (("/", "text/html"), ("/index.html", "text/html"), ("/main.js", "text/javascript"), ("/style.css", "text/css")):
            status, headers, body = server.ask(path, X_Xheap_Token=None)
            expect(status == 200 and headers["Content-Type"].startswith(kind) and body, f"{path}: {status} {headers}")
            policy = headers["Content-Security-Policy"]
            expect("default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy, policy)
            expect(headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store" and headers["Referrer-Policy"] == "no-referrer", headers)
            expect(server.token.encode() not in body, f"{path} has the token")
        for path in ("/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/..", "/main.js/", "/main.js%00", "*", "/trace/", "/main", "/.git"):
            status, _, body = server.ask(path)
            expect(status == 404 and b"root" not in body, f"{path}: {status} {body}")


def others():
    """Another user without the token, another page of the browser, and a name that leads here are refused."""
    with served("--no-open", TRACES / "c.xht") as server:
        own = f"127.0.0.1:{server.port}"
        wrong = server.token[:-1] + ("0" if server.token[-1] != "0" else "1")
        refused = [{"X_Xheap_Token": None}, {"X_Xheap_Token": ""}, {"X_Xheap_Token": wrong}, {"X_Xheap_Token": server.token + "0"},
                   {"X_Xheap_Token": server.token.upper()} if server.token.upper() != server.token else {"X_Xheap_Token": "x"},
                   {"Host": "evil.example"}, {"Host": f"evil.example:{server.port}"}, {"Host": f"127.0.0.1.evil.example:{server.port}"},
                   {"Host": f"localhost:{server.port}@evil"}, {"Host": "0.0.0.0"}, {"Origin": "http://evil.example"}, {"Origin": "null"},
                   {"Origin": f"https://{own}"}, {"Origin": "http://127.0.0.1:1"}, {"Origin": f"http://{own}.evil.example"}]
        for target in ("/trace?trace=0", "/cells?trace=0", "/frees?trace=0"):
            for headers in refused:
                status, _, body = server.ask(target, **headers)
                expect(status == 403 and len(body) < 200, f"{target} {headers}: {status} {body}")
        # Without the token's check, too, another host does not get the page.
        expect(server.ask("/", Host="evil.example")[0] == 403, "the page for another host")
        for headers in ({}, {"Origin": f"http://{own}"}, {"Host": f"localhost:{server.port}"}, {"Host": "[::1]:99"}):
            expect(server.ask("/trace?trace=0", **headers)[0] == 200, f"{headers} is refused")
        for method in ("POST", "PUT", "OPTIONS", "HEAD", "DELETE"):
            expect(server.ask("/trace?trace=0", method=method)[0] == 405, method)
        expect(server.ask("/trace?trace=0&token=" + server.token, X_Xheap_Token=None)[0] == 403, "a token in the address counts")
        with socket.socket() as outer:
            outer.settimeout(1)
            address = socket.gethostbyname(socket.gethostname())
            expect(address.startswith("127.") or outer.connect_ex((address, server.port)) != 0, f"it listens on {address}")


def bad_requests():
    with served("--no-open", TRACES / "c.xht") as server:
        for target in ("/trace?trace=1", "/trace?trace=-1", "/trace?trace=x", "/trace?trace=99999999999999999999"):
            expect(server.ask(target)[0] == 404, target)
        for target in ("/cells?from=x&to=1", "/cells?from=2&to=1", "/cells?from=1&to=99999999999999999999", "/cells?n=0", "/cells?n=100000", "/cells?bounds=1,2,3,4,5",
                       "/cells?bounds=1;2", "/cells?%zz=1", "/cells?node=%00", "/cells?from=1&to=2&at=3", "/frees?classes=AIFI+", "/frees?classes=XXXX", "/frees?classes=AI"):
            status, _, body = server.ask(target)
            expect(status == 400 and body.count(b"\n") == 1, f"{target}: {status} {body}")
        for target in ("/cells?node=app!nothing", "/frees?node=app!nothing%0Ax", "/cells?filter=size", "/cells?filter=-nothing%0A1", "/cells?filter=-size%0A1", "/cells?filter=-size%0A1%0A2%0A3",
                       "/cells?filter=-range%0A1%0A2", "/cells?filter=-requireFrames", "/cells?filter=-pids%0Ax", "/cells?filter=-heap%0Anone", "/cells?from=5&to=5"):
            status, _, body = server.ask(target)
            expect(status == 422 and body.count(b"\n") == 1, f"{target}: {status} {body}")
        for headers in ({"X_Xheap_Page": "a" * 33}, {"X_Xheap_Page": "../x"}, {"X_Xheap_Request": "-1"}, {"X_Xheap_Request": "1e9"}):
            expect(server.ask("/trace?trace=0", **headers)[0] == 400, headers)


def oversized():
    """Requests of any size and shape end with an error or the connection; the server goes on."""
    with served("--no-open", TRACES / "c.xht") as server:
        head = f"Host: 127.0.0.1:{server.port}\r\nX-Xheap-Token: {server.token}\r\n".encode()
        for data in (b"GET /cells?node=" + b"a" * (1 << 22) + b" HTTP/1.1\r\n" + head + b"\r\n", b"GET / HTTP/1.1\r\n" + head + b"A: " + b"b" * (1 << 22) + b"\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + head + b"A: b\r\n" * 200000 + b"\r\n", b"POST / HTTP/1.1\r\n" + head + b"Content-Length: 99999999999999\r\n\r\n" + b"x" * (1 << 20),
                     b"\0" * 4096, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/1.1\r\n\r\n"):
            with server.connect() as connection:
                # Of some the server waits for the rest.
                connection.settimeout(1)
                with contextlib.suppress(OSError):
                    connection.sendall(data)
                    answer = connection.recv(100)
                    expect(not answer or re.match(rb"HTTP/1.[01] (4|5)\d\d", answer), f"{data[:30]}: {answer}")
        expect(server.json("/trace?trace=0")["schema"] == 1, "no answer any more")


def memory_bytes(process):
    text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) << 10


def crowd():
    """1,000 connections that say nothing, and clients that ask and do not read: others are served."""
    with served("--no-open", TRACES / "python.xht") as server:
        server.json("/trace?trace=0")
        before, idle = memory_bytes(server.process), []
        try:
            for i in range(1000):
                idle.append(server.connect())
                if i % 3 == 0:
                    idle[-1].sendall(b"GET /cells?trace=0 HTTP/1.1\r\nHost: 127")
            for _ in range(100):
                reader = server.connect()
                idle.append(reader)
                reader.sendall(f"GET /cells?trace=0 HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Xheap-Token: {server.token}\r\n\r\n".encode() * 20)
            for _ in range(20):
                expect(server.ask("/cells?trace=0")[0] == 200, "cells beside a crowd")
            expect(memory_bytes(server.process) - before < 100 << 20, f"{before} bytes, then {memory_bytes(server.process)}")
        finally:
            for connection in idle:
                connection.close()
        expect(server.ask("/cells?trace=0")[0] == 200, "cells after the crowd")


def strangers():
    """Connections of others take half of all at most, and a new one ends the oldest: the owner's page is served, and keeps its connection."""
    with served("--no-open", TRACES / "c.xht", most_files=600) as server:
        own, idle = server.connect(), []
        request = f"GET /trace?trace=0 HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Xheap-Token: {server.token}\r\n\r\n".encode()
        try:
            server.json("/trace?trace=0")
            own.sendall(request)
            first = own.recv(1)
            for i in range(900):
                idle.append(server.connect())
                if i % 2:
                    idle[-1].sendall(b"GET /trace?trace=0 HTTP/1.1\r\nHost: 127")
            server.json("/trace?trace=0")
            idle[0].settimeout(PATIENCE_S)
            expect(idle[0].recv(1) == b"", "the oldest one stays")
            idle[-1].settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                expect(idle[-1].recv(1), "the newest one has ended")
            own.sendall(request)
            answers = first
            while answers.count(b"HTTP/1.1 200") < 2:
                part = own.recv(1 << 16)
                expect(part, "the owner's connection has ended")
                answers += part
        finally:
            for connection in [own, *idle]:
                connection.close()


def disturbed():
    """Clients that ask for anything, go away and ask again: nothing stays, and who stays gets the same answer as before."""
    xheap("record", "-q", "-o", "many.xht", "--", "perl", "-e", "my %h; $h{$_ % 999} .= 'x' x ($_ % 50) for 1 .. 200000; sub f { my @a = map { 'y' x $_ } 1 .. 99; return @a } f for 1 .. 500")
    with served("--no-open", "many.xht", TRACES / "rust.xht") as server:
        before, counts = server.ask("/cells?trace=0&n=256")[2], {}
        tasks = len(os.listdir(f"/proc/{server.process.pid}/task"))

        def ask(seed):
            chance = random.Random(seed)
            for number in range(60):
                trace, begin = chance.randrange(2), chance.randrange(10**5)
                target = chance.choice((f"trace?trace={trace}", f"cells?trace={trace}&n=256", f"cells?trace={trace}&from={begin}&to={begin + 10**7}", f"frees?trace={trace}", "main.js"))
                with server.connect() as connection:
                    connection.sendall(f"GET /{target} HTTP/1.1\r\nHost: localhost\r\nX-Xheap-Token: {server.token}\r\nX-Xheap-Page: p{seed % 3}\r\nX-Xheap-Request: {number}\r\n\r\n".encode())
                    if chance.random() < 0.4:
                        time.sleep(chance.random() / 50)
                        continue
                    status = connection.recv(12)[9:].decode()
                counts[status] = counts.get(status, 0) + 1

        threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        expect(not any(thread.is_alive() for thread in threads) and set(counts) <= {"200", "202", "409"}, counts)
        expect(server.ask("/cells?trace=0&n=256")[2] == before, "another answer than before")
        expect(len(os.listdir(f"/proc/{server.process.pid}/task")) == tasks, "threads have come or gone")


# ---- what the answers are ----


def numbers():
    """Totals and sums of cells are those of the commands."""
    for name in ("c", "libstdcxx", "processes", "python", "rust"):
        path = TRACES / f"{name}.xht"
        report = json.loads(xheap("report", path, "-format", "json"))
        with served("--no-open", path) as server:
            trace, (head, cells) = server.json("/trace?trace=0"), decode_cells(server.ask("/cells?trace=0")[2])
        expect(trace["totals"] == report["totals"] and trace.get("resident") == report.get("resident"), f"{name}: {trace['totals']}, not {report['totals']}")
        expect([(row["kind"], row["text"]) for row in trace["findings"]] == [(row["kind"], row["text"]) for row in report["findings"]], f"{name}: other findings")
        expect(trace["duration_ns"] == head["bounds"][-1] and max(cells["thread"]) < len(trace["threads"]) and max(cells["heap"]) < len(trace["heaps"]), name)
        marks = [function[4] for function in head["functions"]]
        counted = [i for i in range(head["cell_count"]) if not marks[cells["function"][cells["node"][i]]] & 4]
        expect(sum(cells["bytes"][i] for i in counted) == report["totals"]["total_bytes"], f"{name}: other bytes")
        peak = head["peak"]
        live = sum(cells["bytes"][i] for i in counted if cells["birth"][i] <= peak < cells["end"][i])
        expect(live == report["totals"]["peak_bytes"], f"{name}: {live} at the peak, not {report['totals']['peak_bytes']}")
        low, high = len(head["bounds"]) // 3, 2 * len(head["bounds"]) // 3
        for kind, own in (("AIFI", lambda i: cells["birth"][i] > low and cells["kind"][i] == 0 and cells["end"][i] <= high),
                          ("AOFI", lambda i: cells["birth"][i] <= low and cells["kind"][i] == 0 and cells["end"][i] <= high)):
            found = sum(cells["bytes"][i] for i in counted if cells["birth"][i] <= high and cells["end"][i] > low and own(i))
            said = json.loads(xheap("heap", path, "-totals", "-format", "json", "-window", kind, f"{head['bounds'][low] + 1}ns", f"{head['bounds'][high]}ns"))
            expect(found == said["totals"]["total_bytes"], f"{name} {kind}: {found}, not {said['totals']['total_bytes']}")


def large():
    """Numbers that a script would round are texts of their digits; the times of a request may be as large."""
    end = 200 * 86400 * 10 ** 9
    subprocess.run([f"{os.environ['BUILD']}/tests/golden/make_trace", "huge", "huge.xht"], check=True)
    with served("--no-open", "huge.xht") as server:
        trace, (head, _) = server.json("/trace?trace=0"), decode_cells(server.ask("/cells?trace=0")[2])
        expect(trace["duration_ns"] == str(end) and head["bounds"][-1] == trace["duration_ns"] and head["bounds"][0] == -1, trace["duration_ns"])
        expect(trace["totals"]["peak_bytes"] == str(64 * ((1 << 48) - 1)) and trace["totals"]["peak_count"] == 64, trace["totals"])
        part = decode_cells(server.ask(f"/cells?trace=0&from={end - 5000}&to={end}&n=5")[2])[0]
        expect([int(bound) for bound in part["bounds"]] == [end - 5000 + i * 1000 for i in range(6)], part["bounds"])


def marks():
    """Marks of the timeline: what the trace knows to have happened, and to lack."""
    for name in ("ended", "losses", "huge"):
        subprocess.run([f"{os.environ['BUILD']}/tests/golden/make_trace", name, f"{name}.xht"], check=True)
    older, found = SOURCE / "tests/older", {}
    kinds = {"ended.xht": {"process_begin", "process_end", "process_killed", "trigger"}, "losses.xht": {"loss"}, "huge.xht": {"process_killed"}, older / "kept.xht": {"fold"},
             older / "circular.xht": {"dropped"}, older / "ended_early.xht": {"early_end", "process_begin", "process_end"}, TRACES / "c.xht": set(),
             TRACES / "processes.xht": {"process_begin", "process_end"}}
    with served("--no-open", *kinds) as server:
        for number, (path, wanted) in enumerate(kinds.items()):
            trace = found[str(path)] = server.json(f"/trace?trace={number}")
            expect({mark["kind"] for mark in trace["marks"]} == wanted, f"{path}: {trace['marks']}")
            expect(all(int(mark["at_ns"]) <= int(trace["duration_ns"]) for mark in trace["marks"]), f"{path}: {trace['marks']}")
    said = {mark["kind"]: mark["text"] for mark in found["ended.xht"]["marks"]}
    expect("memory limit of its cgroup" in said["trigger"] and said["process_killed"].endswith(": signal 99"), said)
    expect(found["losses.xht"]["marks"] == [{"at_ns": 3000, "kind": "loss", "text": "7 events are lost"}], found["losses.xht"]["marks"])


def evidence():
    """What a finding selects has what it says: its stack is one of the cells, with the blocks that the sentence counts."""
    paths = [TRACES / f"{name}.xht" for name in ("libstdcxx", "python", "rust", "processes")]
    with served("--no-open", *paths) as server:
        for number, path in enumerate(paths):
            trace, (head, cells) = server.json(f"/trace?trace={number}"), decode_cells(server.ask(f"/cells?trace={number}")[2])
            keys, stacks = [(function[0], function[2]) for function in head["functions"]], []
            for parent, function in zip(cells["parent"], cells["function"]):
                stacks.append((stacks[parent - 1] if parent else ()) + (keys[function],))
            for finding in trace["findings"]:
                expect(finding["text"].startswith(finding["title"]) and finding["text"].endswith(finding["evidence"]) and finding["evidence"] and "select" in finding, f"{path}: {finding}")
                stack = tuple(map(tuple, finding.get("stack", ())))
                expect(not stack or (stack in stacks and tuple(finding["function"]) in stack), f"{path}: no such stack: {finding}")
                if finding["kind"] == "peak":
                    blocks = sum(cells["blocks"][i] for i in range(head["cell_count"]) if cells["birth"][i] <= head["peak"] < cells["end"][i]
                                 and stacks[cells["asker"][cells["node"][i]]] == stack)
                    expect(re.search(rf" in ~?{blocks:,} block", finding["text"]), f"{path}: {blocks} blocks, not: {finding['text']}")


def frees():
    """The stacks that freed: in all as many blocks as were freed; of a node, no more."""
    path = TRACES / "libstdcxx.xht"
    report = json.loads(xheap("heap", path, "-totals", "-closed", "-format", "json"))
    with served("--no-open", path) as server:
        for word in (b"-range", b"-at", b"-n" * 999):
            status, _, body = server.ask("/cells?filter=" + word.decode() + "%0A1%0A2")
            expect(status == 422 and len(body) < 300 and word[:40] + b" is no filter here; " in body and b"-window" in body and b"-closed\n" in body, body)
        answer = server.json("/frees?trace=0")
        expect(answer["left_out"] > 0 or sum(row["bytes"] for row in answer["stacks"]) == report["totals"]["total_bytes"], answer)
        expect([row["bytes"] for row in answer["stacks"]] == sorted((row["bytes"] for row in answer["stacks"]), reverse=True), "not sorted")
        head, cells = decode_cells(server.ask("/cells?trace=0")[2])
        node = cells["node"][max((i for i in range(head["cell_count"]) if cells["kind"][i] == 0), key=lambda i: cells["bytes"][i])]
        keys = []
        while True:
            function = head["functions"][cells["function"][node]]
            keys.insert(0, f"{function[0]}!{function[2]}")
            node = cells["parent"][node] - 1
            if node < 0:
                break
        words = urllib.parse.urlencode({"trace": 0, "node": "\n".join(keys), "from": -1, "to": head["bounds"][-1], "classes": "AIFI"})
        part = server.json(f"/frees?{words}")
        expect(part["stacks"] and len(part["stacks"][0]["frames"][0]) == 6, part)
        expect(sum(row["bytes"] for row in part["stacks"]) <= sum(row["bytes"] for row in answer["stacks"]), "a part is more than all")
        filtered = decode_cells(server.ask("/cells?filter=-size%0A100%0A200")[2])
        said = json.loads(xheap("heap", path, "-totals", "-size", "100", "200", "-format", "json"))
        expect(sum(filtered[1]["bytes"]) == said["totals"]["total_bytes"], f"filtered: {sum(filtered[1]['bytes'])}, not {said['totals']}")
        freed = server.json("/frees?filter=-size%0A100%0A200")
        said = json.loads(xheap("heap", path, "-totals", "-closed", "-size", "100", "200", "-format", "json"))["totals"]
        expect(not freed["left_out"] and sum(row["bytes"] for row in freed["stacks"]) == said["total_bytes"], f"freed: {[row['bytes'] for row in freed['stacks']]}, not {said}")
        expect(server.ask("/frees?filter=-nothing")[0] == 422, "a filter that is none")


def frees_of_functions():
    """All stacks of a function, not the largest one: as it asked, by the cells, and as stacks go through it, by the command."""
    path = TRACES / "python.xht"
    with served("--no-open", path) as server:
        check_functions(server, path)


def check_functions(server, path):
    (head, cells), asked = decode_cells(server.ask("/cells?trace=0")[2]), {}
    for i in range(head["cell_count"]):
        sums = asked.setdefault(cells["function"][cells["asker"][cells["node"][i]]], [0, 0, 0])
        for at, number in enumerate((cells["bytes"][i], cells["blocks"][i], cells["bytes"][i] * (cells["kind"][i] != 0))):
            sums[at] += number
    whole = {"trace": 0, "from": 0, "to": head["bounds"][-1], "classes": "AIFI+AIFO"}

    def answer(**words):
        found = server.json("/frees?" + urllib.parse.urlencode(whole | words))
        rest = found["bytes"] - found["never_freed"]["bytes"] - sum(row["bytes"] for row in found["stacks"])
        expect(rest > 0 if found["left_out"] else rest == 0, found)
        return [found["bytes"], found["blocks"], found["never_freed"]["bytes"]]

    nodes = {}
    for node in {cells["asker"][node] for node in cells["node"]}:
        nodes.setdefault(cells["function"][node], []).append(node)
    expect(any(len(nodes[function]) > 1 for function in sorted(asked, key=asked.get)[-3:]), "no large function with several stacks")
    for function in sorted(asked, key=asked.get)[-3:]:
        image, _, name, *_ = head["functions"][function]
        expect(answer(asker=f"{image}!{name}") == asked[function], f"{name}: {answer(asker=f'{image}!{name}')}, not {asked[function]}")
    through = max((f for f in asked if re.fullmatch(r"[\w.+-]+![\w:]+(\(\w*\))?", "!".join(head["functions"][f][0:3:2]))), key=asked.get)
    key = "!".join(head["functions"][through][0:3:2])
    said = [json.loads(xheap("heap", path, "-totals", "-requireFrames", key, *more, "-format", "json"))["totals"] for more in ((), ("-closed",))]
    expect(answer(through=key) == [said[0]["total_bytes"], said[0]["total_count"], said[0]["total_bytes"] - said[1]["total_bytes"]], f"{key}: {answer(through=key)}, not {said}")
    expect(server.ask("/frees?asker=app%21nothing")[0] == 422, "a function that is none")
    check_paths(head, cells, answer)


def check_paths(head, cells, answer):
    """Stacks of an image, of an inner end, and of frames of which recursive calls are one: as the page walks them in its cells."""
    key_of = ["!".join(row[0:3:2]) for row in head["functions"]]

    def stack(node):
        return [key_of[cells["function"][node]]] + (stack(cells["parent"][node] - 1) if cells["parent"][node] else [])

    def inner(frames, merged):
        return list(dict.fromkeys(frames)) if merged else frames

    def outer(frames, merged):
        path = []
        for key in reversed(frames):
            path = path[:path.index(key) + 1] if merged and key in path else path + [key]
        return path

    def sums(test):
        rows = [i for i in range(head["cell_count"]) if test(cells["node"][i])]
        return [sum(cells["bytes"][i] for i in rows), sum(cells["blocks"][i] for i in rows), sum(cells["bytes"][i] for i in rows if cells["kind"][i])]

    whole = {node: stack(node) for node in set(cells["node"])}
    folded = {node: stack(cells["asker"][node]) for node in whole}
    image = max((key_of[cells["function"][cells["asker"][node]]].split("!")[0] for node in whole), key=lambda name: sum(frames[0].startswith(f"{name}!") for frames in folded.values()))
    expect(answer(asker=f"{image}!") == sums(lambda node: folded[node][0].startswith(f"{image}!")), f"all of {image}")
    recursive = max(folded, key=lambda node: len(folded[node]) - len(set(folded[node])))
    expect(len(set(folded[recursive])) < len(folded[recursive]), "no stack is recursive")
    for stacks, more in ((folded, {}), (whole, {"whole": 1})):
        for merged in (False, True):
            words = more | ({"merged": 1} if merged else {})
            for length in (1, 3, 9):
                path = inner(stacks[recursive], merged)[:length]
                found = answer(ends="\n".join(path), **words)
                expect(found == sums(lambda node: inner(stacks[node], merged)[:length] == path), f"ends {words} {path}: {found}")
                path = outer(stacks[recursive], merged)[:length]
                found = answer(node="\n".join(path), **words)
                expect(found == sums(lambda node: outer(stacks[node], merged)[:length] == path), f"node {words} {path}: {found}")


BLOCK_KEYS = {"size": lambda row: row["size"], "made": lambda row: row.get("birth_ns", -1), "lived": lambda row: row["end_ns"] - row.get("birth_ns", 0),
              "address": lambda row: int(row["address"], 16), "function": lambda row: row["function"][1]}


def blocks():
    """Blocks one by one are those of the dump, in any order and part; all that is known of one is in the dump, too."""
    path = TRACES.parent.parent / "older/reallocs.xht"
    rows = {row["id"]: row for row in map(json.loads, xheap("dump", path, "-allocations", "-format", "json").splitlines())}
    with served("--no-open", path) as server:
        check_blocks(server, rows, xheap, path)


def check_blocks(server, rows, xheap, path):
    totals = json.loads(xheap("heap", path, "-totals", "-format", "json"))["totals"]
    whole = server.json("/blocks?trace=0&limit=500")
    expect([whole["blocks"], whole["bytes"]] == [totals["total_count"], totals["total_bytes"]], f"{whole['blocks']} blocks, {totals}")
    for order, key in BLOCK_KEYS.items():
        for rising in (0, 1):
            found = server.json(f"/blocks?trace=0&sort={order}&rising={rising}&limit=500")["rows"]
            keys = [key(row) for row in found]
            expect(keys == sorted(keys, reverse=not rising), f"{order}, rising {rising}")
            expect(len({row["id"] for row in found}) == min(500, len(rows)), "rows that are there twice")
            part = server.json(f"/blocks?trace=0&sort={order}&rising={rising}&offset=7&limit=5")["rows"]
            expect(part == found[7:12], f"a part: {part}")
    for row in whole["rows"]:
        said = rows[row["id"]]
        expect([row["address"], row["size"], row["birth_ns"], row["end"]] == [said["address"], said["size"], said["birth_ns"], said["end_kind"]], f"{row}, not {said}")
    at = rows[max(rows) // 2]["birth_ns"]
    live = json.loads(xheap("heap", path, "-totals", "-at", f"{at}ns", "-format", "json"))["totals"]
    found = server.json(f"/blocks?trace=0&at={at}&limit=1")
    expect([found["blocks"], found["bytes"]] == [live["peak_count"], live["peak_bytes"]], f"{found}, not {live}")
    made = next(row for row in rows.values() if "previous_id" in row)
    block = server.json(f"/block?trace=0&id={made['id']}")
    expect(block["earlier"][-1]["id"] == made["previous_id"] and len(block["made"][0]) == 6, block)
    later = server.json(f"/block?trace=0&id={made['previous_id']}")
    expect(later["later"][0]["id"] == made["id"] and later["freed"], later)
    for row in rows.values():
        same = [other for other in rows.values() if other["address"] == row["address"] and other["id"] < row["id"]]
        if same:
            block = server.json(f"/block?trace=0&id={row['id']}")
            expect(same[-1]["id"] in [before["id"] for before in block["before"]], f"{block} lacks {same[-1]}")
            break
    for query, status in (("blocks?limit=501", 400), ("blocks?offset=100001", 400), ("blocks?sort=color", 400), ("block?id=x", 400), (f"block?id={max(rows) + 1}", 422),
                          ("block?id=4294967295", 422), ("blocks?node=a!b", 422), ("blocks?filter=-nothing", 422)):
        expect(server.ask("/" + query)[0] == status, query)


def maps():
    """The map of pages is that of `heap -map`: sums, functions, stacks, and each run."""
    kept = 0
    for name in ("c", "libstdcxx", "processes", "rust"):
        path = TRACES / f"{name}.xht"
        with served("--no-open", path) as server:
            duration = server.json("/trace?trace=0")["duration_ns"]
            for at in (0, duration // 3, duration - 1, duration):
                for words in ((), ("-size", "0", "100"), ("-size", "40", "65")):
                    found = server.json(f"/map?trace=0&at={at}&filter={urllib.parse.quote(chr(10).join(words))}")
                    check_map(found, json.loads(xheap("heap", path, "-map", "-at", f"{at}ns", *words, "-format", "json")), f"{name} at {at} {words}")
                    kept += found["stack_count"]
            for query, status in (("map", 422), ("map?at=x", 400), ("map?at=0&filter=-nothing", 422), ("map?at=0&filter=-at%0A0", 422), ("map?at=0&from=0&to=1", 400)):
                expect(server.ask("/" + query)[0] == status, query)
    expect(kept, "no page is nearly empty")
    with served("--no-open", TRACES / "python.xht") as server:
        status, _, body = server.ask("/map?at=0")
        expect(status == 422 and b"is a sample: a map needs every block" in body, body)


def check_map(found, told, where):
    levels = ["none", "little", "quarter", "half", "full"]
    sums = [[row["pages"], row["live_bytes"]] for row in reversed(told["fullness"])]
    expect([[row["pages"], row["bytes"]] for row in found["fullness"]] == sums, f"{where}: {found['fullness']}, not {sums}")
    # A filter chooses pages, which are as full as all blocks make them.
    all_bytes = sum(row["bytes"] for row in found["fullness"])
    expect(all_bytes >= told["live_bytes"] if len(told["filters"]) > 1 else all_bytes == told["live_bytes"], where)

    def text(function):
        return function[0] + ("" if function[2].startswith("+") or not function[0] else "!") + function[2]

    def about(row):
        return [row["pages"], row.get("live_bytes", row.get("bytes")), row.get("live_blocks", row.get("blocks")), row["oldest_ns"] if "oldest_ns" in row else round(row["oldest_us"] * 1000)]

    expect(found["keeper_count"] == len(told["keepers"]) and found["stack_count"] == len(told["keeper_stacks"]), where)
    for ours, theirs in zip(found["keepers"], told["keepers"]):
        expect(about(ours) == about(theirs) and text(ours["function"]) == theirs["function"], f"{where}: {ours}, not {theirs}")
    for ours, theirs in zip(found["stacks"], told["keeper_stacks"]):
        expect(about(ours) == about(theirs) and len(ours["frames"]) == len(theirs["stack"]), f"{where}: {ours}, not {theirs}")
    runs, page, process = found["runs"], 0, None
    expect({len(column) for column in runs.values()} == {told["run_count"]} and found["left_out"] == 0, where)
    for i, row in enumerate(told["runs"]):
        page = runs["gap"][i] + (page if process == runs["process"][i] else 0)
        process = runs["process"][i]
        ours = [process, f"{page * 4096:#x}", runs["pages"][i], levels[runs["fullness"][i]], runs["bytes"][i], runs["blocks"][i]]
        expect(ours == [row[key] for key in ("process", "address", "pages", "fullness", "live_bytes", "live_blocks")], f"{where}: {ours}, not {row}")
        if "function" in row:
            expect(text(found["functions"][runs["function"][i] - 1]) == row["function"] and runs["oldest_ns"][i] == round(row["oldest_us"] * 1000), f"{where}: {row}")
        else:
            expect(runs["function"][i] == 0, f"{where}: {row}")
        page += runs["pages"][i]


PROGRAM = """#include <stdlib.h>
#include <string.h>
static void *keep(int n) { return malloc(n); }
void *make(int n)
{
	char *p = keep(n);
	char *q = keep(2 * n);
	free(n % 3 ? p : NULL);
	return q;
}
int deep(int n) { return n ? deep(n - 1) + (malloc(n) != 0) : 0; }
int main(void)
{
	for (int i = 0; i < 50; i++)
		make(i + 1);
	make(100000);
	deep(20);
CALLS	return 0;
}
"""


def lines():
    """Source lines with bytes beside, of files that frames name: those of `heap -lines`. What is no text of a regular file is refused, at once."""
    folder = pathlib.Path("sources").resolve()
    folder.mkdir()
    odd = ["fifo", "folder", "missing", "binary", "large", "device", "link", "hostile", "short"]
    calls = "".join(f"\tin_{name}();\n" for name in odd)
    path_of = {name: f"{folder}/{name}.c" for name in odd} | {"device": "/dev/zero"}
    source = folder / "plain.c"
    declared = "".join(f"void in_{name}(void); " for name in odd)
    source.write_text(PROGRAM.replace("CALLS", calls).replace("int main", declared + "int main"))
    extra = "".join(f'#line 3 "{path_of[name]}"\nvoid in_{name}(void) {{ (void)!malloc(64); }}\n' for name in odd)
    (folder / "odd.c").write_text("#include <stdlib.h>\n" + extra)
    subprocess.run([os.environ.get("CC", "cc"), "-g", "-O0", "-w", "-o", "lines", source, folder / "odd.c"], check=True)
    os.mkfifo(path_of["fifo"])
    pathlib.Path(path_of["folder"]).mkdir()
    pathlib.Path(path_of["binary"]).write_bytes(b"a\nb\n\0\n")
    with open(path_of["large"], "wb") as file:
        file.truncate((16 << 20) + 1)
    pathlib.Path(path_of["link"]).symlink_to(source)
    pathlib.Path(path_of["hostile"]).write_bytes(b"<script>alert(1)</script>\n\x1b[31m\xff\xe2\x80\xae\n" + b"\xc3\xa9" * 5000 + b"\n")
    pathlib.Path(path_of["short"]).write_bytes(b"one\ntwo")
    subprocess.run([XHEAP, "record", "-q", "-o", "lines.xht", "./lines"], check=True)
    with served("--no-open", "lines.xht") as server:
        duration = server.json("/trace?trace=0")["duration_ns"]
        for query, words in (("", ()), ("&classes=AIFO", ("-window", "AIFO", "0", f"{duration}ns")), (f"&from=0&to={duration}&filter=-size%0A0%0A40", ("-size", "0", "40"))):
            if "classes" in query:
                query += f"&from=0&to={duration}"
            wanted = {}
            for row in json.loads(xheap("heap", "lines.xht", "-stacks", "-lines", "-noDefaultCull", "-top", "100000", *words, "-format", "json"))["actions"][0]["rows"]:
                for line in {frame["line"] for frame in row["stack"] if frame.get("file") == str(source)}:
                    bytes_, blocks = wanted.get(line, (0, 0))
                    wanted[line] = (bytes_ + row["total_bytes"], blocks + row["total_count"])
            for function, line in (("make", 7), ("keep", 3), ("deep", 11), ("main", 16)):
                found = server.json(f"/source?trace=0&function=lines!{function}{query}&line={line}")
                expect(found["line"] == line and found["first"] == max(1, line - 7) and len(found["lines"]) == 15 and not found["is_newer"], found)
                text = source.read_text().split("\n")
                for number, row in enumerate(found["lines"], found["first"]):
                    expect(row["text"] == text[number - 1][:400], f"{number}: {row}")
                    expect((row["bytes"], row["blocks"]) == wanted.get(number, (0, 0)), f"{query} line {number}: {row}, not {wanted.get(number)}")
        expect(server.json("/source?trace=0&function=lines!main")["line"] == 16, "the line with most bytes")
        made = [server.json(f"/block?trace=0&id={row['id']}")["made"] for row in server.json("/blocks?trace=0&sort=made&offset=0&limit=100")["rows"]]
        expect({frame[4] for frames in made for frame in frames if frame[1] == "make"} == {6, 7}, f"a block's frames have the line of their call: {made}")
        for name, why in (("fifo", "no regular file"), ("folder", "no regular file"), ("device", "no regular file"), ("missing", "No such file or directory; its lines are shown if it lies there"), ("binary", "is no text"), ("large", "larger than 16 MiB")):
            begin = time.monotonic()
            status, _, body = server.ask(f"/source?trace=0&function=lines!in_{name}")
            expect(status == 422 and why.encode() in body and time.monotonic() - begin < PATIENCE_S / 2, f"{name}: {status} {body}")
        expect(server.json("/source?trace=0&function=lines!in_link")["lines"][2]["text"].startswith("static void *keep"), "a link leads to a file")
        hostile = server.json("/source?trace=0&function=lines!in_hostile")["lines"]
        expect(hostile[0]["text"] == "<script>alert(1)</script>" and len(hostile[2]["text"]) <= 400, hostile)
        expect(server.json("/source?trace=0&function=lines!in_short")["lines"] == [{"text": "one", "bytes": 0, "blocks": 0}, {"text": "two", "bytes": 0, "blocks": 0}], "a line that is not there")
        for query, status in (("source", 422), ("source?function=/etc/passwd", 422), ("source?path=/etc/passwd", 422), ("source?function=lines!nothing", 422),
                              ("source?function=lines!make&line=99", 422), ("source?function=lines!make&line=-1", 400), ("source?function=lines!make&node=x!y", 422)):
            expect(server.ask("/" + query)[0] == status, query)
        os.utime(source)
        expect(server.json("/source?trace=0&function=lines!make")["is_newer"], "the file was changed")


def runs():
    """Runs of each side: said to the page, and to nobody else."""
    traces = [TRACES / "c.xht", TRACES / "libcxx.xht", TRACES / "rust.xht"]
    with served("--no-open", *traces[:2], "--", traces[2]) as server:
        expect([server.json(f"/trace?trace={i}")["runs"] for i in range(3)] == [2, 2, 2], "runs")
    with served("--no-open", *traces) as server:
        expect("runs" not in server.json("/trace?trace=0"), "no sides")
    for words, said in ((["--", traces[0], "--"], "a FILE is missing behind --"), ([traces[0], "--", traces[1], "--", traces[2]], "a second --"), ([traces[0], "--"], "a FILE is missing behind --")):
        expect(said in xheap("view", "--no-open", *words, status=2), f"{words}")
    expect("octet-stream" in xheap("view", traces[0], "--", traces[1], "--html", "-"), "a page of runs")


def several():
    """Several traces; a damaged one says so and shows what it has; what is no trace says so; names are data."""
    hostile = "<script>alert(1)<\u202eevil\x1b]0;.xht"
    shutil.copy(TRACES / "c.xht", hostile)
    whole = (TRACES / "python.xht").read_bytes()
    pathlib.Path("cut.xht").write_bytes(whole[:len(whole) * 3 // 4])
    pathlib.Path("none.xht").write_text("no trace\n")
    with served("--no-open", hostile, "cut.xht", "none.xht", TRACES / "rust.xht") as server:
        first = server.json("/trace?trace=0")
        expect(first["path"] == hostile and first["traces"][0]["name"] == hostile and len(first["traces"]) == 4, first["traces"])
        expect(server.json("/trace?trace=3")["command"] != first["command"], "one answer for two traces")
        cut = server.json("/trace?trace=1")
        expect("cut at byte" in cut["damage"] and any(row["kind"] == "damage" for row in cut["state"]), cut["state"])
        expect(server.ask("/cells?trace=1")[0] == 200, "cells of a damaged trace")
        for _ in range(2):
            status, _, body = server.ask("/trace?trace=2")
            expect(status == 422 and b"none.xht" in body, f"{status} {body}")
    expect("No such file" in xheap("view", "missing.xht", status=2), "a missing trace")


# ---- the command ----


def ends():
    """It ends when nobody asks, and by signals; the file that opens a browser is this user's alone, and no command line has the token."""
    pathlib.Path("bin").mkdir()
    opener = pathlib.Path("bin/xdg-open")
    opener.write_text("#!/bin/sh\nstat -c %a \"$1\" >opened.mode\ncat \"$1\" >opened.page\necho \"$@\" >opened.tmp\nmv opened.tmp opened\n")
    opener.chmod(0o755)
    environment = os.environ | {"PATH": f"{pathlib.Path('bin').resolve()}:{os.environ['PATH']}", "XDG_RUNTIME_DIR": os.getcwd()}
    with served("--open", TRACES / "c.xht", environment=environment) as server:
        end = time.monotonic() + PATIENCE_S
        while not os.path.exists("opened") and time.monotonic() < end:
            time.sleep(0.02)
        path = pathlib.Path("opened").read_text().strip()
        expect(server.token not in path and os.path.exists(path), f"{path} has the token, or is gone")
        server.json("/trace?trace=0")
        end = time.monotonic() + PATIENCE_S
        while os.path.exists(path) and time.monotonic() < end:
            time.sleep(0.02)
        expect(not os.path.exists(path), "the file stays, though a page has the token")
        expect(pathlib.Path("opened.mode").read_text() == "600\n" and server.token in pathlib.Path("opened.page").read_text(), "the file")
    for name in ("opened", "opened.page", "opened.mode"):
        os.remove(name)
    with served("--open", TRACES / "c.xht", environment=environment):
        end = time.monotonic() + PATIENCE_S
        while not os.path.exists("opened") and time.monotonic() < end:
            time.sleep(0.02)
        path = pathlib.Path("opened").read_text().strip()
    expect(not os.path.exists(path), "the file stays at the end")
    process = subprocess.Popen([XHEAP, "view", "--no-open", "--idle", "300ms", TRACES / "c.xht"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # The files of the page are for everybody; whoever fetches them does not keep the server alive.
    server, end = Server(process), time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError, http.client.HTTPException):
            server.ask("/", X_Xheap_Token=None)
        time.sleep(0.05)
    said = process.communicate(timeout=PATIENCE_S)[1]
    expect(process.returncode == 0 and "nobody has asked for 300 ms" in said, f"{process.returncode} {said}")
    with served("--no-open", TRACES / "c.xht") as server:
        expect("cannot use port" in xheap("view", "--port", server.port, TRACES / "c.xht", status=2), "a port in use")
        over_ssh = subprocess.Popen([XHEAP, "view", "--idle", "1ms", TRACES / "c.xht"], stdout=subprocess.PIPE, text=True, env=os.environ | {"SSH_CONNECTION": "x"})
        expect(re.search(r"ssh -N -L (\d+):127\.0\.0\.1:\1 ", over_ssh.communicate(timeout=PATIENCE_S)[0]), "no line for ssh")


def html():
    """The self-contained file has the server's answers, runs nothing but its one script, and keeps to its size."""
    hostile = "</script><script>alert(1)</script>".replace("/", "\u2215") + ".xht"
    shutil.copy(TRACES / "processes.xht", hostile)
    xheap("view", hostile, TRACES / "python.xht", "--html", "page.html")
    expect(stat.S_IMODE(os.stat("page.html").st_mode) == 0o600, "others may read it")
    page = pathlib.Path("page.html").read_text()
    expect(page.count("<script") == 2 and "alert(1)" not in page and "src=" not in page.split("<script")[0].replace("script-src", ""), "more than one script")
    parts = traces_of(page)
    expect(len(parts) == 2, f"{len(parts)} traces")
    with served("--no-open", hostile, TRACES / "python.xht") as server:
        for number, (trace, cells) in enumerate(parts):
            expect(any("this file has neither" in row["text"] for row in trace["state"]), trace["state"])
            trace["state"] = [row for row in trace["state"] if row["kind"] != "file"]
            expect(trace == server.json(f"/trace?trace={number}") and cells == server.ask(f"/cells?trace={number}&n=256")[2], f"trace {number} differs")
    whole = (TRACES / "python.xht").read_bytes()
    pathlib.Path("cut.xht").write_bytes(whole[:len(whole) * 3 // 4])
    expect(re.search(r"xheap: cut\.xht is cut at byte \d+: ", xheap("view", "cut.xht", "--html", "cut.html")), "a cut trace is not told")
    os.remove("cut.html")
    expect(xheap("view", TRACES / "c.xht", "--html", "-").startswith("<!DOCTYPE html>"), "to standard output")
    report = subprocess.run([XHEAP, "report", TRACES / "python.xht", "-format", "html"], stdout=subprocess.PIPE, check=True).stdout
    xheap("view", TRACES / "python.xht", "--html", "page2.html")
    expect(report == pathlib.Path("page2.html").read_bytes(), "report writes another page")
    os.remove("page2.html")
    expect("neither filters" in xheap("report", TRACES / "python.xht", "-format", "html", "-size", "1", "2", status=2), "a filter")
    expect("more than the 1.0 KiB that it may have" in xheap("view", TRACES / "c.xht", "--html", "small.html", "--limit", "1K", status=2), "a limit")
    size = os.path.getsize("page.html")
    xheap("view", hostile, TRACES / "python.xht", "--html", "small.html", "--limit", size - 1)
    expect(os.path.getsize("small.html") < size, "the limit is no limit")
    before = pathlib.Path(hostile).read_bytes()
    xheap("view", hostile, "--html", hostile, status=2)
    expect(pathlib.Path(hostile).read_bytes() == before, "the trace was overwritten")
    expect(sorted(name for name in os.listdir() if "html" in name) == ["page.html", "small.html"], os.listdir())


def kept():
    """What a page asks first is kept in the index, for the same names and paths; damaged, it is made anew."""
    environment = os.environ | {"XHEAP_INDEX_EVENTS": "1", "XDG_CACHE_HOME": os.path.abspath("kept-cache")}
    shutil.copy(TRACES / "python.xht", "kept.xht")
    first = ("/trace?trace=0", "/cells?trace=0&n=256", "/cells?trace=0&n=512")

    def answers(path):
        with served("--no-open", path, environment=environment) as server:
            return [server.ask(target)[2] for target in first]

    before = answers("kept.xht")
    index, = pathlib.Path("kept-cache").rglob("*.index")
    content = index.read_bytes()
    expect(answers("kept.xht") == before, "the index has other answers")
    expect(index.read_bytes() == content, "what is kept was written again")
    expect(json.loads(answers("./kept.xht")[0])["path"] == "./kept.xht", "the answer is that of another path")
    expect(index.read_bytes() != content, "the other answer is not kept")
    changed = bytearray(index.read_bytes())
    changed[-1] ^= 1
    index.write_bytes(changed)
    expect(answers("./kept.xht")[1:] == before[1:] and index.read_bytes() != bytes(changed), "a damaged answer stays")


def class_sums(head, columns):
    """Of the window of all intervals: blocks and bytes by class, thread, innermost function and classes of size and lifetime."""
    last, sums = len(head["bounds"]) - 1, {}
    for i, node in enumerate(columns["node"]):
        is_freed = columns["kind"][i] == 0 and columns["end"][i] <= last
        key = (columns["birth"][i] > 0, is_freed, columns["thread"][i], columns["function"][node], columns["size"][i], columns["life"][i])
        blocks, size = sums.get(key, (0, 0))
        sums[key] = (blocks + columns["blocks"][i], size + columns["bytes"][i])
    return sums


def fine():
    """Cells of a long range are sums of finer ones, with the same sums as a pass over its blocks; its inner bounds are theirs."""
    environment = os.environ | {"XHEAP_INDEX_EVENTS": "1000", "XDG_CACHE_HOME": os.path.abspath("fine-cache"), "PYTHONMALLOC": "malloc"}
    subprocess.run([XHEAP, "record", "-q", "-o", "fine.xht", "--", sys.executable, "-c", "for _ in range(2000000): bytearray(600)"], check=True, env=environment)
    everything = urllib.parse.quote("-size\n0\n1000000000000")
    for _ in ("made", "kept"):  # the second server reads them
        with served("--no-open", "fine.xht", environment=environment) as server:
            duration = server.json("/trace?trace=0")["duration_ns"]
            within = duration // 2 + 1
            for begin, end in ((-1, duration), (duration // 7, duration), (duration // 3, duration // 3 * 2)):
                target = f"/cells?trace=0&n=100&from={begin}&to={end}&bounds={within}"
                found, wanted = (decode_cells(server.ask(target + words)[2]) for words in ("", f"&filter={everything}"))
                expect(class_sums(*found) == class_sums(*wanted), f"{target}: other sums")
                for name, whole in (("max_bytes", max), ("calls", sum)):
                    expect(whole(found[1][name]) == whole(wanted[1][name]), f"{target}: {name}")
                bounds = set(found[0]["bounds"])
                expect({begin, end, within} <= bounds, f"{target}: {bounds}")
                parts = {(duration + 1) * i // 16384 - 1 for i in range(16385)}
                expect(len(bounds - parts) <= 4 < len(set(wanted[0]["bounds"]) - parts), f"{target}: bounds are not those of finer cells")


def main():
    failed, most_files = 0, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    for test in (files, others, bad_requests, oversized, crowd, strangers, disturbed, numbers, large, marks, evidence, frees, frees_of_functions, blocks, maps, lines, runs, several, kept, fine, ends, html):
        if sys.argv[1:] and test.__name__ not in sys.argv[1:]:
            continue
        try:
            test()
        except (AssertionError, OSError, ValueError, LookupError, http.client.HTTPException) as error:
            print(f"{test.__name__}: {type(error).__name__}: {error}")
            failed = 1
    sys.exit(failed)


main()
