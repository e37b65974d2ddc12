#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap fleet over a directory: answers are those of the traces; pushes that are there twice, and clocks; versions and growth, at stated rates; files that are damaged, foreign or hostile."""
import collections
import csv
import gzip
import io
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import time

XHEAP, SOURCE = os.environ["XHEAP"], pathlib.Path(os.environ["SOURCE"])
sys.path.insert(0, str(SOURCE / "tests/live"))
from pages import decode_cells, live_of, traces_of  # noqa: E402
from pushed_files import EPOCH, MINUTE, PROGRAM, Stacks, sampled, write  # noqa: E402

os.environ["XDG_STATE_HOME"] = str(pathlib.Path("state").absolute())
os.environ.pop("OTEL_RESOURCE_ATTRIBUTES", None)
PERIOD, KIB, MIB = 512 << 10, 1 << 10, 1 << 20


def expect(condition, what):
    if not condition:
        raise SystemExit(f"{what}")


def run(*words, status=0):
    done = subprocess.run([XHEAP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    expect(done.returncode == status, f"xheap {words}: status {done.returncode}: {done.stdout}{done.stderr}")
    return done


def ask(*words, status=0):
    return json.loads(run("fleet", *words, "--format", "json", status=status).stdout)


def room(name):
    shutil.rmtree(name, ignore_errors=True)
    os.mkdir(name)
    return name


# ---- as the traces have it ----


def frames_of(trace):
    rows = csv.DictReader(io.StringIO(run("heap", trace, "-frames", "-format", "csv").stdout))
    found = {row["frame"]: figures({key: int(value) for key, value in row.items() if key != "frame" and value.isdigit()}) for row in rows}
    return {frame: numbers for frame, numbers in found.items() if any(numbers)}


def figures(row):
    return tuple(row[key] for key in ("outstanding_bytes", "outstanding_count", "total_bytes", "total_count"))


def record(name, place, *options, steps=2):
    """A session whose program does some steps, with a push behind each."""
    program = subprocess.Popen(["./steps"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    run("start", name, "-q", "-p", program.pid, "-o", f"{name}.xht", *options)
    push = subprocess.Popen([XHEAP, "push", name, f"file:{os.path.abspath(place)}", "--every", "1s", "--service", name, "-q"])
    for step in range(steps):
        program.stdin.write("\n")
        program.stdin.flush()
        program.stdout.readline()
        wait_for_files(place, name, step + 1)
    # A second pusher, which repeats what the first one has: it counts once.
    run("push", name, f"file:{os.path.abspath(place)}", "--once", "--service", name, "-q", "--queue", f"{name}.queue")
    run("stop", name, "-q")
    expect(push.wait(60) == 0, "push failed")
    program.stdin.close()
    program.wait()


def wait_for_files(place, name, count):
    end = time.monotonic() + 60
    while sum(file.startswith(f"{name}.") for file in os.listdir(place)) < count:
        expect(time.monotonic() < end, f"{name} does not push: {os.listdir(place)}")
        time.sleep(0.05)


def check_sums():
    """Stacks, functions, services and totals of three sessions, two of which are samples, are those of xheap heap."""
    pathlib.Path("steps.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-o", "steps", "steps.c"], check=True)
    place, wanted = room("sums"), collections.Counter()
    for name, options in (("exact", ()), ("rough", ("--sample", "64K")), ("fine", ("--sample", "4K"))):
        record(name, place, *options)
        for frame, numbers in frames_of(f"{name}.xht").items():
            for i, value in enumerate(numbers):
                wanted[frame, i] += value
        of_service = ask("top", place, "--service", name, "--by", "function")
        found = {row["function"]: figures(row) for row in of_service["rows"]}
        expect(found == frames_of(f"{name}.xht"), f"{name}: {found}, not {frames_of(f'{name}.xht')}")
        totals = json.loads(run("heap", f"{name}.xht", "-totals", "-format", "json").stdout)["totals"]
        expect(all(of_service["totals"][key] == totals[key] for key in of_service["totals"]), f"{of_service['totals']} {totals}")
        expect(of_service["sample_bytes"] == {"exact": 0, "rough": 64 << 10, "fine": 4 << 10}[name], of_service["sample_bytes"])
    everything = ask("top", place, "--by", "function")
    found = {(row["function"], i): value for row in everything["rows"] for i, value in enumerate(figures(row))}
    expect(found == {key: wanted[key] for key in found} and len(found) == len(wanted), f"{found} {wanted}")
    expect(everything["sessions"] == 3 and everything["hosts"] == 1 and everything["complete"], everything)
    # A whole stack as heap has it.
    stacks = csv.DictReader(io.StringIO(run("heap", "exact.xht", "-format", "csv").stdout))
    wanted = {row["stack"]: int(row["outstanding_bytes"]) for row in stacks if int(row["total_bytes"])}
    found = {";".join(row["stack"]): row["outstanding_bytes"] for row in ask("top", place, "--service", "exact")["rows"]}
    expect(found == wanted, f"{found} {wanted}")
    by_host = ask("top", place, "--by", "host")
    expect(by_host["row_count"] == 1 and by_host["totals"] == everything["totals"], by_host)
    by_service = {row["service"]: row["outstanding_bytes"] for row in ask("top", place, "--by", "service")["rows"]}
    expect(set(by_service) == {"exact", "rough", "fine"} and sum(by_service.values()) == everything["totals"]["outstanding_bytes"], by_service)


# ---- twice, and clocks ----

ONE = Stacks([("web!parse", "web!main"), ("web!cache", "web!main")])


def check_twice():
    """A copy under another name, and a pusher that began anew, change nothing."""
    place = room("twice")
    for index in range(3):
        write(place, ONE, [(2, 200, 1 + index, 100 + index), (1, 7, 0, 0)], index=index)
    before = ask("top", place)
    expect(before["totals"] == {"outstanding_bytes": 102, "outstanding_count": 3, "total_bytes": 621, "total_count": 9}, before)
    os.mkdir(f"{place}/copy")
    for file in list(pathlib.Path(place).glob("*.gz")):
        shutil.copy(file, f"{place}/copy/other-{file.name}")
    again = ask("top", place)
    expect(again["pushed_twice"] == 3 and again["rows"] == before["rows"] and again["pushes"] == 3, again)
    # The next pusher of that session says all that it had, and goes on.
    write(place, ONE, [(6, 600, 3, 102), (3, 21, 0, 0)], index=3, since=EPOCH, until=EPOCH + 3 * MINUTE)
    write(place, ONE, [(1, 1, 4, 104), None], index=4, since=EPOCH + 3 * MINUTE)
    total = ask("top", place)["totals"]
    expect(total == {"outstanding_bytes": 104, "outstanding_count": 4, "total_bytes": 622, "total_count": 10}, total)
    # The session begins anew: what was in use is gone, what was allocated is not.
    write(place, ONE, [(1, 9, 1, 9), None], start=EPOCH + 20 * MINUTE)
    total = ask("top", place)["totals"]
    expect(total == {"outstanding_bytes": 9, "outstanding_count": 1, "total_bytes": 631, "total_count": 11}, total)


def check_clocks():
    """The last hour, of a host whose clock is right, one that is a day fast, one that is some minutes slow, and one that pushes no more."""
    place, now = room("clocks"), time.time_ns()
    for host, shift in (("right", 0), ("fast", 1440), ("slow", -7), ("gone", -600)):
        start = now + (shift - 180) * MINUTE
        for index in range(0, 180, 10):
            write(place, ONE, [(1, 100, 1, 1000), None], host=host, start=start, index=index, until=start + (index + 10) * MINUTE)
    answer = ask("top", place, "--last", "1h", "--by", "host")
    rows = {row["host"]: row for row in answer["rows"]}
    expect(set(rows) == {"right", "fast", "slow"} and answer["old_sessions"] == 1, answer)
    expect({row["outstanding_bytes"] for row in rows.values()} == {1000}, rows)
    # Pushes 60 minutes back, and those of the slow clock 53: the edges are a push more or less.
    expect(all(500 <= row["total_bytes"] <= 700 for row in rows.values()), rows)
    expect(ask("top", place, "--host", "gone")["totals"]["total_bytes"] == 1800, "the host that is gone")
    versions = ask("versions", place)["rows"]
    expect(len(versions) == 1 and versions[0]["hosts"] == 4 and versions[0]["first_ns"] == now - 780 * MINUTE, versions)


def check_until():
    """As of a moment, each question has the answer that it had then, also of a host whose clock is fast; and a page, too."""
    all_of, then, late = room("until"), room("then"), room("late")
    chance, now = random.Random(13), time.time_ns() // 10 ** 9 * 10 ** 9
    for host, shift in (("one", 0), ("two", 0), ("fast", 1440), ("over", 0)):
        for index in range(60):
            values = [(5, 100 + index, 1, 1000 * (index + 1) if host == "one" else chance.randrange(10 ** 6)), (1, 7, 1, 1 + chance.randrange(10 ** 4))]
            # The programs of one host end with the last push.
            if host == "over" and index == 59:
                values = [None, None]
            for place in (all_of,) + (then,) * (index < 30) + (late,) * (20 <= index < 30):
                write(place, ONE, values, version="2" if host == "one" else "1", host=host, start=now + (shift - 60) * MINUTE, index=index)
    moment = (now - 30 * MINUTE) // 10 ** 9 + 20
    words = [("--until", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))), ("--until", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))), ("--until", "1780s")]
    same = ("rows", "totals", "hosts", "sessions", "pushes", "judged", "from_ns", "until_ns", "old_sessions")
    for question, *more in (("top",), ("top", "--by", "host"), ("growth",), ("growth", "--by", "host"), ("growth", "--by", "service"), ("diff", "--after", "2"), ("versions",), ("hosts", "web!")):
        wanted, wanted_late = ask(question, then, *more), ask(question, late, *more)
        for option in words:
            found = ask(question, all_of, *more, *option)
            expect(all(found[key] == wanted[key] for key in same), f"{question} {more} {option}: {found} {wanted}")
        found = ask(question, all_of, *more, *words[0], "--last", "590s")
        # When a session began is said of all of it.
        expect(all(found[key] == wanted_late[key] for key in same), f"{question} {more}: the last minutes before: {found} {wanted_late}")
    for option, place in ((words[0], then), ((*words[0], "--last", "590s"), late)):
        facts, _, live, _ = page_of(all_of, *option)
        wanted, _, live_then, _ = page_of(place)
        expect(facts["totals"]["outstanding_bytes"] == wanted["totals"]["outstanding_bytes"] and {key: row[-1] for key, row in live.items()} == {key: row[-1] for key, row in live_then.items()}, facts["totals"])
        expect(facts["fleet"][-1] == words[0][1].replace("T", " ") and facts["fleet"][-2] == "--until", facts["fleet"])
    expect(ask("top", all_of, "--until", "3h")["old_sessions"] == 4, "before the first push")
    # What ended has nothing in use; that is said with the way to what it had.
    said = run("fleet", "top", all_of, "--host", "over").stdout
    expect("nothing is in use at the last push of each session; --until TIME asks about a moment before it" in said, said)
    said = run("fleet", "top", all_of, "--host", "over", *words[1]).stdout
    expect("nothing is in use" not in said and f"as of {words[1][1]}: later pushes do not count" in said, said)


# ---- versions ----

VERSIONS, LEAKY, HOSTS, COMMON, SIZE = 40, 18, 25, 60, 200
STACKS = [(f"web!{name}{i}", "web!handle", "web!main") for name in ("buffer", "cache", "row") for i in range(COMMON // 3)] + [("web!leaked", "web!session", "web!main")]


def check_versions(rate=MIB):
    """One version of forty leaks on its 25 hosts, a MiB a push: after two pushes it is named. No other one is accused of anything, nor does more hosts count as growth."""
    place, chance, stacks = room("versions"), random.Random(7), Stacks(STACKS)
    means = [chance.lognormvariate(14, 1.5) for _ in STACKS]
    for version in range(VERSIONS):
        # Some versions run on more hosts.
        for host in range(HOSTS * (1 + version % 3)):
            load = chance.lognormvariate(0, 0.4)
            for index in range(2):
                values = []
                for i, mean in enumerate(means):
                    leaks = i == len(means) - 1
                    bytes_now = (rate * (index + 1) if version == LEAKY else 0) if leaks else mean * load
                    count, size = sampled(chance, SIZE, bytes_now / SIZE, PERIOD)
                    values.append((count, size, count, size))
                write(place, stacks, values, version=f"v{version}", host=f"h{version}.{host}", index=index, period=PERIOD)
    for version in range(VERSIONS):
        answer = ask("diff", place, "--before", f"v{(version + 1) % VERSIONS}", "--after", f"v{version}")
        named = [(row["stack"][0], row["state"]) for row in answer["rows"] if row["state"] != "spread"]
        # What leaks in the version before is gone in this one.
        wanted = [("web!leaked", "new")] if version == LEAKY else [("web!leaked", "gone")] if version == LEAKY - 1 else []
        expect(named == wanted and answer["judged"] == len(wanted), f"v{version}: {named}, not {wanted}")
    # The first rows are those of all.
    for question in (("top",), ("diff", "--after", f"v{LEAKY}"), ("growth",)):
        for count in (1, 2, 7, len(stacks.stacks)):
            rows = ask(question[0], place, *question[1:])["rows"]
            expect(len(rows) >= count and ask(question[0], place, *question[1:], "--top", str(count))["rows"] == rows[:count], f"the first {count} rows of {question}")
    # Against all other versions, by function, and as a test of a release.
    row = ask("diff", place, "--after", f"v{LEAKY}", "--by", "function")["rows"][0]
    expect(row["function"] == "web!leaked" and row["hosts_after"] <= HOSTS and abs(row["change_per_host"] - 2 * rate) < 4 * row["error"], row)
    expect("web!leaked of web grew by" in run("fleet", "diff", place, "--after", f"v{LEAKY}", "--fail-above", "64K", status=1).stderr, "--fail-above")
    run("fleet", "diff", place, "--after", "v20", "--before", "v19", "--fail-above", "0")
    # The hosts that have it are those of the version.
    hosts = ask("hosts", place, "leaked")
    expect(hosts["rows"] and {row["version"] for row in hosts["rows"]} == {f"v{LEAKY}"} and hosts["row_count"] > HOSTS // 2, hosts["row_count"])
    expect("total_bytes" not in hosts["rows"][0] and set(hosts["totals"]) == {"outstanding_bytes", "outstanding_count"}, "what hosts made is not read")
    expect(hosts["rows"] == ask("hosts", place, "web!LEAK*")["rows"] and not ask("hosts", place, "leak")["rows"], "frames")
    versions = {row["version"]: row for row in ask("versions", place)["rows"]}
    expect(len(versions) == VERSIONS and versions["v17"]["hosts"] == HOSTS * 3 and versions["v18"]["hosts"] == HOSTS, versions["v17"])
    expect("no session of version nosuch" in run("fleet", "diff", place, "--after", "nosuch", status=2).stderr, "a version that there is not")


def check_frames():
    """Frames are asked for as those of xheap heap: a name of C++ as a whole, without parameters and arguments of templates, or by its last part; brackets are letters."""
    place = room("frames")
    names = ["shop!ns::table<int>::find(int const&)", "shop!ns::table<int>::operator[](int)", "libodd.so.1!find", "app.py!load", "tool+0x1f2"]
    stacks = Stacks([(name, "shop!main") for name in names])
    for i, name in enumerate(names):
        write(place, stacks, [(1, 100 + i, 1, 100 + i) if i == j else None for j in range(len(names))], host=f"h{i}")
    for frame, hosts in (("find", "02"), ("shop!find", "0"), ("ns::table::find", "0"), ("ns::table<int>::find(int const&)", "0"), ("operator[]", "1"), ("ns::*", "01"), ("libodd*!", "2"),
                         ("LOAD", "3"), ("app.py!load", "3"), ("fin", ""), ("main", "01234"), ("tool!", "4"), ("tool!*", "4"), ("tool!tool+0x1F2", "4"),
                         ("tool+0x1f2", "4")):
        found = "".join(sorted(row["host"][1:] for row in ask("hosts", place, frame)["rows"]))
        expect(found == hosts, f"{frame}: hosts {found}, not {hosts}")


def check_file_versions():
    """A function is the same one in all versions of its file: a version's program has another name, and its libraries, too. Code without a name is of one file."""
    place = room("file versions")
    for version, kept, own in (("1.4", 10, 5), ("1.5", 200, 6)):
        stacks = Stacks([("libshop.so.2.0." + own * "1" + "!price", f"web-{version}!quote", f"web-{version}!main"), (f"web-{version}+0x12f0", f"web-{version}!main")])
        for host in range(4):
            write(place, stacks, [(1, 9, 1, kept), (1, 9, 1, own)], version=version, host=f"h{version}.{host}")
    rows = {tuple(row["stack"]): row for row in ask("diff", place, "--after", "1.5", "--before", "1.4")["rows"]}
    price = rows.pop(("libshop.so.2!price", "web!quote", "web!main"))
    expect((price["state"], price["change_per_host"], price["hosts_before"], price["hosts_after"]) == ("grew", 190, 4, 4), price)
    expect({stack: row["state"] for stack, row in rows.items()} == {("web-1.5+0x12f0", "web!main"): "new", ("web-1.4+0x12f0", "web!main"): "gone"}, rows)
    for frame, hosts in (("web!quote", 8), ("web-1.5!quote", 8), ("WEB-9!quote", 8), ("web-1.5!", 8), ("web-1.5!+0x12f0", 0), ("web-1.5+0x12f0", 4), ("other-1.5!quote", 0)):
        expect(ask("hosts", place, frame)["row_count"] == hosts, f"{frame}: {ask('hosts', place, frame)['row_count']} hosts")


def check_growth():
    """On ten hosts, a stack that grows by 2 MiB a minute in a sample is named by its rate; one that only changes up and down is not."""
    place, chance, stacks = room("growth"), random.Random(11), Stacks(STACKS[-2:])
    for host in range(10):
        for index in range(30):
            values = []
            for size in (40 * MIB * chance.uniform(0.8, 1.2), 2 * MIB * (index + 1)):
                count, size = sampled(chance, SIZE, size / SIZE, PERIOD)
                values.append((count, size, count, size))
            write(place, stacks, values, host=f"h{host}", index=index, period=PERIOD)
    answer = ask("growth", place)
    rows = {row["stack"][0]: row for row in answer["rows"]}
    leak = rows["web!leaked"]
    expect(leak["state"] == "grew" and abs(leak["growth_per_hour"] / (120 * MIB) - 1) < 0.1 and leak["error"] < 12 * MIB, leak)
    expect(answer["judged"] == 1 and list(rows)[0] == "web!leaked" and leak["hosts"] == 10, answer)
    # A version without the leak, on three times as many hosts, hides nothing: each is judged by itself.
    for host in range(30):
        for index in range(0, 30, 29):
            values = [(*sampled(chance, SIZE, size / SIZE, PERIOD),) * 2 for size in (40 * MIB * chance.uniform(0.8, 1.2), 2 * MIB)]
            write(place, stacks, values, host=f"other{host}", index=index, period=PERIOD, version="2")
    mixed = ask("growth", place)
    named = [(row["stack"][0], row["version"], row["hosts"]) for row in mixed["rows"] if row["state"] != "spread"]
    expect(named == [("web!leaked", "1", 10)] and mixed["row_count"] == 4 and mixed["rows"][0] == leak, mixed)
    said = run("fleet", "growth", place).stdout
    expect('1 of 4 rows changed by more than chance; "spread": no more than hosts differ; each version by itself' in said, said)
    # Of one function, the hosts that have it.
    hosts = ask("growth", place, "leaked", "--version", "1")["rows"]
    expect({row["host"] for row in hosts} == {f"h{i}" for i in range(10)} and {row["state"] for row in hosts} <= {"grew", "new"}, hosts)
    expect(all(abs(row["growth_per_hour"] - 120 * MIB) < 6 * row["error"] < 100 * MIB for row in hosts), hosts)
    expect(not ask("growth", place, "nosuch")["rows"] and "leave out --by" in run("fleet", "growth", place, "leaked", "--by", "function", status=2).stderr, "a frame that there is not")
    # Which hosts it is on, and which service: the same growth.
    by_host = ask("growth", place, "--by", "host")["rows"]
    grown = {row["host"]: row for row in by_host if row["version"] == "1"}
    expect(set(grown) == {f"h{i}" for i in range(10)} and len(by_host) == 40 and by_host[0] == grown[by_host[0]["host"]], grown)
    # The other stack of a host changes by up to 16 MiB in half an hour.
    expect(all(abs(row["growth_per_hour"] - 120 * MIB) < 70 * MIB and 0 < row["error"] < 30 * MIB for row in grown.values()), grown)
    by_service = {row["version"]: row for row in ask("growth", place, "--by", "service")["rows"]}
    expect(set(by_service) == {"1", "2"} and by_service["1"]["state"] == "grew" and by_service["2"]["state"] == "spread", by_service)
    mean = sum(row["growth_per_hour"] for row in by_host if row["version"] == "1") / 10
    expect(abs(by_service["1"]["growth_per_hour"] / mean - 1) < 1e-9 and by_service["1"]["service"] == "web", by_service)
    change, = ask("diff", place, "--after", "1", "--by", "service")["rows"]
    expect(change["service"] == "web" and change["state"] == "grew" and abs(change["change_per_host"] - 58 * MIB) < 10 * MIB, change)
    expect("web grew by" in run("fleet", "diff", place, "--after", "1", "--by", "service", "--fail-above", "1M", status=1).stderr, "a service that grew")
    few = run("fleet", "diff", place, "--after", "2", "--host", "h3", status=2).stderr
    expect("no session of version 2 has pushed" in few, few)
    alone = ask("growth", place, "--host", "h3", "--by", "function")["rows"]
    expect(alone[0]["function"] == "web!leaked" and alone[0]["state"] == "grew" and alone[1]["state"] == "spread", alone)


def check_over():
    """Programs that have ended: versions are compared, and growth is told, by what they had; what is in use is nothing. Of few hosts, what all of one version have, and none of the other, is new."""
    place, ended = room("over"), room("over and ended")
    for version, own in (("1", 0), ("2", 8)):
        for host in range(4):
            for index in range(5):
                values = [(4, 4000, 40 + host, 400000 + 90000 * host * (own > 0)), (9, 900, own, own * 100000 * (index + 1) * (host + 1))]
                for to in (place, ended):
                    write(to, ONE, values, version=version, host=f"h{version}.{host}", index=index)
            write(ended, ONE, [(0, 0, 0, 0), None], version=version, host=f"h{version}.{host}", index=5)
    write(ended, ONE, [(0, 0, 0, 0), None], version="1", host="h1.0", index=6)
    for question in (("diff", "--after", "2"), ("growth",), ("growth", "--by", "host"), ("growth", "cache")):
        expect(ask(question[0], ended, *question[1:])["rows"] == ask(question[0], place, *question[1:])["rows"], f"{question}: {ask(question[0], ended, *question[1:])['rows']}")
    rows = {row["stack"][0]: row["state"] for row in ask("diff", ended, "--after", "2")["rows"]}
    expect(rows == {"web!cache": "new", "web!parse": "spread"}, rows)
    rows = {row["stack"][0]: row["state"] for row in ask("diff", ended, "--after", "1")["rows"]}
    expect(rows == {"web!cache": "gone", "web!parse": "spread"}, rows)
    top = ask("top", ended)["totals"]
    expect(top["outstanding_bytes"] == 0 and top["total_bytes"] == 8 * 5 * 4900, top)
    # Three hosts of each: either may be chance. So may be a stack that one of the hosts lacks.
    for host in ("h1.3", "h2.3"):
        for file in pathlib.Path(place).glob(f"web.{host}.*"):
            file.unlink()
    rows = {row["stack"][0]: row["state"] for row in ask("diff", place, "--after", "2")["rows"]}
    expect(set(rows.values()) == {"spread"}, rows)
    # The last push, or the first one, is damaged in its middle.
    files = sorted(pathlib.Path(place).glob("web.h2.0.*"), key=lambda path: int(path.name.split(".")[-3]))
    for file in (files[0], files[-1]):
        file.write_bytes(file.read_bytes()[:-20])
    answer = ask("growth", place, "cache", "--host", "h2.0")
    expect(answer["missing_count"] == 2 and round(answer["rows"][0]["growth_per_hour"]) == 800000 * 60, answer)


# ---- as a page ----


def page_of(place, *words):
    """The facts of the page, its head, and what lives at each bound, by version and stack."""
    run("fleet", "top", place, "--html", "page.html", *words)
    (facts, cells), = traces_of(pathlib.Path("page.html").read_text())
    head, columns = decode_cells(cells)
    made = {key: sum(columns[key]) for key in ("bytes", "blocks")}
    return facts, head, live_of(facts, cells), made


def check_page():
    """Over time, what lives at each bound is what the pushes say that came before it, host by host, and its end and totals are those of top."""
    place, chance = room("paged"), random.Random(3)
    stacks = Stacks([("web!ns::cache<int>::put(int)", "web!main"), ("web!leaked", "web!serve", "web!main"), ("web+0x1f0", "web!main"), ()])
    wanted = collections.defaultdict(dict)  # host -> time -> bytes in use by stack
    for host in range(6):
        for index in range(30 if host else 4):
            values = []
            for i in range(4):
                use = 1000 * (host + 1) * (index + 1) if i == 1 and host < 3 else chance.randrange(10 ** 6)
                values.append((chance.randrange(50), chance.randrange(10 ** 6), use // 100 + 1, use))
            write(place, stacks, values, version="1.5" if host < 3 else "1.4", host=f"h{host}", index=index)
            wanted[host][(index + 1) * MINUTE] = [row[3] for row in values]
    facts, head, live, made = page_of(place)
    top = ask("top", place)
    expect({process["name"] for process in facts["processes"]} == {"web 1.4", "web 1.5"}, facts["processes"])
    expect(facts["fleet"] == ["xheap", "fleet", "top", place], facts["fleet"])
    first = min(time for pushes in wanted.values() for time in pushes)
    for bound, until in enumerate(head["bounds"]):
        if not bound:
            continue
        for i, names in enumerate((("web!ns::cache<int>::put(int)", "web!main"), ("web!leaked", "web!serve", "web!main"), ("web+0x1f0", "web!main"), ("[no stack]",))):
            for version, hosts in (("web 1.5", (0, 1, 2)), ("web 1.4", (3, 4, 5))):
                there = sum(pushes[max(time for time in pushes if time - first <= until)][i] for host, pushes in wanted.items()
                            if host in hosts and any(time - first <= until for time in pushes))
                expect(live[version, names][bound] == there, f"{version} {names} at {until}: {live[version, names][bound]}, not {there}")
    expect(facts["totals"]["outstanding_bytes"] == top["totals"]["outstanding_bytes"] == sum(row[-1] for row in live.values()), facts["totals"])
    sums = [sum(row[bound] for row in live.values()) for bound in range(len(head["bounds"]))]
    expect(facts["totals"]["peak_bytes"] == max(sums) == sums[head["peak"]], f"{facts['totals']} {sums}")
    # A push that has more in use than its stacks made since the last one: what is there was made.
    expect(made["bytes"] >= top["totals"]["total_bytes"] and made["blocks"] >= top["totals"]["total_count"], f"{made} {top['totals']}")
    grown = ask("growth", place)["rows"][0]
    if grown["state"] != "spread":
        expect(facts["answer"]["growth"]["function"] == grown["stack"][0].split("!", 1), facts["answer"])
    # Only the last minutes: what was there before them is there from the first moment on.
    late, _, live, _ = page_of(place, "--service", "web", "--version", "1.4")
    expect({name for name, _ in live} == {"web 1.4"} and late["fleet"][4:] == ["--service", "web", "--version", "1.4"], late["fleet"])
    # A session that is over counts no more than in top; a wrong clock does not stretch the picture; names are anybody's.
    now, place_of_times, odd = time.time_ns(), room("a page's times"), Stacks([("web!it's; touch ran; echo '", "web!main")])
    for index in range(120):
        write(place_of_times, odd, [(1, 100, 1, 100)], host="alive", start=now - 150 * MINUTE, index=index)
    write(place_of_times, odd, [(1, 10 ** 6, 1, 10 ** 6)], host="dead", start=now - 3 * 24 * 60 * MINUTE)
    write(place_of_times, odd, [(1, 7, 1, 7)], host="wrong", start=MINUTE)
    facts, head, live, _ = page_of(place_of_times, "--last", "2h")
    expect(facts["totals"]["outstanding_bytes"] == facts["totals"]["peak_bytes"] == sum(row[-1] for row in live.values()) == 100, facts["totals"])
    facts, head, live, _ = page_of(place_of_times)
    expect(head["bounds"][-1] < 5 * 24 * 60 * MINUTE and sum(row[-1] for row in live.values()) == 10 ** 6 + 107, head["bounds"])
    words = shlex.split(facts["findings"][0]["command"])
    expect(words == ["xheap", "fleet", "hosts", place_of_times, "web!it's; touch ran; echo '"], words)
    expect(ask(words[2], *words[3:])["rows"][0]["outstanding_bytes"] == 10 ** 6, words)
    # A file that cannot be read is said, and the push before it holds on.
    broken = sorted(pathlib.Path(place).iterdir())[-1]
    broken.write_bytes(broken.read_bytes()[:-20])
    facts, *_ = page_of(place)
    expect([row["count"] for row in facts["state"] if row["kind"] == "losses"] == [1] and broken.name in str(facts["state"]), facts["state"])
    for words, reason in ((("--by", "host"), "neither"), (("--format", "csv"), "neither"), (("--html", "nowhere/page.html"), "nowhere/page.html"), (("--html", "page.html.gz"), "a page is not compressed")):
        expect(reason in run("fleet", "top", place, "--html", "no.html", *words, status=2).stderr and not os.path.exists("no.html"), words)
    expect(os.stat("page.html").st_mode & 0o777 == 0o600, "others may read it")


# ---- anybody's files ----

def check_damage():
    """What cannot be read is named and passed over, and nothing makes the command wait; the last good push of a session counts."""
    place = room("damage")
    for index in range(2):
        write(place, ONE, [(1, 100, 1, 100 + index), None], index=index)
    good = ask("top", place)
    whole = next(pathlib.Path(place).glob("*.1.pb.gz")).read_bytes()
    last = write(place, ONE, [(1, 100, 1, 5000), None], index=2)
    last.write_bytes(last.read_bytes()[:-30])
    answer = ask("top", place)
    expect(answer["rows"] == good["rows"] and not answer["complete"] and "cut short" in answer["missing"][0]["why"], answer)
    last.unlink()
    plain = gzip.decompress(whole)
    foreign = {"empty": b"", "text": b"hello\n", "cut": whole[:20], "not": gzip.compress(b"hello" * 100), "nothing": gzip.compress(b""), "zeros": gzip.compress(b"\0" * 9999),
               "unlabelled": gzip.compress(Stacks([]).profile({}, [])), "bomb": gzip.compress(bytes(200 << 20), 9), "tail": gzip.compress(plain.replace(b"id=h1/s", b"id=h2/s") + b"\x0a\xff\xff\xff"),
               "frame": gzip.compress(plain.replace(b"parse", b"\n\x1b[1m")), "huge": gzip.compress(Stacks([("a",)]).profile({"service.name": "s", "service.instance.id": "i"}, [(0, 0, 1 << 62, 1 << 62)]))}
    for name, data in foreign.items():
        pathlib.Path(place, f"{name}.pb.gz").write_bytes(data)
    os.mkfifo(f"{place}/fifo.pb.gz")
    os.symlink("/etc/passwd", f"{place}/link.pb.gz")
    os.symlink("/", f"{place}/up")
    os.mkdir(f"{place}/directory.pb.gz")
    pathlib.Path(place, "notes.txt").write_text("not one of ours")
    deep = pathlib.Path(place, *["d"] * 20)
    deep.mkdir(parents=True)
    begin = time.process_time()
    answer = ask("top", place)
    # All of them but `frame`, and the pipe, the link and what lies too deep.
    expect(answer["missing_count"] == len(foreign) + 2, f"{answer['missing_count']} {answer['missing']}")
    expect(answer["rows"][0]["outstanding_bytes"] == 101 and len(answer["missing"]) == 10, answer)
    # No name of a stranger obeys on a terminal, or begins a line.
    said = run("fleet", "top", place).stdout
    expect("\x1b" not in said and "passed over" in said, said)
    alone = room("alone")
    pathlib.Path(alone, "text.pb.gz").write_bytes(b"hello\n")
    expect("none of 1 file can be read; text.pb.gz: it is damaged, or no file of gzip" in run("fleet", "top", alone, status=2).stderr, "nothing to read")
    expect("has no files of xheap push" in run("fleet", "top", room("empty"), status=2).stderr, "an empty directory")


def check_words():
    place = room("words")
    write(place, ONE, [(1, 100, 1, 100), None], service="=cmd|' /C calc'!A0", host="a,b\"c")
    for words, said in (
            ([], "versions, sql, init or load is expected"), (["sideways"], "is expected"), (["top"], "the place is missing"), (["top", "nowhere"], "cannot read nowhere: No such file"),
            (["top", place, "x"], "x: not expected here"), (["top", place, "--last", "soon"], "not a time such as"), (["top", place, "--until", "soon"], "not a time such as 10m (ago)"), (["top", place, "--until", "2026-11-30"], "not a time such as"), (["top", place, "--until", "1960-01-01 00:00:00"], "not a time such as"),
            (["top", place, "--until", "99999d"], "not a time such as"), (["top", place, "--until", "9999999-01-01 00:00:00"], "not a time such as"),
            (["diff", place, "--after", "1", "--by", "host"], "stack, function or service"), (["top", place, "--top", "0"], "not a number above 0"),
            (["top", place, "--by", "colour"], "stack, function, service or host"), (["hosts", place], "the frame is missing"), (["diff", place], "the version is missing"),
            (["diff", place, "--after", "1", "--version", "2"], "exclude each other"), (["diff", place, "--after", "1", "--fail-above", "x"], "fail-above"), (["top", place, "--format", "folded"], "text, csv or json")):
        expect(said in run("fleet", *words, status=2).stderr, f"{words}: {run('fleet', *words, status=2).stderr}")
    rows = list(csv.DictReader(io.StringIO(run("fleet", "hosts", place, "parse", "--format", "csv").stdout)))
    expect(len(rows) == 1 and rows[0]["host"] == "a,b\"c" and rows[0]["service"] == "'=cmd|' /C calc'!A0", rows)
    text = run("fleet", "top", place).stdout
    # A version may be a build-id; a row says of which service it is.
    write(place, ONE, [(1, 100, 1, 100), None], version="0123456789abcdef" * 2 + "01234567", host="h2")
    expect(re.search(r"(?m)^.*\bweb +(0123456789abcdef){2}01234567$", run("fleet", "versions", place, "--service", "web", "--width", "80").stdout), "versions in 80 columns")
    expect("web!parse" in text and "1 push of 1 session on 1 host" in text, text)
    with open("/dev/full", "w", encoding="utf-8") as full:
        expect(subprocess.run([XHEAP, "fleet", "top", place], stdout=full, stderr=subprocess.PIPE).returncode == 2, "a full disk")


for check in (check_words, check_frames, check_file_versions, check_twice, check_clocks, check_until, check_damage, check_growth, check_over, check_page, check_versions, check_sums):
    check()
