#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Indexes in the user's cache: announced once, found by the contents of a trace, kept within a limit, shared by commands that run at the same time, refused
in places of other users, and removed by xheap clean."""
import os
import pathlib
import shutil
import subprocess
import sys

XHEAP, MAKE_TRACE = os.environ["XHEAP"], os.path.join(os.environ["BUILD"], "tests/golden/make_trace")
CACHE = pathlib.Path("cache").absolute()
INDEXES = CACHE / "xheap/indexes"
OLDER = pathlib.Path(os.environ["SOURCE"], "tests/older")
ENVIRONMENT = dict(os.environ, XDG_CACHE_HOME=str(CACHE), XHEAP_INDEX_EVENTS="1")
STRANGER = 4711
FAKES = 10000
failed = []


def expect(is_so, what):
    if not is_so:
        failed.append(what)


def run(*words, prefix=(), **more):
    done = subprocess.run([*prefix, XHEAP, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(ENVIRONMENT, **more))
    return done


def totals(trace, *words, **more):
    done = run("heap", trace, "-totals", *words, **more)
    expect(done.returncode == 0, f"{trace} {words}: status {done.returncode}: {done.stderr}")
    return done


def indexes():
    return sorted(INDEXES.glob("*")) if INDEXES.exists() else []


def reads_index(trace, **more):
    return ", index " in totals(trace, "-timing", **more).stderr


def traces():
    for seed, name in enumerate(("a", "b", "c", "d")):
        subprocess.run([MAKE_TRACE, "random", f"{name}.xht", str(seed)], check=True)


def check_announcement():
    plain = totals("a.xht", "-noIndex")
    expect(not plain.stderr and not indexes(), f"-noIndex: {plain.stderr} {indexes()}")
    for form in ("csv", "json"):
        expect(not run("heap", "a.xht", "-stacks", "-format", form).stderr, f"{form}: an announcement")
        expect(len(indexes()) == 1, f"{form}: no index")
        indexes()[0].unlink()
    said = totals("a.xht").stderr
    expect(said.count("\n") == 1 and str(INDEXES) in said and "xheap clean" in said and "iB" in said, f"announced: {said}")
    expect(not totals("a.xht").stderr, "announced again")
    expect("matching" in totals("a.xht", "-noIndex", "-timing").stderr, "-noIndex reads an index")
    for words in (("report", "a.xht"), ("dump", "a.xht", "-allocations")):
        indexes()[0].unlink()
        expect("made an index" not in run(*words, "-noIndex").stderr and not indexes(), f"{words}: -noIndex")
        expect(run(*words).stderr.count("made an index") == 1 and len(indexes()) == 1, f"{words}: no index")


def check_identity():
    """The contents count: a trace that was moved, linked or copied has its index, and another one under its name has not."""
    answer = totals("a.xht").stdout.replace("a.xht", "")
    os.makedirs("moved")
    shutil.copyfile("a.xht", "moved/copy.xht")
    os.symlink("moved/copy.xht", "link.xht")
    for name in ("moved/copy.xht", "link.xht"):
        expect(reads_index(name), f"{name}: its index is not found")
        expect(totals(name).stdout.replace(name, "") == answer, f"{name}: other answers")
    shutil.copyfile("b.xht", "moved/copy.xht")
    expect(not reads_index("moved/copy.xht"), "another trace has its index")
    expect(totals("moved/copy.xht").stdout == totals("moved/copy.xht", "-noIndex").stdout, "a replaced trace: other answers")
    expect(len(indexes()) == 2, f"{indexes()}")


def check_at_once():
    run("clean")
    commands = [subprocess.Popen([XHEAP, "heap", "c.xht", "-totals"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
                for _ in range(6)]
    answers = {(command.communicate()[0], command.returncode) for command in commands}
    expect(answers == {(totals("c.xht", "-noIndex").stdout, 0)}, f"{len(answers)} answers at once")
    expect(len(indexes()) == 1, f"at once: {indexes()}")


def check_limit():
    """The least recently used one goes first; the new one stays."""
    run("clean")
    for name in ("a", "b", "c"):
        totals(f"{name}.xht")
    of = {name: pathlib.Path(run("clean", "-n", f"{name}.xht").stdout.split("  ")[-1].split(" of ")[0].strip()) for name in ("a", "b", "c")}
    sizes = {name: path.stat().st_size for name, path in of.items()}
    for age, name in enumerate(("c", "b", "a")):
        os.utime(of[name], (1000 - age, 1000 - age))
    totals("a.xht")
    limit = sum(sizes.values()) + 1
    said = totals("d.xht", XHEAP_INDEX_LIMIT=str(limit)).stderr
    expect(not of["b"].exists() and of["a"].exists() and any(f"; removed {count} unused for longest, " in said for count in ("1 index", "2 indexes")) and ", to stay below " in said, f"b was used longest ago: {said}")
    expect(sum(path.stat().st_size for path in indexes()) <= limit, "the limit is exceeded")
    said = run("heap", "b.xht", "-totals", XHEAP_INDEX_LIMIT="1K").stderr
    expect(len(indexes()) == 1 and "exceeds the limit of 1.0 KiB" in said, f"{indexes()}: {said}")
    for number in range(FAKES):
        path = INDEXES / f"{number:016x}.index"
        path.write_bytes(b"XHEAPIX5")
        os.utime(path, (number, number))
    (INDEXES / "mine.txt").write_text("not an index")
    totals("c.xht", XHEAP_INDEX_LIMIT="1K")
    expect([path.name for path in indexes() if path.name != of["c"].name] == ["mine.txt"], f"of {FAKES} are left: {len(indexes())}")


def check_reading_while_removed():
    run("clean")
    totals("a.xht")
    wanted = run("dump", "a.xht", "-allocations", "-format", "csv").stdout
    reader = subprocess.Popen([XHEAP, "dump", "a.xht", "-allocations", "-format", "csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    begin = reader.stdout.read(10)
    run("clean")
    expect(begin + reader.stdout.read() == wanted and not reader.wait(), "an index that is removed while it is read")


def check_clean():
    run("clean")
    expect("nothing" in run("clean").stdout, "clean of nothing")
    totals("a.xht")
    totals("b.xht")
    said = run("clean", "-n").stdout
    expect(len(indexes()) == 3 and "would remove 2 files" in said and f"of {os.getcwd()}/a.xht" in said, f"clean -n: {said}")
    expect("removed 1 file" in run("clean", "a.xht").stdout and len(indexes()) == 2, "clean FILE")
    expect("removed 1 file" in run("clean").stdout and [path.name for path in indexes()] == ["mine.txt"], f"clean: {indexes()}")
    names = CACHE / "xheap/symbols/0123abcd"
    names.parent.mkdir(exist_ok=True)
    names.write_bytes(b"names")
    run("clean")
    expect(names.exists(), "clean removes names")
    run("clean", "-symbols")
    expect(not names.exists(), "clean -symbols keeps names")
    pathlib.Path("a.xht.index").write_text("notes about a.xht")
    run("clean", "a.xht")
    expect(pathlib.Path("a.xht.index").exists(), "clean removes a file that is no index")
    os.unlink("a.xht.index")
    expect(run("clean", "no.xht").returncode == 2, "clean of no trace")


def check_older():
    """An index beside its trace, as earlier versions made it: it is not read, made anew in the cache, and removed by clean."""
    for suffix in ("", ".index"):
        shutil.copyfile(OLDER / f"threads.xht{suffix}", f"threads.xht{suffix}")
        os.utime(f"threads.xht{suffix}", (1700000000, 1700000000))
    expect(not reads_index("threads.xht") and INDEXES.exists(), "an older index is read")
    expect(reads_index("threads.xht"), "an index is not made anew")
    expect("removed 2 files" in run("clean", "threads.xht").stdout and not os.path.exists("threads.xht.index"), "an older index is not removed")


def refused(what, prefix=(), **more):
    """There is an answer without an index, and the reason."""
    done = totals("shared/a.xht", prefix=prefix, **more)
    expect("no index is kept" in done.stderr, f"{what}: {done.stderr}")
    expect(done.stdout == totals("shared/a.xht", "-noIndex").stdout, f"{what}: another answer")


def check_places():
    os.makedirs("shared")
    shutil.copyfile("a.xht", "shared/a.xht")
    os.chmod("shared/a.xht", 0o644)
    refused("no home", XDG_CACHE_HOME="", HOME="")
    refused("a cache that cannot be", XDG_CACHE_HOME="/proc/nowhere")
    pathlib.Path("file").write_text("")
    refused("a file", XDG_CACHE_HOME=os.path.abspath("file"))
    os.makedirs("open/xheap")
    os.chmod("open/xheap", 0o777)
    refused("a directory that others write to", XDG_CACHE_HOME=os.path.abspath("open"))
    if os.getuid():
        print("places of other users are not tested: this is not root")
        return
    os.chmod(".", 0o755)
    os.makedirs("theirs")
    os.chown("theirs", STRANGER, STRANGER)
    refused("another user's home", XDG_CACHE_HOME="", HOME=os.path.abspath("theirs"))
    expect(not os.listdir("theirs"), "something was made in another user's home")
    os.makedirs("linked")
    os.makedirs("victim")
    os.symlink(os.path.abspath("victim"), "linked/xheap")
    os.lchown("linked/xheap", STRANGER, STRANGER)
    refused("another user's link", XDG_CACHE_HOME=os.path.abspath("linked"))
    expect(not os.listdir("victim"), "another user's link was followed")
    check_as_stranger()


def check_as_stranger():
    """Somebody who may not write."""
    prefix = ("setpriv", "--reuid", str(STRANGER), "--clear-groups")
    if run("heap", "shared/a.xht", "-noIndex", prefix=prefix).returncode:
        print("not tested as another user: the command cannot be run by one")
        return
    refused("another user's cache", prefix=prefix)
    cache = pathlib.Path("theirs/cache")
    (cache / "xheap/indexes").mkdir(parents=True)
    for path in (cache, cache / "xheap", cache / "xheap/indexes"):
        os.chown(path, STRANGER, STRANGER)
        os.chmod(path, 0o700)
    totals("shared/a.xht", prefix=prefix, XDG_CACHE_HOME=str(cache.absolute()))
    index, = (cache / "xheap/indexes").iterdir()
    os.chmod(cache / "xheap/indexes", 0o500)
    expect(reads_index("shared/a.xht", prefix=prefix, XDG_CACHE_HOME=str(cache.absolute())), "an index in a read-only cache is not read")
    data = bytearray(index.read_bytes())
    for at in range(4096, 8192):
        data[at] ^= 0x55
    index.write_bytes(data)
    done = run("heap", "shared/a.xht", "-stacks", prefix=prefix, XDG_CACHE_HOME=str(cache.absolute()))
    expect(done.returncode == 0 and "cannot be removed" in done.stderr, f"a damaged index that stays: {done.stderr}")
    expect(done.stdout == run("heap", "shared/a.xht", "-stacks", "-noIndex").stdout, "a damaged index that stays: another answer")


traces()
for check in (check_announcement, check_identity, check_at_once, check_limit, check_reading_while_removed, check_clean, check_older, check_places):
    check()
for line in failed:
    print(line)
sys.exit(bool(failed))
