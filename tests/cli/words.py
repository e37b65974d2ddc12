#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Command lines that are accepted, with what they mean, and lines that are refused. A line that was accepted once stays accepted, and means the same."""
import json
import os
import subprocess
import sys

XHEAP, BUILD = os.environ["XHEAP"], os.environ["BUILD"]
NAME = f"words{os.getpid()}"
ALL_STACKS = "HeapAlloc HeapRealloc HeapFree HeapCreate HeapDestroy HeapLock HeapProtect"
# What the trace says of a recording without options.
USUAL = {"buffer-size": "65536", "min-buffers": "2", "max-buffers": "1024", "on-full": "wait", "wait-limit-ms": "5000", "stack-depth": "8192",
         "duration": "yes", "follow": "yes", "until-exit": "no", "file-mode": "sequential", "flush-timer-ms": "1000", "max-file": "0",
         "stackwalk": ALL_STACKS, "command": "true"}
complaints = []

# Words before `true`, and what differs from USUAL then.
RECORD = (
    ("", {}),
    ("--buffer-size 128K", {"buffer-size": "131072"}),
    ("-buffer-size 128K", {"buffer-size": "131072"}),
    ("--buffer-size=131072", {"buffer-size": "131072"}),
    ("-buffer-size=128k", {"buffer-size": "131072"}),
    ("--buf 128KiB", {"buffer-size": "131072"}),
    ("--Buffer-Size 128K -NO-FOLLOW", {"buffer-size": "131072", "follow": "no"}),
    ("-b=128K", {"buffer-size": "131072"}),
    ("-b 1M", {"buffer-size": "1048576"}),
    ("--buffer-size 65537", {"buffer-size": "69632"}),
    ("--buffer-size 128K --buffer-size 64K", {}),
    ("--stackwalk HeapAlloc+heapfree", {"stackwalk": "HeapAlloc HeapFree"}),
    ("--stackwalk HeapAlloc,HEAPREALLOC", {"stackwalk": "HeapAlloc HeapRealloc"}),
    ("--stackwalk none", {"stackwalk": ""}),
    ("--stackwalk HeapAlloc+", {"stackwalk": "HeapAlloc"}),
    ("--stackwalk none+HeapLock", {"stackwalk": "HeapLock"}),
    ("--stackwalk ALL", {}),
    ("--stackw=all", {}),
    ("--stack-depth 3", {"stack-depth": "3"}),
    ("--stack-depth 8K", {}),
    ("--stack-d=1", {"stack-depth": "1"}),
    ("--no-duration", {"duration": "no"}),
    ("-no-d", {"duration": "no"}),
    ("--no-follow", {"follow": "no"}),
    ("--until-exit", {"until-exit": "yes"}),
    ("-u", {"until-exit": "yes"}),
    ("--on-full drop", {"on-full": "drop", "min-buffers": "32"}),
    ("--on DROP", {"on-full": "drop", "min-buffers": "32"}),
    ("--on-full drop --on-full Wait", {}),
    ("--wait-limit 200ms", {"wait-limit-ms": "200"}),
    ("-w 1.5s", {"wait-limit-ms": "1500"}),
    ("--wait-limit 2", {"wait-limit-ms": "2000"}),
    ("--wait-limit=1e1", {"wait-limit-ms": "10000"}),
    ("--min-buffers 3", {"min-buffers": "3"}),
    ("--min-b 40 --max-b 20", {"min-buffers": "40", "max-buffers": "40"}),
    ("--max-buffers 64K", {"max-buffers": "65536"}),
    ("--sample 512K", {"sample": "524288"}),
    ("--sa 1", {"sample": "1"}),
    ("--sample 1024G", {"sample": "1099511627776"}),
    ("--max-file 64K", {"max-file": "65536"}),
    ("--max-f=1G", {"max-file": "1073741824"}),
    ("--file-mode sequential", {}),
    ("--file-mode FILE", {}),
    ("--fi Ring --max-file 1M", {"file-mode": "circular", "max-file": "1048576"}),
    ("--file-mode append", {"file-mode": "append"}),
    ("--clock auto", {}),
    ("--clock MONOTONIC", {}),
    ("-cl=monotonic", {}),
    ("--permissions 660", {}),
    ("-pe 0600", {}),
    ("--flush-timer 50ms", {"flush-timer-ms": "50"}),
    ("-fl 60", {"flush-timer-ms": "60000"}),
    ("--index", {}),
    ("-i", {}),
    ("--index always", {}),
    ("--index=NEVER", {}),
    ("-i idle --no-follow", {"follow": "no"}),
    ("--index never --file-mode append", {"file-mode": "append"}),
    ("--index idle --file-mode append", {"file-mode": "append"}),
    ("--real-time", {"flush-timer-ms": "100"}),
    ("-r --flush-timer 20ms", {"flush-timer-ms": "20"}),
    ("--check-stacks", {}),
    ("-ch", {}),
    ("--quiet --quiet", {}),
    ("-qq", {}),
    ("-qu", {}),
    ("--", {}),
    ("--no-follow --", {"follow": "no"}),
)
# How FILE is given: the words, and the file.
OUTPUTS = (("-o a.xht", "a.xht"), ("-oa.xht", "a.xht"), ("--output a.xht", "a.xht"), ("-output=a.xht", "a.xht"), ("--out a.xht", "a.xht"),
           ("-qoa.xht", "a.xht"), ("-qqo a.xht", "a.xht"), ("-ou=a.xht", "a.xht"), ("-o -a.xht", "-a.xht"))

# Of record: refused, with this in the message.
REFUSED = (
    ("--buffer-size 3", "--buffer-size 3: "), ("--buffer-size 2M", "--buffer-size 2M: "), ("--buffer-size=-1", "--buffer-size -1: "),
    ("--buffer-size 99999999999999999999999", "--buffer-size 9999"), ("--buffer-size 17179934720K", "--buffer-size 17179934720K: "),
    ("--buffer-size", "--buffer-size: "), ("--buf", "--buf: "), ("--buffer-size=", "--buffer-size"),
    ("--stackwalk Heap", "--stackwalk Heap: "), ("--stackwalk HeapAlloc+x", "--stackwalk HeapAlloc+x: "),
    ("--stack-depth 0", "--stack-depth 0: "), ("--stack-depth 8193", "--stack-depth 8193: "), ("--stack-depth x", "--stack-depth x: "),
    ("--no-duration=1", "--no-duration=1: "), ("--quiet=2", "--quiet=2: "), ("--bogus", "--bogus: "), ("-z", "-z: "), ("-S 5", "-S: "),
    ("-n", "-n: "), ("-s", "-s: "), ("--f 1", "--f: "), ("-m 2", "-m: "), ("-qz", "-qz: "), ("--=x", "--=x: "), ("---quiet", "---quiet: "),
    ("--on-full perhaps", "--on-full perhaps: "), ("--on-full wai", "--on-full wai: "), ("--wait-limit 0", "--wait-limit 0: "),
    ("--wait-limit soon", "--wait-limit soon: "), ("--wait-limit -1s", "--wait-limit -1s: "), ("--wait-limit 1w", "--wait-limit 1w: "),
    ("--wait-limit nan", "--wait-limit nan: "), ("--wait-limit 1000001s", "--wait-limit 1000001s: "), ("--min-buffers 1", "--min-buffers 1: "),
    ("--max-buffers 65537", "--max-buffers 65537: "), ("--max-file 65535", "--max-file 65535: "), ("--sample 0", "--sample 0: "),
    ("--sample 1025G", "--sample 1025G: "), ("--file-mode x", "--file-mode x: "), ("--file-mode none", "--file-mode none"),
    ("--file-mode newfile", "--max-file SIZE"), ("--file-mode circular --max-file 64K", "1M"), ("--keep all", "--keep all: "),
    ("--keep live --file-mode append", "--keep live"), ("--trigger exit", "--trigger"), ("--trigger rss", "--trigger rss: "),
    ("--trigger exit=1", "--trigger exit=1: "), ("--file-mode flight --trigger rss=0", "--trigger rss=0: "),
    ("--clock sun", "--clock sun: "), ("--permissions 777", "--permissions 777: "), ("--permissions 400", "--permissions 400: "),
    ("--permissions rw", "--permissions rw: "), ("--flush-timer 5ms", "--flush-timer 5ms: "), ("--flush-timer 61s", "--flush-timer 61s: "),
    ("--index --file-mode append", "--index"), ("--index always --late-file", "--late-file"), ("--index=soon", "--index soon: "), ("--duration 1s", "--duration"), ("--duration 0", "--duration 0: "),
    ("-p x", "--pid x: "), ("-p 1,", "--pid 1,: "), ("-p 1,,2", "--pid 1,,2: "), ("-p 0", "--pid 0: "), ("-p -5", "--pid -5: "), ("-p 99999999999", "--pid 9999"),
    ("-p 1", "either"), ("-o=a.xht", "-o=a.xht: "), ("-p1,2", "either"), ("--pid=1 -d 1s", "either"), ("-o", "-o: "),
)

# Of heap and its like: lines that print the same.
ALIKE = (
    ("heap TRACE", "heap TRACE -stacks", "heap -i TRACE", "heap --i=TRACE -STACKS so", "heap TRACE --Stacks -SO", "-i TRACE -a heap", "heap -- TRACE",
     "HEAP TRACE -stacks s", "heap -tle -tti -symbols verbose -quiet TRACE", "heap TRACE -top 10000 -format TEXT"),
    ("heap TRACE -frames st", "heap TRACE -frames -st", "heap TRACE -frames -s st", "heap -frames st TRACE"),
    ("heap TRACE -frames -inclusive", "heap TRACE -inclusive -frames"),
    ("heap TRACE -image", "heap TRACE --images"),
    ("heap TRACE -top 1", "heap TRACE --top=1", "heap TRACE -TOP=1"),
    ("heap TRACE -format csv", "heap TRACE -format=CSV", "heap --format csv TRACE"),
    ("heap TRACE -by size", "heap TRACE --by SIZE", "heap TRACE -by=Size"),
    ("heap TRACE -size 0 max", "heap TRACE -size=0 max", "heap TRACE --SIZE 0 max"),
    ("heap TRACE -cullLists list.txt", "heap TRACE -cullList list.txt", "heap TRACE -CULLLISTS=list.txt"),
    ("heap TRACE -totals", "heap TRACE -Totals"),
    ("dump TRACE", "dump -events TRACE", "dump TRACE --Events"),
    ("dump TRACE -allocations -size 1 100", "dump --allocations --size=1 100 TRACE"),
    ("dump TRACE -stacks -wholeStacks", "dump TRACE -wholestacks -STACKS"),
    ("info TRACE -format json", "info TRACE --FORMAT=json", "info -format JSON TRACE"),
    ("report TRACE", "report -- TRACE"),
)
READING_REFUSED = (
    ("heap TRACE -stack", "-stack: "), ("heap TRACE -totals=3", "-totals=3: "), ("heap TRACE -top", "-top: "), ("heap TRACE -top x", "-top"),
    ("heap TRACE -top 1K", "-top"), ("heap TRACE -format xml", "-format"), ("heap TRACE -by nothing", "-by"), ("heap TRACE TRACE", "one FILE"),
    ("heap TRACE -window AIFX 1 2", "-window"), ("heap TRACE -range 2 1", "-range"), ("heap TRACE -threads", "-threads: "),
    ("dump TRACE -size 1 2", "-allocations"), ("dump TRACE -wholeStacks", "-stacks"), ("info TRACE -format csv", "-format"), ("info TRACE -x", "-x: "),
    ("report TRACE -top 0", "-top 0: from 1"), ("report TRACE -shortLived 0", "no time above zero"), ("report TRACE -tree", "-tree: "), ("merge TRACE TRACE", "merge: "), ("merge TRACE -o b.xht", "merge: "), ("symbols TRACE -threads 0", "-threads"),
    ("symbols TRACE -threads 9999", "-threads"), ("symbols TRACE -no", "-no: "), ("recover a b", "recover: "), ("recover -o", "-"), ("recover -x", "-x: "),
    ("top", "top: "), ("top a b", "one session"), ("top a -s zz", "-s"), ("top a -interval 0", "-interval"), ("top a -count 86401", "-count"),
)

# Of a session that exists: accepted, refused.
SESSION_ACCEPTED = (
    "query NAME", "query NAME --format json", "query NAME -FORMAT text", "query NAME --threads", "query --threads NAME", "query NAME -Threads --format JSON", "sessions",
    "sessions --format json", "update NAME", "update NAME -p 0", "update NAME --stackwalk HeapAlloc", "update NAME -stackw none --on-full=DROP",
    "update NAME --wait-limit 1s", "update NAME --WAIT-LIMIT=1s", "query NAME -format=json", "update NAME -w 2s -on wait", "update NAME --quiet", "flush NAME", "top NAME -count 1", "top NAME --COUNT=1 -s stc",
)
SESSION_REFUSED = (
    ("query", "query: "), ("query --threads", "query: "), ("query NAME NAME", "not expected here"), ("stop -q", "stop: "), ("stop NAME x", "x: "), ("stop NAME --bogus", "--bogus: "), ("query NAME x", "x: "), ("query NAME --format csv", "--format"),
    ("query NAME --format", "--format"), ("sessions x", "x: "), ("update", "update: "), ("update NAME x", "x: "), ("update NAME --bogus", "--bogus: "),
    ("update NAME --add-pid", "--add-pid: "), ("update NAME --add-pid x", "--add-pid x: "), ("update NAME --remove-pid 0", "--remove-pid 0: "),
    ("update NAME -Add-Pid 1,", "-pid 1,: "), ("update NAME --clock tsc", "--clock"), ("update NAME --sample 1K", "--sample"),
    ("update NAME --on-full x", "--on-full x: "), ("flush", "flush: "), ("flush NAME x", "x: "), ("stop", "stop: "), ("launch NAME", "launch: "),
    ("start NAME", "already"), ("start .x", "start: "), ("start a/b", "start: "), ("start NAME2 x", "x: "), ("start NAME2 --duration 1s", "--duration"),
    ("start NAME2 --until-exit", "--until-exit"), ("start NAME2 --file-mode none -o x.xht", "none"), ("start NAME2 -p 1,x", "--pid 1,x: "),
)


def complain(text):
    complaints.append(text)


def run(words):
    return subprocess.run([XHEAP, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def expect_refused(words, message):
    done = run(words)
    line = " ".join(words)
    if done.returncode != 2 or not done.stderr.startswith("xheap: ") or message not in done.stderr or done.stderr.count("\n") != 1:
        complain(f"xheap {line}: status {done.returncode}, not \"{message}\": {done.stderr.strip()}")


def check_record():
    for line, differs in RECORD:
        done = run(["record", "-qqo", "record.xht", *line.split(), "true"])
        facts = run(["info", "record.xht", "-format", "json"]).stdout if not done.returncode else ""
        if not facts:
            complain(f"record {line}: status {done.returncode}: {done.stderr.strip()}")
        elif json.loads(facts)["options"] != USUAL | differs:
            complain(f"record {line}: {sorted(json.loads(facts)['options'].items() ^ (USUAL | differs).items())}")
        if os.path.exists("record.xht"):
            os.unlink("record.xht")
    for line, path in OUTPUTS:
        done = run(["record", *line.split(), "true"])
        if done.returncode or not os.path.exists(path):
            complain(f"record {line}: no {path}: {done.stderr.strip()}")
        else:
            os.unlink(path)
    for line, message in REFUSED:
        expect_refused(["record", *line.split(), "true"] if line not in ("--buffer-size", "--buf", "-o") else ["record", line], message)
    # A word that is no option begins the command, whose options are its own.
    done = run(["record", "-qqo", "record.xht", "sh", "-c", "exit 7", "--output"])
    if done.returncode != 7:
        complain(f"record sh -c 'exit 7' --output: status {done.returncode}: {done.stderr.strip()}")


def check_reading():
    subprocess.run([f"{BUILD}/tests/golden/make_trace", "plain", "plain.xht"], check=True)
    with open("list.txt", "w") as out:
        out.write("none!\n")
    for lines in ALIKE:
        expected = None
        for line in lines:
            done = run(line.replace("TRACE", "plain.xht").split())
            expected = expected or done.stdout
            if done.returncode or done.stdout != expected:
                complain(f"xheap {line}: status {done.returncode}, other than {lines[0]}: {done.stderr.strip()}")
    for line, message in READING_REFUSED:
        expect_refused(line.replace("TRACE", "plain.xht").split(), message)
    for line in ("merge plain.xht record.xht -o m.xht", "merge -OUTPUT m.xht plain.xht record.xht"):
        done = run(line.split())
        if "plain.xht" not in done.stderr and "record.xht" not in done.stderr:
            complain(f"xheap {line}: {done.stderr.strip()}")


def check_sessions():
    done = run(["start", NAME, "-qq", "-o", "session.xht", "-p", "0"])
    if done.returncode:
        complain(f"start: {done.stderr.strip()}")
        return
    for line in SESSION_ACCEPTED:
        done = run(line.replace("NAME", NAME).split())
        if done.returncode:
            complain(f"xheap {line}: status {done.returncode}: {done.stderr.strip()}")
    for line, message in SESSION_REFUSED:
        expect_refused(line.replace("NAME", NAME).split(), message)
    done = run(["query", NAME, "-format", "json"])
    if json.loads(done.stdout)["on_full"] != "wait":
        complain(f"on_full: {done.stdout}")
    done = run(["launch", NAME, "--", "sh", "-c", "exit 3"])
    if done.returncode != 3:
        complain(f"launch: {done.stderr.strip()}")
    done = run(["stop", NAME])
    if done.returncode:
        complain(f"stop: {done.stderr.strip()}")


def main():
    check_record()
    check_reading()
    check_sessions()
    for text in complaints:
        print(text)
    return 1 if complaints else 0


sys.exit(main())
