# SPDX-License-Identifier: MIT
"""A day of pushes, of which a minute takes a second, for tests/soak. Two services are pushed to a server that comes and goes, hangs, fails, refuses and talks nonsense. Pushers are killed, and one of the two
loggers again and again: its trace is recovered, and pushed. Queues are so small that they run full.

What was allocated has arrived once, or was in a profile that was dropped, which the pusher's own count says. Profiles are counted where they lie and where they arrive, by their bytes. Memory, descriptors and files
stay as they were."""
import hashlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import threading
import time

from pushing import PROGRAM, XHEAP, Server, Target, nonsense, of_otlp, run

TICK_SECONDS, SEED, QUEUE_BYTES, OBJECTS = 0.1, 4711, 65536, 2000
SLOW_SECONDS = 2  # a push may take so long on a machine that is busy; then there are fewer
SETTLE_SECONDS, NEVER = 3, 1 << 60
SETTLED_KIB, SETTLED_FILES = 4096, 4  # what later parts of the run may have more than the second one
# By tick: chances of a kill, and of another mode of the server.
KILL_PUSHER, KILL_LOGGER, TURN = 0.01, 0.004, 0.02
FILLER = [word for i in range(2) for word in ("--label", f"filler{i}={'x' * 1000}")]


class Profile:
    """What one is of, and how many blocks it says were allocated. Equal bytes are one profile."""

    def __init__(self, body):
        figures, labels = of_otlp(body)
        self.digest = hashlib.sha256(body).digest()
        self.session = labels["service.instance.id"].rpartition("/")[2]
        self.objects = figures["alloc_objects", "kept"] + figures["alloc_objects", "dropped"]

    def __hash__(self):
        return hash(self.digest)

    def __eq__(self, other):
        return self.digest == other.digest


class Place:
    """A server at one port, in one of its modes, or none; all that has arrived, and all that was refused."""

    def __init__(self, chance):
        self.chance, self.arrived, self.refused, self.turns, self.released = chance, set(), set(), 0, threading.Event()
        self.server = Server()
        self.port, self.requests, self.refusals = self.server.port, self.server.requests, self.server.refused

    def hang(self, handler):
        self.released.wait(35)
        handler.close_connection = True

    @staticmethod
    def cut(handler):
        handler.send_response(200)
        handler.close_connection = True

    def take(self):
        while self.requests:
            self.arrived.add(Profile(self.requests.pop()[2]))
        while self.refusals:
            self.refused.add(Profile(self.refusals.pop()))

    def turn(self, mode=None):
        modes = [200, 200, 200, 200, 200, 200, 500, 503, (429, {"Retry-After": "1"}), 400, nonsense, self.hang, self.cut, None, None]
        mode = mode or self.chance.choice(modes)
        self.turns += 1
        self.released.set()
        self.released = threading.Event()
        if self.server and not mode:
            self.server.close()
            self.server = None
        elif mode and not self.server:
            self.server = Server(port=self.port)
            # What is still in one that was closed counts, too.
            self.server.requests, self.server.refused = self.requests, self.refusals
        if self.server:
            self.server.usual = mode


class Service:
    """A session, what pushes it, and what lies in its queue."""

    def __init__(self, name, place):
        self.name, self.place, self.seen, self.files, self.allocated, self.said, self.kills, self.logger_kills = name, place, set(), set(), 0, 0, 0, 0
        self.queue, self.number, self.push, self.state = pathlib.Path("state/xheap/push", name), 0, None, "records"
        self.most_kib, self.process = 0, None
        self.begin()

    def begin(self):
        self.trace = f"{self.name}{self.number}.xht"
        if self.process:
            run("start", self.name, "-q", "-p", self.process.pid, "-o", self.trace, "--keep", "live", "--max-file", "1M")
        else:
            self.target = Target(self.name, "-o", self.trace, "--keep", "live", "--max-file", "1M")
            self.process = self.target.process
        self.logger = json.loads(run("query", self.name, "-format", "json").stdout)["logger_pid"]
        self.state = "records"
        self.push_begin("--every", "1s", "--wait")

    def push_begin(self, *words):
        self.pushed_at = time.monotonic()
        self.push = subprocess.Popen([XHEAP, "push", self.name, f"otlp+http://127.0.0.1:{self.place.port}", "-q", "--queue-size", str(QUEUE_BYTES), *FILLER, *words], stderr=subprocess.DEVNULL)

    def tick(self):
        self.look()
        if self.state == "records":
            self.target.step()
            self.allocated += OBJECTS
            if self.push.poll() is not None:
                raise AssertionError(f"{self.name}: the pusher ended with {self.push.returncode}")
        elif self.push.poll() is not None and self.state == "orphan":
            run("recover", self.trace)
            self.state = "recovered"
            self.push_begin("--trace", self.trace)
        elif self.push.poll() is not None:
            self.life_end()
            self.begin()

    def look(self):
        """Profiles that lie there long enough to be dropped."""
        for path in self.queue.glob("*.profile") if self.queue.exists() else ():
            try:
                key = path.stat().st_mtime_ns, path.name
                if key not in self.files:
                    self.seen.add(Profile(path.read_bytes().split(b"\n", 1)[1]))
                    self.files.add(key)
            except FileNotFoundError:
                pass
        try:
            status = pathlib.Path(f"/proc/{self.push.pid}/status").read_text()
            self.most_kib = max(self.most_kib, int(re.search(r"VmHWM:\s+(\d+)", status).group(1)))
        except (OSError, AttributeError):
            pass

    def dropped_said(self):
        status = self.queue / "status"
        return int(re.search(r"dropped=(\d+)", status.read_text()).group(1)) if status.exists() else 0

    def kill_pusher(self):
        self.push.kill()
        self.push.wait()
        self.kills += 1
        self.push_begin("--every", "1s", "--wait")

    def kill_logger(self):
        """Without a past nothing of the session was pushed, and nobody could push the rest."""
        if not (self.queue / "past").exists():
            return
        os.kill(self.logger, signal.SIGKILL)
        self.state = "orphan"
        self.logger_kills += 1

    def life_end(self):
        """The next session counts anew; its files are others."""
        self.said += self.dropped_said()
        os.unlink(self.trace)
        self.number += 1

    def end(self):
        while self.state != "records":
            self.tick()
            time.sleep(TICK_SECONDS)
        self.target.stop("-q")
        until_ns = time.monotonic() + 180
        while self.push.poll() is None and time.monotonic() < until_ns:
            self.look()
            time.sleep(TICK_SECONDS)
        if self.push.poll() is None:
            raise AssertionError(f"{self.name}: the pusher does not end: {self.left()}")
        self.said += self.dropped_said()

    def made(self):
        return self.seen | {profile for profile in self.place.arrived | self.place.refused if profile.session == self.name}

    def left(self):
        return sorted(os.listdir(self.queue))

    def memory(self):
        """KiB of the logger and of its pusher; their descriptors. A pusher that has just begun has nothing yet."""
        def kib(pid):
            return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))

        figures = [kib(self.logger), kib(self.push.pid), len(os.listdir(f"/proc/{self.logger}/fd")), len(os.listdir(f"/proc/{self.push.pid}/fd"))]
        return figures if time.monotonic() > self.pushed_at + SETTLE_SECONDS else [figures[0], NEVER, figures[2], NEVER]


def files_count():
    return sum(len(files) for _, _, files in os.walk("."))


class Parts:
    """Of each third of the run the least of each figure: whatever is at work is larger now and then."""
    NAMES = ("logger KiB", "pusher KiB", "logger descriptors", "pusher descriptors", "files")
    MORE = (SETTLED_KIB, SETTLED_KIB, SETTLED_FILES, SETTLED_FILES, 2 * SETTLED_FILES)

    def __init__(self):
        self.least = [[NEVER] * len(self.NAMES) for _ in range(3)]

    def note(self, part, figures):
        self.least[part] = [min(pair) for pair in zip(self.least[part], figures)]

    def failures(self):
        return [f"{name}: {second} in the second third, {third} in the last" for name, second, third, more in zip(self.NAMES, self.least[1], self.least[2], self.MORE) if third > second + more]

    def text(self):
        return "; ".join(f"{name} {first}, {second}, {third}" for name, first, second, third in zip(self.NAMES, *self.least))


def rounds_run(rounds, services, place, chance, parts):
    day, orphan = services
    ticks = done = 0
    begun = time.monotonic()
    while done < 1:
        ticks += 1
        time.sleep(TICK_SECONDS)
        for service in services:
            service.tick()
            if service.state == "records" and chance.random() < KILL_PUSHER:
                service.kill_pusher()
        if orphan.state == "records" and chance.random() < KILL_LOGGER:
            orphan.kill_logger()
        if chance.random() < TURN:
            place.turn()
        place.take()
        if ticks % 10 == 0:
            done = max(len(day.made()), (time.monotonic() - begun) / SLOW_SECONDS) / rounds
            parts.note(min(int(done * 3), 2), day.memory() + [files_count()])


def account(service, place):
    """Return what was said and seen to be dropped, and what is wrong."""
    lost = service.made() - place.arrived
    arrived = sum(profile.objects for profile in service.made() & place.arrived)
    in_lost = sum(profile.objects for profile in lost)
    wrong = []
    if arrived + in_lost != service.allocated:
        wrong.append(f"{service.name}: {service.allocated} blocks were allocated, {arrived} have arrived, {in_lost} are in {len(lost)} profiles that were dropped")
    if len(lost) > service.said:
        wrong.append(f"{service.name}: {len(lost)} profiles were dropped, and {service.said} are said to be")
    if service.left() != ["lock", "status"]:
        wrong.append(f"{service.name}: left in its queue: {service.left()}")
    return f"{service.allocated:,} blocks, {arrived:,} arrived, {in_lost:,} in {len(lost)} dropped profiles, {service.said} said", wrong


def soak(rounds):
    """In the working directory, which is empty. Return lines to print, and failures."""
    pathlib.Path("steps.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-o", "steps", "steps.c"], check=True)
    chance, parts, begun = random.Random(SEED), Parts(), time.monotonic()
    place = Place(chance)
    services = [Service(f"{name}{os.getpid()}", place) for name in ("day", "orphan")]
    rounds_run(rounds, services, place, chance, parts)
    place.turn(200)
    for service in services:
        service.end()
    place.take()
    failures = parts.failures()
    lines = [f"{len(services[0].made())} pushes of one session in {time.monotonic() - begun:.0f} s, {len(place.arrived)} profiles arrived of both; the server changed {place.turns} times", parts.text()]
    for service in services:
        line, wrong = account(service, place)
        lines.append(f"{service.name}: {line}; {service.kills} kills of its pusher, {service.logger_kills} of its logger; pusher {service.most_kib} KiB at most")
        failures += wrong
    return lines, failures
