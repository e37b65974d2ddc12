#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap fleet over ClickHouse, two shards of the server that is installed and chdb, which speaks the current dialect: its rows are those of a directory with the same pushes; pushes that came
twice, a shard that is down, a server that is none, or fails in the middle; users and https."""
import collections
import contextlib
import csv
import http.server
import io
import json
import os
import pathlib
import random
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

XHEAP, SOURCE = os.environ["XHEAP"], pathlib.Path(os.environ["SOURCE"])
sys.path.insert(0, str(SOURCE / "tests/live"))
sys.path.insert(0, str(SOURCE / "tests/python"))
import packages  # noqa: E402
from pages import decode_cells, live_of, traces_of  # noqa: E402
from pushed_files import PROGRAM, Rows, Stacks, sampled, write  # noqa: E402

os.environ["XDG_STATE_HOME"] = str(pathlib.Path("state").absolute())
for name in ("OTEL_RESOURCE_ATTRIBUTES", "http_proxy"):
    os.environ.pop(name, None)
PERIOD, MIB = 512 << 10, 1 << 20
# Each function of the first ten has two stacks, which the same hosts may have.
STACKS = Stacks([(f"web!buffer{i}", f"web!{caller}", "web!main") for caller in ("handle", "fill") for i in range(10)] + [("web!buffer0", "web!other", "web!main"), ("web!leaked", "web!session", "web!main")])


def expect(condition, what):
    if not condition:
        raise SystemExit(f"{what}")


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        expect(time.monotonic() < end, "pushes do not arrive")
        time.sleep(0.2)


def run(*words, status=0):
    done = subprocess.run([XHEAP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    expect(done.returncode == status, f"xheap {words}: status {done.returncode}: {done.stdout[:2000]}{done.stderr}")
    return done


def ask(question, place, *words):
    return json.loads(run("fleet", question, place, *words, "--format", "json").stdout)


# ---- servers ----

CONFIG = """<yandex>
 <logger><level>error</level><console>0</console><log>{room}/log</log><errorlog>{room}/errors</errorlog></logger>
 <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
 <path>{room}/data/</path><tmp_path>{room}/tmp/</tmp_path><mark_cache_size>67108864</mark_cache_size><uncompressed_cache_size>0</uncompressed_cache_size>
 <max_concurrent_queries>20</max_concurrent_queries><users_config>{room}/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
 <remote_servers><pair>{shards}</pair></remote_servers>
</yandex>
"""
SHARD = "<shard><replica><host>127.0.0.1</host><port>{}</port></replica></shard>"
USERS = """<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage><max_threads>2</max_threads></default><reading><readonly>2</readonly></reading></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
<reader><password>sesame</password><networks><ip>127.0.0.1</ip></networks><profile>reading</profile><quota>default</quota></reader></users>
<quotas><default></default></quotas></yandex>
"""


def ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    found = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return found


class Server:
    """A server of its own process."""

    def __init__(self, name, http_port, words):
        self.room, self.http, self.words = pathlib.Path(name).absolute(), http_port, words
        self.room.mkdir(exist_ok=True)

    def begin(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.room)
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                self.ask("SELECT 1")
                return
            expect(time.monotonic() < end and self.process.poll() is None, f"{self.words} does not begin")
            time.sleep(0.1)

    def end(self):
        self.process.kill()
        self.process.wait()

    def ask(self, sql, data=b"", database="default"):
        query = urllib.parse.urlencode({"query": sql, "database": database} if data else {"database": database})
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.http}/?{query}", data or sql.encode()), timeout=60) as answer:
            return answer.read().decode()

    def place(self, database):
        return f"clickhouse+http://127.0.0.1:{self.http}/{database}"


class Shard(Server):
    """One of two of the cluster `pair`."""

    def __init__(self, number, http_port, tcp):
        super().__init__(f"shard{number}", http_port, ["clickhouse-server", "--config-file=config.xml"])
        for name in ("data", "tmp"):
            (self.room / name).mkdir()
        (self.room / "users.xml").write_text(USERS)
        (self.room / "config.xml").write_text(CONFIG.format(room=self.room, http=http_port, tcp=tcp[number], shards="".join(map(SHARD.format, tcp))))
        self.begin()


class Both:
    """The same pushes in a directory and in a database. Hosts push to one shard or the other."""

    def __init__(self, name, shards, cluster):
        self.place, self.name, self.shards, self.sessions, self.count = name, name, shards if cluster else shards[:1], {}, 0
        os.mkdir(name)
        for shard in self.shards:
            run("fleet", "init", shard.place(name), *(["--cluster", "pair"] if cluster else []))
        self.database = shards[0].place(name)

    def write(self, values, host="h1", index=0, since=None, until=None, times=1, is_whole=None, stacks=STACKS, **words):
        write(self.place, stacks, values, host=host, index=index, since=since, until=until, **words)
        key = (host, *sorted(words.items()))
        if key not in self.sessions:
            self.sessions[key] = Rows(stacks, host=host, **words)
        row = self.sessions[key].push(values, index, since, until, is_whole)
        for i in range(times):
            self.shards[(sum(host.encode()) + i) % len(self.shards)].ask("INSERT INTO arrivals FORMAT RowBinary", row, self.name)
        self.count += times if len(self.shards) > 1 else 1

    def settle(self):
        """Wait until all that was pushed is in the tables. A server may drop what has come twice to it."""
        table = "pushes_local" if len(self.shards) > 1 else "pushes"
        wait_for(lambda: sum(int(shard.ask(f"SELECT uniqExact(session, push) FROM {table}", database=self.name)) for shard in self.shards) == self.count)

    def compare(self, question, *words):
        """Return the answer that both give."""
        answers = [json.loads(run("fleet", question, place, *words, "--format", "json").stdout) for place in (self.place, self.database)]
        for answer in answers:
            # A directory keeps one file of a push; rows that are equal in rank stand in any order.
            for key in ("place", "pushed_twice"):
                answer.pop(key)
            answer["rows"].sort(key=lambda row: json.dumps({key: value for key, value in row.items() if not isinstance(value, float)}))
        same(*answers, f"{question} {words}")
        return answers[1]


def same(one, other, where):
    """Sums of floating point differ in their last digits."""
    if isinstance(one, dict):
        expect(one.keys() == other.keys(), f"{where}: {one.keys()} {other.keys()}")
        for key in one:
            same(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list):
        expect(len(one) == len(other), f"{where}: {len(one)} and {len(other)}: {one[:3]} {other[:3]}")
        for i, pair in enumerate(zip(one, other)):
            same(*pair, f"{where}[{i}]")
    elif isinstance(one, float) or isinstance(other, float):
        expect(abs(one - other) <= 1e-6 * (abs(one) + abs(other)) + 1e-3, f"{where}: {one} and {other}")
    else:
        expect(one == other, f"{where}: {one!r} and {other!r}")


# ---- the same rows ----

def check_same(name, shards, cluster=False):
    """Samples of three versions on thirty hosts, some with two sessions, restarts, services, programs that end, and pushes that came twice: all questions have the same answers."""
    both, chance = Both(name, shards, cluster), random.Random(3)
    twice = 0
    for host in range(30):
        for session in range(1 + (host % 5 == 0)):
            load = chance.lognormvariate(0, 0.3)
            for index in range(4):
                values = []
                for i in range(len(STACKS.stacks)):
                    leaks = i == len(STACKS.stacks) - 1
                    mean = (2 * MIB * (index + 1) if host % 3 == 2 else 0) if leaks else 3 * MIB * load * (i % 4)
                    count, size = sampled(chance, 300, mean / 300, PERIOD)
                    made = sampled(chance, 300, chance.random() * 1000 if index % 2 else 0, PERIOD)
                    values.append((*made, count, size) if count or any(made) else None)
                # Programs that have ended by the last push, or the one before, in the middle of what the first one began.
                if index >= {4: 2, 5: 3}.get(host % 6, 4):
                    values = [None] * len(values)
                times = 2 if host % 11 == 4 and index == 2 else 1
                twice += times - 1
                both.write(values, f"h{host}", index, version=f"v{host % 3}", service=f"shop{host % 2 if host % 7 else 0}", session=f"s{session}", period=PERIOD, times=times, is_whole=index in (0, 3))
    both.settle()
    for question, *words in (
            ("top",), ("top", "--by", "function"), ("top", "--by", "service"), ("top", "--by", "host"), ("versions",), ("growth",), ("growth", "--by", "function"), ("growth", "--by", "host"), ("growth", "--by", "service"), ("growth", "leaked"), ("growth", "web!buffer*", "--version", "v1"), ("diff", "--after", "v2", "--by", "service"), ("growth", "--service", "shop0"),
            ("top", "--service", "shop1", "--version", "v2"), ("top", "--host", "h10"), ("diff", "--after", "v2"), ("diff", "--after", "v2", "--before", "v1", "--by", "function"),
            ("diff", "--after", "v1", "--service", "shop1"), ("hosts", "leaked"), ("hosts", "web!"), ("hosts", "web!buffer*")):
        answer = both.compare(question, *words)
        expect(answer["rows"] and answer["complete"], f"{question} {words}: {answer}")
        expect(question != "growth" or words or answer["judged"] > 0, f"{question} {words}: {answer['judged']} rows grew")
    expect(not both.compare("hosts", "nosuch")["rows"], "a frame that there is not")
    found = ask("top", both.database)["pushed_twice"]
    expect(found == twice > 0 if cluster else found <= twice, f"{found} pushes came twice, not {twice}")
    said = run("fleet", "sql", "top", both.database).stdout
    expect("FROM samples WHERE" in said and "FROM pushes WHERE" in said and "FROM stacks WHERE" in said, said)


def check_pages(name, shards, cluster=False):
    """Of a page, what lives at each bound is what had arrived by then, epoch after epoch, restarts and copies among them; its end is that of top."""
    both, chance, wanted = Both(name, shards, cluster), random.Random(5), {}
    for index in range(4):
        for host in range(6):
            values = [(3, 300, 2, 1 + chance.randrange(10 ** 6)) if chance.random() < 0.8 else None for _ in STACKS.stacks]
            both.write(values, f"h{host}", index, version=f"v{host % 2}", is_whole=index % 2 == 0, times=2 if host == 4 else 1)
            wanted[f"h{host}", index] = [row[3] if row else 0 for row in values]
        both.settle()
        time.sleep(2.1)
    # When each push arrived: where it is whole as its own table has it, else as that of its samples, which may be a second later.
    arrived, end = collections.defaultdict(list), "_local" if len(both.shards) > 1 else ""
    for shard in both.shards:
        pushes = [line.split("\t") for line in shard.ask(f"SELECT epoch, push, host, whole, arrived FROM pushes{end}", database=name).splitlines()]
        samples = [line.split("\t") for line in shard.ask(f"SELECT epoch, push, min(arrived) FROM samples{end} GROUP BY epoch, push", database=name).splitlines()]
        of_samples = {(epoch, push): int(at) for epoch, push, at in samples}
        for epoch, push, host, whole, at in pushes:
            arrived[host, int(push)].append(int(at) if push == whole else of_samples.get((epoch, push), int(at)))
    arrived = {key: min(times) for key, times in arrived.items()}
    run("fleet", "top", both.database, "--html", f"{name}.html")
    (facts, cells), = traces_of(pathlib.Path(f"{name}.html").read_text())
    live, bounds, first = live_of(facts, cells), decode_cells(cells)[0]["bounds"], min(arrived.values())
    frames = [tuple(stack) for stack in STACKS.stacks]
    expect(len(bounds) > 6, bounds)
    for bound, until in list(enumerate(bounds))[1:]:
        for version in range(2):
            for i, stack in enumerate(frames):
                there = 0
                for host in range(version, 6, 2):
                    seen = [index for index in range(4) if (arrived[f"h{host}", index] - first) * 10 ** 9 <= until]
                    there += wanted[f"h{host}", seen[-1]][i] if seen else 0
                found = live[f"web v{version}", stack][bound]
                expect(found == there, f"v{version} {stack} at {until}: {found}, not {there}; {arrived}")
    top = ask("top", both.database)
    expect(facts["totals"]["outstanding_bytes"] == top["totals"]["outstanding_bytes"] == sum(row[-1] for row in live.values()) and facts["fleet"][3] == both.database, facts["totals"])


def check_real(shard):
    """A program's trace, pushed twice by pushers of their own, and once more after it went on: functions have what xheap heap says."""
    pathlib.Path("steps.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-o", "steps", "steps.c"], check=True)
    place = shard.place("real")
    run("fleet", "init", place)
    program = subprocess.Popen(["./steps"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    run("start", "real", "-q", "-p", program.pid, "-o", "real.xht", "--sample", "4K")
    for count in (1, 2):
        program.stdin.write("\n")
        program.stdin.flush()
        program.stdout.readline()
        for _ in range(count):
            run("push", "real", place, "--once", "-q", "--service", "steps")
    run("stop", "real", "-q")
    program.stdin.close()
    program.wait()
    figures = ("outstanding_bytes", "outstanding_count", "total_bytes", "total_count")
    rows = csv.DictReader(io.StringIO(run("heap", "real.xht", "-frames", "-format", "csv").stdout))
    wanted = {row["frame"]: [int(row[key]) for key in figures] for row in rows if any(int(row[key]) for key in figures)}
    wait_for(lambda: shard.ask("SELECT count() FROM pushes", database="real") == "3\n")
    answer = ask("top", place, "--by", "function")
    found = {row["function"]: [row[key] for key in figures] for row in answer["rows"]}
    expect(found == wanted and answer["sessions"] == 1, f"{found}, not {wanted}")
    # The trace itself, under another service, and again: that is the same push.
    for _ in range(2):
        run("fleet", "load", place, "real.xht", "--service", "later", "--host", "elsewhere")
    wait_for(lambda: int(shard.ask("SELECT uniqExact(session, push) FROM pushes", database="real")) == 4)
    later = ask("top", place, "--by", "function", "--service", "later")
    expect({row["function"]: [row[key] for key in figures] for row in later["rows"]} == wanted and later["hosts"] == 1, later)
    expect(ask("top", place, "--by", "host", "--service", "later")["rows"][0]["host"] == "elsewhere", later)
    said = run("fleet", "load", place, "real.xht", "nosuch.xht", status=2).stderr
    expect("nosuch.xht" in said and "1 of 2 traces are loaded" in said, said)
    expect(ask("hosts", place, "steps!kept", "--service", "steps")["rows"][0]["outstanding_bytes"] == found["steps!kept"][0], found)


def check_file_versions(shard):
    """A stack is the same one in versions of a program whose files have other names."""
    place = shard.place("files")
    run("fleet", "init", place)
    for version in ("1.4", "1.5"):
        shutil.copy("steps", f"steps-{version}")
        subprocess.run([XHEAP, "record", "-q", "-o", f"{version}.xht", "--", f"./steps-{version}"], input="\n" * (2 if version == "1.5" else 1), stdout=subprocess.DEVNULL, check=True, text=True)
        run("fleet", "load", place, f"{version}.xht", "--service", "steps", "--version", version, "--host", f"h{version}")
    wait_for(lambda: shard.ask("SELECT count() FROM pushes", database="files") == "2\n")
    for by, name in (("function", "steps!kept"), ("stack", ["steps!kept", "steps!main"])):
        rows = ask("top", place, "--by", by)["rows"]
        kept = [row["total_bytes"] for row in rows if row[by][:len(name)] == name]
        expect(kept == [3 * 2000 * 3000], rows)


def check_named(shard):
    """A row that is not shown, behind many that shrank, is named if it grew too much."""
    both, count = Both("named", [shard], False), len(STACKS.stacks)
    for host in range(2):
        both.write([(1, 1000 * (i + 2), 1, 1000 * (i + 2)) for i in range(count - 1)] + [None], f"old{host}", version="1")
        both.write([None] * (count - 1) + [(1, 100, 1, 100)], f"new{host}", version="2")
    both.settle()
    for place in (both.place, both.database):
        done = run("fleet", "diff", place, "--after", "2", "--before", "1", "--top", "1", "--fail-above", "0", status=1)
        expect("web!leaked of web grew by 100 B per host" in done.stderr, done.stderr)


def check_time(shard):
    """Only the last pushes, by the server's clock; of a session whose beginning is lost nothing is known, and that is said."""
    both = Both("times", [shard], False)
    one = [(1, 100, 1, 1000)] + [None] * (len(STACKS.stacks) - 1)
    for index in range(3):
        both.write(one, "wrong-clock", index)
    lost = Rows(STACKS, host="lost")
    for index in range(3):
        row = lost.push(one if index else [None] + [(1, 100, 1, 500)] * (len(STACKS.stacks) - 1), index)
        if index:
            shard.ask("INSERT INTO arrivals FORMAT RowBinary", row, "times")
            both.count += 1
    both.settle()
    # As of a moment: what was answered then.
    questions = [("top",), ("top", "--by", "host"), ("growth",), ("growth", "--by", "host"), ("versions",), ("hosts", "web!")]
    before, moment = [ask(question, both.database, *words) for question, *words in questions], time.time_ns()
    time.sleep(2.1)
    for index in range(3, 5):
        both.write([(1, 100, 1, 7000)] + [(1, 100, 1, 7000)] * (len(STACKS.stacks) - 1), "wrong-clock", index, is_whole=index == 4)
    both.settle()
    until = ("--until", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime((moment + 10 ** 9) // 10 ** 9)))
    for (question, *words), wanted in zip(questions, before):
        found = ask(question, both.database, *words, *until)
        expect(found["rows"] == wanted["rows"] and found["totals"] == wanted["totals"] and found["pushes"] == wanted["pushes"], f"{question} {words}: {found} {wanted}")
        expect(ask(question, both.database, *words)["totals"] != wanted["totals"], f"{question} {words}: later pushes")
    for words, size in (((), 7000 * len(STACKS.stacks)), (until, 1000)):
        run("fleet", "top", both.database, "--html", "until.html", *words)
        (facts, _), = traces_of(pathlib.Path("until.html").read_text())
        expect(facts["totals"]["outstanding_bytes"] == size, f"{words}: {facts['totals']}")
    for index in range(5, 7):
        both.write(one, "wrong-clock", index)
    both.settle()
    answer = ask("top", both.database, "--last", "1h")
    expect(answer["totals"]["outstanding_bytes"] == 1000 and answer["missing"] == [{"what": "lost, s of web", "why": "pushes are missing before its last one"}], answer)
    time.sleep(3)
    answer = ask("top", both.database, "--last", "1s")
    expect(answer["row_count"] == 0 and answer["old_sessions"] == 2, answer)


# ---- servers that fail ----

def check_down(shards):
    """A shard that is down: the answer is that of the other one, and says so. When it is there again, the answer is whole."""
    place = shards[0].place("same_pair")
    whole = ask("top", place, "--by", "host")
    shards[1].end()
    part = ask("top", place, "--by", "host")
    expect(whole["complete"] and not part["complete"] and 0 < part["row_count"] < whole["row_count"], f"{part['row_count']} of {whole['row_count']}")
    expect(part["missing"] == [{"what": "1 of 2 shards of pair", "why": "no answer"}], part["missing"])
    expect("1 of 2 shards of pair: no answer" in run("fleet", "growth", place).stdout, "growth")
    shards[1].begin()
    expect(ask("top", place, "--by", "host") == whole, "all shards again")


def check_nonsense():
    """What is no ClickHouse, or answers with anything, is told in a line; nothing waits for ever."""
    answers = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"clickhouse+http://127.0.0.1:{server.server_port}/heaps"
    chance = random.Random(5)
    for listed, said in (
            ([(200, b"<html>hello")], "is no ClickHouse"), ([(200, b"")], "is no ClickHouse"), ([(404, b"not here \x1b[31m")], "404: not here ?[31m"), ([(200, b"18.16.1\n"), (500, b"Code: 241, memory")], "Code: 241"),
            ([(200, b"21.8.1\n"), (200, bytes(9)), (200, b"")], "nothing was pushed there"), ([(200, b"18.16.1\n"), (200, b"\xff" * 30)], "cannot be read"),
            *(([(200, b"18.16.1\n")] + [(200, chance.randbytes(chance.randrange(2000))) for _ in range(8)], "") for _ in range(20))):
        answers[:] = listed
        done = subprocess.run([XHEAP, "fleet", "top", place], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        # Bytes of chance may be an answer of no sessions.
        expect(done.returncode == 2 if said else done.returncode in (0, 2), f"{listed}: status {done.returncode}: {done.stderr}")
        expect(said.encode() in done.stderr and b"\x1b" not in done.stdout + done.stderr, f"{said!r}: {done.stderr}")
    server.shutdown()
    server.server_close()
    expect("connect" in run("fleet", "top", place, status=2).stderr, "nobody is there")


class Proxy(http.server.ThreadingHTTPServer):
    """Between xheap and a server that is there: one request, or each, goes wrong in some way."""
    daemon_threads = True

    def __init__(self, shard, context=None):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.shard, self.fault, self.at, self.count, self.leave = shard, None, None, 0, threading.Event()
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass

    def ask(self, fault, at, *words):
        """Let request number `at` go wrong, None: all of them; return what xheap says, how it ended, and how many requests there were."""
        self.fault, self.at, self.count = fault, at, 0
        done = subprocess.run([*words[:-1], XHEAP, "fleet", *words[-1], "--timeout", "2s" if fault == "hang" else "100s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200)
        return done, self.count

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            proxy, sql = self.server, self.rfile.read(int(self.headers["Content-Length"]))
            proxy.count += 1
            fault = proxy.fault if proxy.at in (None, proxy.count - 1) else None
            if fault == "hang":
                proxy.leave.wait(60)
                return
            if fault == "end":
                return
            request = urllib.request.Request(f"http://127.0.0.1:{proxy.shard.http}{self.path}", sql, {key: value for key, value in self.headers.items() if key == "Authorization"})
            status, body = 200, b""
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    body = answer.read()
            except urllib.error.HTTPError as error:
                status, body = error.code, error.read()
            if fault == "500":
                status, body = 500, b"Code: 160, out of time"
            elif fault == "more" and sql.startswith(b"SELECT id, toUInt64(count()), toUInt64(0) FROM"):
                body += struct.pack("<6Q", *(7, 1 << 40, 1) * 2)
            elif fault == "nonsense":
                body = bytes(len(body))[:-1] + b"\xff"
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + (fault == "cut")))
            self.end_headers()
            piece = 1 + len(body) // 4 if fault == "slow" else 1 << 30
            for i in range(0, len(body), piece):
                self.wfile.write(body[i:i + piece])
                time.sleep(0.2 if fault == "slow" else 0)

        def log_message(self, *_):
            pass


def check_failing(shard):
    """Whichever request goes wrong, the command ends with a reason and no answer; a server that is slow has the same answer."""
    proxy = Proxy(shard)
    place = f"clickhouse+http://127.0.0.1:{proxy.server_port}/same"
    for question in ("top", "growth"):
        words = [question, place, "--format", "json"]
        good, count = proxy.ask(None, None, words)
        expect(good.returncode == 0 and count >= 5 and json.loads(good.stdout)["rows"], f"{question}: {count} requests: {good.stderr}")
        slow, _ = proxy.ask("slow", None, words)
        expect(slow.returncode == 0 and slow.stdout == good.stdout, f"{question}, slow: {slow.stderr}")
        for at in range(count):
            for fault, said in (("hang", "imeout"), ("end", "server"), ("500", "the server answers 500: Code: 160"), ("cut", ""), ("nonsense", "")):
                if fault == "hang" and question != "top":
                    continue
                done, asked = proxy.ask(fault, at, words)
                where = f"{question}, {fault} of request {at}"
                # On a busy machine, requests before that take too long.
                asked = at + 1 if fault == "hang" else asked
                # Zeros may be a number that is as good as another one, but for the last byte.
                expect(done.returncode in ((0, 2) if fault == "nonsense" else (2,)), f"{where}: status {done.returncode}: {done.stdout[:500]}")
                expect(done.returncode == 0 or (not done.stdout and (asked == at + 1 or fault == "nonsense") and done.stderr.count("\n") == 1 and said in done.stderr), f"{where}: {done.stdout[:500]} {done.stderr}")
    # Hosts of a stack that no answer had before, because it was pushed between two queries: it has no row.
    words = ["top", place, "--format", "json"]
    good, more = (proxy.ask(fault, None, words)[0] for fault in (None, "more"))
    expect(more.returncode == 0 and more.stdout == good.stdout, f"an unknown stack: status {more.returncode}: {more.stderr}")
    proxy.leave.set()
    proxy.shutdown()
    proxy.server_close()


def check_users(shard):
    """A user with a password, who may only read and set what a query needs; a wrong password is refused, and never shown."""
    for name, text in (("good", "reader:sesame"), ("wrong", "reader:open"), ("nobody", "noone:sesame")):
        pathlib.Path(name).write_text(text + "\n")
        os.chmod(name, 0o600)
    place = shard.place("same")
    done = run("fleet", "top", place, "--token-file", "good", "--format", "json")
    expect(json.loads(done.stdout)["rows"] == ask("top", place)["rows"], "the answer of a user")
    for name in ("wrong", "nobody"):
        said = run("fleet", "top", place, "--token-file", name, status=2).stderr
        expect("the server answers" in said and "sesame" not in said and "open" not in said.replace("cannot open", ""), said)
    expect("the server answers" in run("fleet", "init", place, "--token-file", "good", status=2).stderr, "who may only read makes no tables")


def check_https(shard):
    """A certificate that the system knows is taken, with the user's password; any other one is refused."""
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False) if shutil.which("openssl") else None
    if not done or done.returncode:
        return "not checked: https: there is no openssl"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")
    proxy = Proxy(shard, context)
    place = f"clickhouse+https://127.0.0.1:{proxy.server_port}/same"
    refused, count = proxy.ask(None, None, ["top", place, "--token-file", "good"])
    expect(refused.returncode == 2 and "certificate" in refused.stderr and not count, refused.stderr)
    # Known to this command alone, in a mount namespace of its own.
    known = "/etc/ssl/certs/ca-certificates.crt"
    inside = ["unshare", "--mount", "sh", "-c", f'mount --bind cert.pem {known} && exec "$@"', "sh"]
    if subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        return f"not checked: https with a known certificate: no mount over {known}"
    taken, count = proxy.ask(None, None, *inside, ["top", place, "--token-file", "good", "--format", "json"])
    expect(taken.returncode == 0 and json.loads(taken.stdout)["rows"] == ask("top", shard.place("same"))["rows"] and count, taken.stderr)
    proxy.shutdown()
    proxy.server_close()
    return None


def check_words(shard):
    place = shard.place("nowhere")
    for words, said in (
            (["init"], "one database is expected"), (["init", "profiles"], "a database begins with clickhouse+http"), (["init", place, "--cluster", "a b"], "letters, digits and _"), (["sql"], "the question is missing"), (["load", place], "a trace is missing"), (["load", "profiles", "x.xht"], "a database begins with"),
            (["sql", "sideways", place], "the question is missing"), (["init", place, "--keep", "30"], "ClickHouse 20"), (["top", place], "nowhere"), (["init", "clickhouse+http://h/a-b"], "the name of a database"),
            (["top", place, "--token-file", "nosuch"], "cannot read the token"), (["top", place, "--timeout", "0.5s"], "from 1s to 24h"), (["load", place, "x", "--timeout", "2d"], "from 1s to 24h"),
            (["load", place, "x", "--version", "1\n2"], "a value is UTF-8"), (["load", place, "x", "--host", "h\x1b"], "a value is UTF-8")):
        expect(said in run("fleet", *words, status=2).stderr, f"{words}: {run('fleet', *words, status=2).stderr}")


@contextlib.contextmanager
def running(*servers):
    try:
        yield servers
    finally:
        for server in servers:
            server.end()


def main():
    skipped = []
    if not pathlib.Path(XHEAP).with_name("xheap-send").exists():
        print("not checked: there is no xheap-send, which needs libcurl")
        sys.exit(77)
    check_nonsense()
    found = ports(5)
    if shutil.which("clickhouse-server"):
        with running(*(Shard(i, found[i], found[2:4]) for i in range(2))) as shards:
            check_words(shards[0])
            check_real(shards[0])
            check_file_versions(shards[0])
            check_time(shards[0])
            check_named(shards[0])
            check_same("same", shards)
            check_same("same_pair", shards, True)
            check_pages("pages_pair", shards, True)
            check_down(shards)
            check_failing(shards[0])
            check_users(shards[0])
            skipped += filter(None, [check_https(shards[0])])
    else:
        skipped.append("not checked: there is no clickhouse-server: apt-get install clickhouse-server")
    if packages.use(SOURCE / "tests/cli/chdb.txt"):
        current = Server("chdb", found[4], [sys.executable, SOURCE / "tests/live/chdb_server.py", str(found[4]), "."])
        current.begin()
        with running(current):
            check_same("current", [current])
            check_pages("pages_current", [current])
    else:
        skipped.append("not checked: the current dialect of ClickHouse: there is no chdb: tests/python/packages.py tests/cli/chdb.txt installs it")
    print(*skipped, sep="\n")
    sys.exit(77 if skipped else 0)


main()
