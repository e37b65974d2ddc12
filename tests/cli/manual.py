#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manual: pages without warnings, options and lists of values that agree with --help and the completions, examples that run."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["SOURCE"])
XHEAP = os.environ["XHEAP"]
PAGES = sorted((SOURCE / "man").glob("xheap*.[15]"))
COMPLETIONS = [SOURCE / "completions" / name for name in ("xheap.bash", "_xheap", "xheap.fish")]
# Where each command has its options: the page, and the headings before and behind them.
COMMANDS = {command: (f"xheap-{command}.1", "\n.Sh OPTIONS", "\n.Sh ")
            for command in ("record", "recover", "heap", "diff", "dump", "export", "info", "symbols", "merge", "clean", "report", "view", "check", "explain", "leaks", "why", "push", "fleet", "image", "autologger", "boottrace")}
COMMANDS["dx"] = ("xheap-dx.7", "\n.Sh OPTIONS", "\n.Sh ")
COMMANDS |= {command: ("xheap-session.1", f"\n.Ss {command}\n", "\n.S") for command in ("update", "query", "sessions", "top")}
# What --help may leave out: itself, and second spellings.
UNLISTED = {"help", "h", "q", "o", "p", "output", "images"}
# Commands whose options another page explains, and single options of which that holds.
REFERRED = {"update": "xheap-record.1", "top": "xheap-heap.1"}
VALUE_PAGES = {("record", "trigger"): "xheap-session.1", ("top", "KEY"): "xheap-session.1"}
# The first needs a session that has lost its logger, the second one marks files of the machine. The live tests have both.
NOT_RUN = {"xheap-recover.1", "xheap-image.1", "xheap-autologger.1"}
# What bash offers behind these words.
OFFERED = {
    ("check", "--by", "f"): "function", ("check", "--fa"): "--fail-above",
    ("record", "--sam"): "--sample", ("record", "--keep", "live", "--sam"): "--sample", ("record", "--file-mode", "s"): "sequential",
    ("record", "ls", "--sam"): "", ("start", "name", "--sam"): "--sample", ("start", "name", "--clock", "t"): "tsc",
    ("update", "name", "--on-full", "w"): "wait", ("top", "name", "-s", "sp"): "sp spc", ("top", "name", "-i"): "-interval",
    ("heap", "-by", "t"): "thread time", ("view", "--id"): "--idle", ("report", "-se"): "-session", ("report", "-format", "h"): "html", ("query", "name", "--f"): "--format"}
BASH = "source \"$1\"; shift; COMP_WORDS=(xheap $@); COMP_CWORD=$#; _xheap; echo ${COMPREPLY[*]}"
complaints = []


def complain(text):
    complaints.append(text)


def check_format(page):
    for command in (["groff", "-ww", "-mandoc", "-Tutf8", "-z", page], ["man", "--warnings", "-l", page]):
        if not shutil.which(command[0]):
            print(f"not checked by {command[0]}, which is not installed")
            continue
        said = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr.strip()
        if said:
            complain(f"{page.name}: {command[0]} says: {said}")
    sections = re.findall(r"^\.Sh (.*)$", page.read_text(), re.M)
    if page.suffix == ".1" and sections[:2] != ["NAME", "EXAMPLES"]:
        complain(f"{page.name} does not begin with an example")


def options_of_help(command):
    run = subprocess.run([XHEAP, command, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode:
        complain(f"xheap {command} --help: status {run.returncode}: {run.stdout.strip()}")
    # In the usage: in brackets, or as one of several.
    found = set(re.findall(r"[\[|]--?([a-z][\w-]*)", run.stdout.split("\n\n")[0]))
    for line in run.stdout.splitlines():
        # Options, then at least two spaces, then what they do.
        for words in re.findall(r"^ {2,}(-\S.*?)(?: {2,}|$)", line):
            found |= set(re.findall(r"(?<![\w-])--?([a-zA-Z][\w-]*)", words))
    return found


def options_of_page(command):
    page, begin, end = COMMANDS[command]
    text = (SOURCE / "man" / page).read_text()
    options = text[text.index(begin) + len(begin):]
    options = options[:options.index(end)]
    return {option for item in re.findall(r"^\.It (.*)$", options, re.M) for option in re.findall(r"Fl -?([a-zA-Z][\w-]*)", item)}


def check_options(command):
    helped, paged = options_of_help(command), options_of_page(command)
    for option in sorted(helped - paged - UNLISTED):
        complain(f"{COMMANDS[command][0]} does not have {command} -{option}, which --help has")
    for option in sorted(paged - helped - UNLISTED):
        complain(f"xheap {command} --help does not have -{option}, which the page has")
    for path in COMPLETIONS:
        text = path.read_text()
        for option in sorted(helped - UNLISTED):
            if not re.search(rf"(?:--?|-l |-o |-s ){option}\b", text):
                complain(f"{path.name} does not complete {command} -{option}")


def check_completions():
    for path, shell in zip(COMPLETIONS, ("bash", "zsh", "fish")):
        if not shutil.which(shell):
            print(f"not checked by {shell}, which is not installed: {path.name}")
            continue
        said = subprocess.run([shell, "-n", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if said.returncode or said.stdout:
            complain(f"{path.name}: {shell} -n says: {said.stdout}")
    for words, wanted in OFFERED.items():
        if shutil.which("bash"):
            run = subprocess.run(["bash", "-c", BASH, "bash", COMPLETIONS[0], *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if run.stdout.strip() != wanted:
                complain(f"bash completes {' '.join(words)} by {run.stdout.strip()!r}, not {wanted!r}: {run.stderr}")


def values_of_help(command):
    """The values that --help lists: of each option, and the keys to sort by."""
    text = subprocess.run([XHEAP, command, "--help"], stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for name, said in re.findall(r"^  (?:-\w, )?--?([a-z][\w-]*)(?: \S+)*(?:  +|\n +)(.*(?:\n {26}.*)*)", text, re.M | re.I):
        # One on each line, each with a text; or all in one sentence, after a colon.
        rows = re.findall(r"^ {28}([\w-]+)\S* {2,}\S", said, re.M)
        listed = re.search(r": ((?:[\w-]+(?: \(default\))?, )*[\w-]+(?: \(default\))? or [\w-]+(?: \(default\))?)$", " ".join(said.split()))
        found[name] = rows or (re.split(", | or ", listed[1].replace(" (default)", "")) if listed else [])
    if "KEY: " in text:
        found["KEY"] = re.findall(r"^  (\w+) +\w", text[text.index("KEY: "):].split("\n\n")[0], re.M)
    return {name: values for name, values in found.items() if values}


def check_values(command):
    lists = values_of_help(command)
    for name in {"record": ("stackwalk", "clock", "on-full", "file-mode", "trigger"), "heap": ("by", "format", "KEY"), "dump": ("format",), "export": ("format", "by")}.get(command, ()):
        if len(lists.get(name, ())) < 2:
            complain(f"xheap {command} --help has no list of {name}")
    for name, value in ((name, value) for name, values in lists.items() for value in values):
        page = SOURCE / "man" / VALUE_PAGES.get((command, name), REFERRED.get(command, COMMANDS[command][0]))
        if not re.search(rf"^\.(?:It )?(?:.* )?(?:Cm|Li|Ar) (?:.* )?{value}\b", page.read_text(), re.M):
            complain(f"{page.name} does not have {value}, which xheap {command} --help has for {name}")
        for path in COMPLETIONS:
            # Keys are words behind an action, which fish's file does not complete.
            if name == "KEY" and path.suffix == ".fish":
                continue
            if not re.search(rf"(?<![\w-]){value}(?![\w-])", path.read_text()):
                complain(f"{path.name} does not have {value}, a value of {command} {name}")


def check_file_modes():
    """Each mode has an item of the list that explains them."""
    page = (SOURCE / "man/xheap-session.1").read_text()
    modes = page[page.index(".Sh FILE MODES"):].split("\n.Sh")[0]
    for mode in values_of_help("record")["file-mode"]:
        if f".It Cm {mode}\n" not in modes:
            complain(f"xheap-session.1 does not explain the file mode {mode}")


def run_examples(page):
    environment = dict(os.environ, PATH=f"{pathlib.Path(XHEAP).parent}:{os.environ['PATH']}")
    examples = re.findall(r"^\$ (.*)$", page.read_text(), re.M)
    if not examples and page.suffix == ".1":
        complain(f"{page.name}: no examples")
    for example in examples:
        programs = [word for word in ("jq", "python3", "perl") if re.search(rf"(?<![\w.]){word} ", example)]
        missing = [word for word in programs if not shutil.which(word)]
        if missing:
            print(f"{page.name}: not run without {missing[0]}: {example}")
            continue
        run = subprocess.run(["sh", "-c", example], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", timeout=1000)
        if run.returncode or not run.stdout.strip():
            complain(f"{page.name}: {example}: status {run.returncode}: {run.stdout.strip()[-300:]}")


def main():
    if not PAGES:
        complain("there are no pages")
    for page in PAGES:
        check_format(page)
    for command in COMMANDS:
        check_options(command)
        check_values(command)
    check_file_modes()
    check_completions()
    for page in PAGES:
        if page.name not in NOT_RUN:
            run_examples(page)
    for text in complaints:
        print(text)
    return 1 if complaints else 0


sys.exit(main())
