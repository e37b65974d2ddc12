#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Foreign programs in which a leak is sown, beside five caches that fill and stop: the first finding of `xheap report` names the leak, and there is
no finding of growth where none is sown.

usage: seeded.py [RUN...]     the runs of this list, such as redis/mark_interval or redis/none-1; all of the set without one
                              SOAK=1: 20 leaks and 20 runs without one, 60 s each, in place of a few short ones with as many requests
                              LEAK_SECONDS, LEAK_JOBS: how long each load takes, and how many run side by side
                              LEAK_KEEP: a directory for the traces; a run that it has a trace of, by these extensions, is not done again

The leaks are in seeds/: extensions that the programs load by their own means. Half of the runs are recorded from the program's start; the others attach.
"""
import concurrent.futures
import json
import math
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from live import BUILD, LONG_SECONDS, PROGRAMS, SOAK, SOURCE, XHEAP, Failure, expect, for_preload, wait_for, xheap

# Growth is not judged below ten seconds.
SECONDS = float(os.environ.get("LEAK_SECONDS", 60 if SOAK else 12))
JOBS = int(os.environ.get("LEAK_JOBS", 6))
KEEP = os.environ.get("LEAK_KEEP", os.path.join(BUILD, "seeded") if SOAK else "")
REQUESTS = 3000
WARM_REQUESTS = 30       # before an attach
WAVES, SWING = 5, 0.9    # the rate of requests varies, by so much of its mean
NEEDED, SKIP = 18, 77    # of 20 leaks; an exit status


def words(*each):
    """A command of Redis."""
    return b"*%d\r\n" % len(each) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in (str(each).encode() for each in each))


class Program:
    """A foreign program with its load, in a directory of its own."""
    leaks = needs = ()
    settings = {}

    def __init__(self, directory, seed):
        self.directory, self.process = directory, None
        self.output = open(directory / "log", "ab")
        self.environment = dict(os.environ, HOME=str(directory), LC_ALL="C.UTF-8", **self.settings)
        self.environment.pop("SEED", None)
        if seed:
            self.environment["SEED"] = seed

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Whatever became of the run, nothing of it goes on."""
        self.leave()
        if self.process and self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        self.output.close()

    def prepare(self):
        pass

    def begin(self, *before):
        self.process = subprocess.Popen([*map(str, before), *map(str, self.command())], cwd=self.directory, env=self.environment, stdin=self.input(),
                                        stdout=self.output, stderr=self.output, start_new_session=True)
        wait_for(f"{self.command()[0]} that answers", self.is_ready)
        self.connect()

    def input(self):
        return subprocess.DEVNULL

    def is_ready(self):
        expect(self.process.poll() is None, f"{self.command()[0]} ended with status {self.process.returncode}: {self.said()}")
        return self.answers()

    def said(self):
        return (self.directory / "log").read_text(errors="replace")[-500:]

    def load(self, requests, seconds):
        """So many requests, in waves. A machine that is slow makes it longer."""
        begun = time.monotonic()
        for number in range(requests):
            part = number / requests
            due = begun + seconds * (part - SWING / (2 * math.pi * WAVES) * math.sin(2 * math.pi * WAVES * part))
            time.sleep(max(0, due - time.monotonic()))
            self.request(number)

    def connect(self):
        pass

    def leave(self):
        pass

    def finish(self):
        self.leave()
        self.end()
        self.process.wait(LONG_SECONDS)

    def unix_socket(self, path):
        """A server makes its socket before it listens at it."""
        found = socket.socket(socket.AF_UNIX)
        found.settimeout(LONG_SECONDS)
        wait_for("a server that listens", lambda: not found.connect_ex(os.path.relpath(path)))
        return found


class Redis(Program):
    """Has jemalloc. The leaks are in a module."""
    leaks = "remember_request", "mark_interval", "append_journal", "save_burst"
    needs = "redis-server",
    connection = None

    def command(self):
        return "redis-server", "--port", 0, "--unixsocket", "s", "--save", "", "--loadmodule", f"{PROGRAMS}/seed_redis.so"

    def answers(self):
        return (self.directory / "s").is_socket()

    def pid(self):
        return self.process.pid

    def connect(self):
        self.connection = self.unix_socket(self.directory / "s")
        self.answer = self.connection.makefile("rb")

    def leave(self):
        if self.connection:
            self.answer.close()
            self.connection.close()
            self.connection = None

    def request(self, number):
        self.connection.sendall(words("SET", f"key{number % 500}", "x" * (number % 90)) + words("LPUSH", "list", f"entry {number}") +
                                words("LTRIM", "list", 0, 50) + words("APP.REQUEST"))
        for _ in range(4):
            expect(self.answer.readline()[:1] in b"+:", "an error of Redis")

    def end(self):
        self.connect()
        self.connection.sendall(words("SHUTDOWN", "NOSAVE"))
        self.leave()


class Nginx(Program):
    """A process and its worker. The leaks are in a preloaded library."""
    leaks = "track_connection", "describe_failure", "sample_request", "index_request"
    needs = "nginx",
    settings = {"LD_PRELOAD": for_preload("seed_nginx.so")}
    CONFIGURATION = """daemon off; pid {0}/pid; worker_processes 1; error_log {0}/errors; env SEED; events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; scgi_temp_path {0}/g;
server {{ listen unix:{0}/s; gzip on; gzip_types *; gzip_min_length 1; root {0}/pages; }} }}"""
    connection = None

    def prepare(self):
        (self.directory / "pages").mkdir()
        (self.directory / "pages/index.html").write_text("".join(f"line {number}\n" for number in range(200)))
        (self.directory / "conf").write_text(self.CONFIGURATION.format(self.directory))
        for path in (self.directory, self.directory / "pages"):
            path.chmod(0o755)

    def command(self):
        return "nginx", "-p", self.directory, "-e", self.directory / "errors", "-c", self.directory / "conf"

    def master(self):
        return int((self.directory / "pid").read_text() or 0)

    def answers(self):
        return (self.directory / "pid").exists() and (self.directory / "s").is_socket() and self.master() and self.pid()

    def pid(self):
        """Of the worker."""
        children = pathlib.Path(f"/proc/{self.master()}/task/{self.master()}/children").read_text().split()
        return int(children[0]) if children else 0

    def leave(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def request(self, number):
        """One in seven is for a page that is missing; five go over one connection."""
        if number % 5 == 0 or not self.connection:
            self.leave()
            self.connection = self.unix_socket(self.directory / "s")
        page = f"missing{number % 90}" if number % 7 == 3 else "index.html"
        self.connection.sendall(f"GET /{page} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n".encode())
        text = b""
        # The body of both answers is chunked, or has its length in the head; both end like this.
        while not text.endswith(b"\r\n0\r\n\r\n") and not text.endswith(b"</html>\r\n"):
            more = self.connection.recv(65536)
            expect(more, f"nginx closed the connection: {text[:300]}")
            text += more

    def end(self):
        os.kill(self.master(), signal.SIGQUIT)


class Python(Program):
    """A thread for each connection. The leaks are in a library that it loads with ctypes."""
    leaks = "attach_thread", "intern_name", "make_label", "explain_error"
    needs = "/usr/bin/python3",
    settings = {"PYTHONMALLOC": "malloc"}

    def command(self):
        return "/usr/bin/python3", SOURCE / "tests/live/seeds/server.py", f"{PROGRAMS}/seed_python.so", "port"

    def answers(self):
        return (self.directory / "port").exists()

    def connect(self):
        self.port, self.process_id = map(int, (self.directory / "port").read_text().split())

    def pid(self):
        return self.process_id

    def request(self, number):
        with socket.create_connection(("127.0.0.1", self.port), LONG_SECONDS) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while connection.recv(65536):
                pass

    def end(self):
        os.kill(self.process_id, signal.SIGTERM)


class Shell(Program):
    """Reads SQL from its input."""
    def input(self):
        return subprocess.PIPE

    def send(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()


class SQLite(Shell):
    """One process that reads SQL. The leaks are in an extension."""
    leaks = "lookup_rate", "label_row", "note_interval", "sum_begin"
    needs = "sqlite3",

    def command(self):
        return "sqlite3", "-batch", "base"

    def answers(self):
        return True

    def connect(self):
        self.send(f".load '{PROGRAMS}/seed_sqlite.so' sqlite3_seeds_init\npragma journal_mode = off;\npragma synchronous = off;\n"
                  "create table item(a integer primary key, b text);\n")

    def pid(self):
        return self.process.pid

    def request(self, number):
        self.send(f"insert or replace into item values ({number % 300}, hex(randomblob(20)));\nselect app_request();\n"
                  "select app_sum(a), max(b) from item group by a % 10;\nselect app_label(b) from item limit 3;\n")

    def end(self):
        self.process.stdin.close()


class MariaDB(Program):
    """A server of databases with threads. The leaks are in functions in C++."""
    leaks = "Registry::remember", "Ledger::append", "Node::link", "begin_statement"
    needs = "mariadbd", "mariadb-install-db", "mariadb"
    client = None

    def prepare(self):
        status = subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={self.directory}/db", "--auth-root-authentication-method=normal",
                                 "--skip-test-db", "--innodb-log-file-size=4M", "--skip-innodb-use-native-aio", "--user=root"], stdout=self.output,
                                stderr=self.output, timeout=LONG_SECONDS).returncode
        expect(status == 0, f"mariadb-install-db: status {status}: {self.said()}")
        (self.directory / "init.sql").write_text("create function app_request returns integer soname 'seed_mariadb.so';\ncreate database shop;\n"
                                                 "create table shop.item(a int primary key, b varchar(90)) engine = memory;\n")

    def command(self):
        return ("mariadbd", "--no-defaults", f"--datadir={self.directory}/db", f"--socket={self.directory}/s", f"--pid-file={self.directory}/p",
                "--skip-networking", f"--plugin-dir={PROGRAMS}", f"--init-file={self.directory}/init.sql", "--user=root", "--innodb-log-file-size=4M",
                "--innodb-buffer-pool-size=8M", "--skip-innodb-use-native-aio", "--plugin-maturity=unknown")

    def answers(self):
        return (self.directory / "s").is_socket() and (self.directory / "p").exists()

    def pid(self):
        return int((self.directory / "p").read_text())

    def connect(self):
        self.client = subprocess.Popen(["mariadb", "--no-defaults", "-u", "root", f"--socket={self.directory}/s", "--batch", "--unbuffered", "shop"],
                                       stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.output)

    def leave(self):
        if self.client:
            self.client.stdin.close()
            expect(self.client.wait(LONG_SECONDS) == 0, f"the client ended with status {self.client.returncode}: {self.said()}")
            self.client = None

    def request(self, number):
        self.client.stdin.write(f"replace into item values ({number % 300}, repeat('x', {number % 80}));\nselect app_request();\n"
                                f"select a % 10, max(b), group_concat(a) from item where a < 60 group by a % 10;\n".encode())
        self.client.stdin.flush()

    def end(self):
        os.kill(self.pid(), signal.SIGTERM)


PROGRAM_TYPES = {kind.__name__.lower(): kind for kind in (Redis, Nginx, Python, SQLite, MariaDB)}
SEEDED = [f"{name}/{leak}" for name, kind in PROGRAM_TYPES.items() for leak in kind.leaks]
CLEAN = [f"{name}/none-{number}" for name in PROGRAM_TYPES for number in range(1, 5)]
SHORT = ["redis/remember_request", "nginx/describe_failure", "sqlite/label_row", "mariadb/Node::link", "redis/none-1", "sqlite/none-2"]


def is_attached(name):
    """Every second run of each program."""
    program, _, seed = name.partition("/")
    kind = PROGRAM_TYPES[program]
    return bool((kind.leaks.index(seed) if seed in kind.leaks else int(seed.rpartition("-")[2])) % 2)


def record(program, trace, attached):
    """The recording of a program under its load, from start to end, or in the midst of it."""
    program.prepare()
    if not attached:
        program.begin(XHEAP, "record", "-o", trace, "--")
        program.load(REQUESTS, SECONDS)
        program.finish()
        return
    program.begin()
    program.load(WARM_REQUESTS, 0)
    messages = program.directory / "record"
    with open(messages, "wb") as output:
        recorder = subprocess.Popen([XHEAP, "record", "-o", trace, "-p", str(program.pid())], stdout=output, stderr=output)
    try:
        wait_for("recording", lambda: recorder.poll() is not None or "paused for" in messages.read_text())
        program.load(REQUESTS, SECONDS)
        recorder.send_signal(signal.SIGINT)
        recorder.wait(LONG_SECONDS)
    finally:
        if recorder.poll() is None:
            recorder.kill()
            recorder.wait()
    expect(recorder.returncode == 0, f"record ended with status {recorder.returncode}: {messages.read_text()[-500:]}")
    program.finish()


def path_of(name):
    return pathlib.Path(KEEP or ".").resolve() / (name.replace("/", "-").replace("::", "-") + ".xht")


def make_trace(name):
    """The trace of a run, which may be there from before; in place of it, the reason why it cannot be."""
    program, _, seed = name.partition("/")
    kind = PROGRAM_TYPES[program]
    missing = [need for need in kind.needs if not shutil.which(need)]
    if missing:
        return f"not run: without {', '.join(missing)}"
    trace = path_of(name)
    extension = pathlib.Path(PROGRAMS) / f"seed_{program}.so"
    # Functions of an extension that was built anew have no names in an older trace.
    if not trace.exists() or trace.stat().st_mtime < extension.stat().st_mtime:
        new = trace.with_suffix(".new")
        with tempfile.TemporaryDirectory(prefix="seeded.", dir=".", ignore_cleanup_errors=True) as directory:
            with kind(pathlib.Path(directory).resolve(), "" if seed.startswith("none") else seed) as program:
                record(program, new, is_attached(name))
        new.rename(trace)
    return trace


def names_leak(report, seed):
    """Whether the first finding has the function: in its sentence, or, if it is one of growth, in the stack that it is about."""
    function = re.compile(rf"(?<!\w){re.escape(seed)}(?!\w)")
    first = report["findings"][0]
    names = [first["text"]]
    if first["kind"] == "growth":
        names += [frame.get("symbol", "") for frame in report["growth"]["rows"][0]["stack"]]
    return any(function.search(name) for name in names)


def judge(name, trace):
    """What `xheap report` says: is_right, and the first finding."""
    seed = name.partition("/")[2]
    report = json.loads(xheap("report", trace, "-format", "json"))
    findings = report["findings"]
    growing = [finding for finding in findings if finding["kind"] == "growth"]
    if seed.startswith("none"):
        return not growing, growing[0]["text"] if growing else "no finding of growth"
    return bool(findings) and names_leak(report, seed), findings[0]["text"] if findings else "no finding"


def run(name):
    """The result of one run: is_right, None if it was not run; and what there is to say."""
    begun = time.monotonic()
    try:
        trace = make_trace(name)
        if isinstance(trace, str):
            return None, trace
        is_right, said = judge(name, trace)
    except (Failure, subprocess.SubprocessError, OSError, KeyError, ValueError) as failure:
        is_right, said = False, f"{type(failure).__name__}: {failure}"
    how = "attached" if is_attached(name) else "from the start"
    print(f"{'ok  ' if is_right else 'MISS'} {name}, {how}: {said}, {time.monotonic() - begun:.1f} s", flush=True)
    return is_right, said


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    names = sys.argv[1:] or (SEEDED + CLEAN if SOAK else SHORT)
    unknown = [name for name in names if name not in SEEDED + CLEAN]
    expect(not unknown, f"no such run: {', '.join(unknown)}; the runs are {', '.join(SEEDED + CLEAN)}")
    if KEEP:
        os.makedirs(KEEP, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        results = dict(zip(names, pool.map(run, names)))
    skipped = {said for is_right, said in results.values() if is_right is None}
    seeded = [is_right for name, (is_right, _) in results.items() if name in SEEDED and is_right is not None]
    clean = [is_right for name, (is_right, _) in results.items() if name in CLEAN and is_right is not None]
    print(f"the first finding names the leak in {sum(seeded)} of {len(seeded)} runs; no finding of growth in {sum(clean)} of {len(clean)} runs without a leak")
    if not seeded and not clean:
        print("; ".join(skipped))
        return SKIP
    # 18 of 20; of the few short ones, all.
    return not (sum(seeded) * len(SEEDED) >= len(seeded) * NEEDED if SOAK else all(seeded)) or not all(clean)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"seeded.py: {failure}")
