#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Help of every command, of every verb of a command, and of what only xheap itself starts."""
import os
import pathlib
import re
import subprocess
import sys

SOURCE, XHEAP = pathlib.Path(os.environ["SOURCE"]), os.environ["XHEAP"]
HELP_WORDS = ("--help", "-help", "-h", "-?", "--HELP")
NOBODY = "no-such-name-of-a-session-or-file"
failures = []


def run(*words):
    return subprocess.run([XHEAP, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)


def commands():
    """The commands that xheap help lists, each as its words; and the verbs that its usage has."""
    for name, summary in re.findall(r"^  ([a-z]+)  +(\S+ \S+)", run("help").stdout, re.M):
        yield (name,)
        usage = " ".join(run("help", name).stdout.split(f"\n{summary}")[0].split()).removeprefix(f"xheap {name} ")
        parts = usage.split(" | ")
        if len(parts) > 1 and all(re.match(r"[a-z]+( |$)", part) for part in parts):
            yield from ((name, part.split()[0]) for part in parts)


def workers():
    """What only xheap itself starts: the second table of main.c."""
    table = re.search(r"workers\[\] = \{(.*?)\}", (SOURCE / "src/cli/main.c").read_text(), re.S)[1]
    texts = [path.read_text() for path in (SOURCE / "src").glob("*/*.[ch]")]
    for worker in re.findall(r"&(\w+)", table):
        word = next(found[1] for text in texts if (found := re.search(rf"struct command {worker} = \{{\s*\.name = (\w+)", text)))
        yield (next(found[1] for text in texts if (found := re.search(rf'#define {word} "([^"]+)"', text))),)


def check_help(words, is_listed):
    asked = [(*words, word) for word in HELP_WORDS] + [("--error-number", *words, "--help")] + ([("help", *words)] if is_listed else [])
    answers = set()
    for line in asked:
        done = run(*line)
        answers.add(done.stdout)
        if done.returncode or done.stderr or not done.stdout.startswith(f"xheap {' '.join(words)} "):
            failures.append(f"xheap {' '.join(line)}: status {done.returncode}: {done.stdout[:60]!r} {done.stderr[:200]!r}")
    if len(answers) > 1:
        failures.append(f"xheap {' '.join(words)} has {len(answers)} helps: {[answer[:60] for answer in answers]}")
    # Behind another word it may be refused, since it is that one's.
    done = run(*words, NOBODY, "--help")
    if done.returncode not in (0, 2):
        failures.append(f"xheap {' '.join(words)} {NOBODY} --help: status {done.returncode}: {done.stderr[:200]!r}")


def main():
    listed, hidden = list(commands()), list(workers())
    if len(listed) < 40 or len(hidden) < 2 or ("image", "list") not in listed:
        failures.append(f"only {listed} and {hidden} were found")
    for words in listed:
        check_help(words, True)
    for words in hidden:
        check_help(words, False)
    # Words that continue a measurement, which no table has.
    if run("boottrace", "-continue", "--help").returncode not in (0, 2):
        failures.append("xheap boottrace -continue --help")
    print("\n".join(failures) or f"{len(listed)} commands and verbs, {len(hidden)} of xheap's own")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
