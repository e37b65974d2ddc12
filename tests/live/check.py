#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs one row of programs.ini, real.ini or suites.ini traced and untraced, and holds the two against each other.

usage: check.py --list
       check.py [--untraced] [--keep] NAME

A row names a command, run in an empty directory:

command   the command; programs of tests/live/programs are found in PATH, $input is a directory with what prepare made,
          $real is tests/live/real, $programs the directory of the programs
shell     yes (default): run by sh, which is traced with it; no: run as it is, after settings as NAME=VALUE
prepare   commands run first, untraced, in $input
needs     programs that must be there, else the test is skipped
log       preload (default): the oracle library logs every call; self: the program was linked with a log of its own;
          none: only outputs are compared
order     how the log is compared with the trace: exact (default), contains, unordered, finished (compare.py)
status    the exit status expected (default 0)
unknown   frees of blocks that nobody had (default 0)
whole     yes: each stack must reach its start (default no)
cut       percent of the stacks that may be compared up to code without tables only: that of a compiler inside (default 1)
unlogged  processes with events that the log cannot see (default 0)
records   the most calls of a log (CALL_LOG_RECORDS)
record    options for `xheap record`
stacks    yes: the oracle unwinds each call, and every stack of the trace must be as it says; a number: each so manieth call, where
          all would take too long (SOAK=1 takes all); default no
output    same (default): standard output and error are as untraced; any: they differ from run to run

Three runs: untraced, untraced with the log (--untraced ends here: the log must hold by itself), traced with the log.
"""
import argparse
import configparser
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from live import for_preload

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", HERE.parent.parent / "build")).resolve()
XHEAP = pathlib.Path(os.environ.get("XHEAP", BUILD / "xheap"))
PROGRAMS = BUILD / "tests/live"
SKIP = 77
DEFAULTS = {"prepare": "", "shell": "yes", "needs": "", "log": "preload", "order": "exact", "status": "0", "unknown": "0", "whole": "no", "cut": "1", "unlogged": "0",
            "records": "", "record": "", "stacks": "no", "output": "same"}


def read_rows():
    rows = configparser.ConfigParser(interpolation=None, default_section="defaults", delimiters=("=",),
                                     comment_prefixes=("#",))
    rows.read_dict({"defaults": DEFAULTS})
    for table in ("programs.ini", "real.ini", "suites.ini"):
        rows.read(HERE / table)
    return rows


class Failure(Exception):
    pass


class Run:
    """One execution: its directory, outputs and status."""

    def __init__(self, check, name, wrapper=(), logs=None):
        self.directory = check.directory / name
        self.directory.mkdir()
        self.errors = check.directory / f"{name}.stderr"
        command = [str(word) for word in wrapper] + [str(PROGRAMS / "with"), "-2", str(self.errors)]
        command += check.log_settings(logs) + check.command()
        environment = dict(os.environ, input=str(check.input), programs=str(PROGRAMS), real=str(HERE / "real"), PATH=f"{PROGRAMS}:{os.environ['PATH']}",
                           HOME=str(check.directory), CALL_LOG="", LC_ALL="C.UTF-8")
        del environment["CALL_LOG"]
        done = subprocess.run(command, cwd=self.directory, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace")
        self.status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        self.output, self.wrapper_errors = done.stdout, done.stderr
        self.stderr = self.errors.read_text(errors="replace") if self.errors.exists() else ""

    def differs(self, other, row):
        if self.status != other.status:
            return f"exit status {self.status}, untraced {other.status}"
        if row["output"] == "any":
            return None
        for what, ours, theirs in (("standard output", self.output, other.output),
                                   ("standard error", self.stderr, other.stderr)):
            if ours != theirs:
                return f"{what} differs:\n{first_difference(ours, theirs)}"
        return None


def first_difference(ours, theirs):
    ours, theirs = ours.splitlines(), theirs.splitlines()
    for index in range(max(len(ours), len(theirs))):
        left = ours[index] if index < len(ours) else "[end]"
        right = theirs[index] if index < len(theirs) else "[end]"
        if left != right:
            return f"  line {index + 1}: {left[:300]}\n  untraced: {right[:300]}"
    return "  (only in the last line's end)"


class Check:
    def __init__(self, name, row, directory):
        self.name, self.row, self.directory = name, row, directory
        self.input = directory / "input"
        self.input.mkdir()

    def command(self):
        if self.row["shell"] == "yes":
            return ["sh", "-c", self.row["command"]]
        return [word.replace("$programs", str(PROGRAMS)) for word in shlex.split(self.row["command"])]

    def log_settings(self, logs):
        if logs is None or self.row["log"] == "none":
            return []
        logs.mkdir(mode=0o777)
        logs.chmod(0o777)
        settings = [f"CALL_LOG={logs}"]
        if self.row["records"]:
            settings.append(f"CALL_LOG_RECORDS={self.row['records']}")
        if self.row["stacks"] != "no":
            settings.append(f"CALL_STACKS={1 if self.row['stacks'] == 'yes' or os.environ.get('SOAK') else self.row['stacks']}")
        if self.row["log"] == "preload":
            settings.append(f"LD_PRELOAD={for_preload('oracle.so')}")
        return settings

    def prepare(self):
        missing = [program for program in self.row["needs"].split() if not shutil.which(program, path=f"{PROGRAMS}:{os.environ['PATH']}")]
        if missing:
            print(f"without {' '.join(missing)}")
            sys.exit(SKIP)
        if self.row["prepare"]:
            subprocess.run(["sh", "-euc", self.row["prepare"]], cwd=self.input, check=True, stdin=subprocess.DEVNULL,
                           env=dict(os.environ, HOME=str(self.directory), PATH=f"{PROGRAMS}:{os.environ['PATH']}"))

    def untraced(self):
        plain = Run(self, "plain")
        if plain.status == SKIP:
            print(plain.output.strip())
            sys.exit(SKIP)
        if plain.status != int(self.row["status"]):
            raise Failure(f"untraced: exit status {plain.status}, expected {self.row['status']}\n"
                          f"{plain.output[-2000:]}{plain.stderr[-2000:]}{plain.wrapper_errors}")
        return plain

    def logged(self, plain):
        """The log must not change the program, and must hold by itself."""
        if self.row["log"] == "none":
            return
        logs = self.directory / "logs-untraced"
        self.expect_same(Run(self, "logged", logs=logs), plain, "with the log")
        self.compare(logs)

    def traced(self, plain):
        trace, logs = self.directory / "trace.xht", self.directory / "logs"
        options = shlex.split(self.row["record"]) + (["--check-stacks"] if os.environ.get("SOAK") else [])
        run = Run(self, "traced", [XHEAP, "record", "-o", trace, *options, "--"], logs)
        sys.stdout.write(run.wrapper_errors)
        differed = re.search(r"(\d+) remembered stacks differed", run.wrapper_errors)
        if "--check-stacks" in options and (not differed or int(differed[1])):
            raise Failure("the recorder's own check of its stacks failed")
        self.expect_same(run, plain, "traced")
        self.expect_complete(trace)
        if self.row["log"] != "none":
            self.compare(logs, self.dump(trace, "events"), self.dump(trace, "stacks") if self.row["stacks"] != "no" else None)

    def dump(self, trace, subject):
        path = self.directory / f"{subject}.csv"
        with open(path, "wb") as file:
            subprocess.run([XHEAP, "dump", trace, f"--{subject}", "--format", "csv"], stdout=file, check=True)
        return path

    def expect_same(self, run, plain, how):
        reason = run.differs(plain, self.row)
        if reason:
            raise Failure(f"{how}: {reason}\n{run.wrapper_errors}{run.stderr[-2000:]}")

    def expect_complete(self, trace):
        info, heap = (json.loads(subprocess.run([XHEAP, command, trace, "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)
                      for command in ("info", "heap"))
        # What is not there would be no zero.
        facts = {"lost_events": info["lost_events"], "gaps": len(info["gaps"]), "order_conflicts": heap["order_conflicts"],
                 "unknown_frees": heap["unknown_frees"] - int(self.row["unknown"])}
        if self.row["whole"] == "yes":
            facts["truncated_stacks"], facts["unwindless_stacks"] = info["truncated_stacks"], info["unwindless_stacks"]
        for what, count in facts.items():
            if count:
                raise Failure(f"{what}: {count}")
        # Children that cannot be traced are named, and are all that the trace may lack.
        lacking = [key for key in ("unhooked", "untraced_execs", "damaged_memory") if key in info]
        if lacking or info["missing_calls"] or not (info["complete"] or "untraced_processes" in info):
            raise Failure(f"the trace says that it is not complete: {info['missing_calls']} calls are missing, {lacking}")

    def compare(self, logs, dump=None, stacks=None):
        command = [HERE / "compare.py", "--order", self.row["order"], "--unlogged", self.row["unlogged"], "--cut", self.row["cut"], logs]
        if stacks:
            command[1:1] = ["--stacks", stacks]
        done = subprocess.run(command + ([dump] if dump else []), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        sys.stdout.write(done.stdout)
        if done.returncode:
            raise Failure("the log and the trace differ" if dump else "the log does not hold by itself")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--untraced", action="store_true", help="only the runs without xheap")
    parser.add_argument("--keep", action="store_true", help="keep the directory, and name it")
    parser.add_argument("name", nargs="?")
    options = parser.parse_args()
    rows = read_rows()
    if options.list:
        print("\n".join(rows.sections()))
        return 0
    if options.name not in rows:
        parser.error("no such row" if options.name else "NAME?")
    directory = pathlib.Path(tempfile.mkdtemp(prefix=f"xheap-{options.name}."))
    directory.chmod(0o755)
    check = Check(options.name, rows[options.name], directory)
    try:
        check.prepare()
        plain = check.untraced()
        if options.untraced or os.environ.get("SOAK"):
            check.logged(plain)
        if not options.untraced:
            check.traced(plain)
    except Failure as failure:
        print(failure)
        return 1
    finally:
        if options.keep:
            print(directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
