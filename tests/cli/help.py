#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Help of every command, of every verb of a command, and of what only xheap itself starts; and what bash offers behind each."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE, XHEAP = pathlib.Path(os.environ["SOURCE"]), os.environ["XHEAP"]
HELP_WORDS = ("--help", "-help", "-h", "-?", "--HELP")
NOBODY = "no-such-name-of-a-session-or-file"
# Before the options of these stands a name.
NAMED = {"start", "update", "query", "stop", "top"}
# Second spellings and short ones, which bash need not offer; and those that xheap itself uses.
SECOND = {"h", "help", "images", "init", "continue"}
BASH = 'source "$1"; shift; COMP_WORDS=(xheap "$@"); COMP_CWORD=$#; _xheap; printf "%s\\n" "${COMPREPLY[@]}"'
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
    texts = [path.read_text() for path in (SOURCE / "src").rglob("*.[ch]")]
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


def options_of(words):
    """The options that a help lists, each without its dashes."""
    rows = re.findall(r"^  (-.*?)(?:  |$)", run(*words, "--help").stdout, re.M)
    return {option.lower() for row in rows for option in re.findall(r"(?<![\w-])--?([a-zA-Z][\w-]+)", row)}


def offered(*line):
    """What bash offers for the last word."""
    done = subprocess.run(["bash", "-c", BASH, "bash", SOURCE / "completions/xheap.bash", *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, PATH=f"{pathlib.Path(XHEAP).resolve().parent}:{os.environ['PATH']}"))
    if done.stderr:
        failures.append(f"bash behind xheap {' '.join(line)}: {done.stderr[:200]}")
    return {word.lstrip("-").lower() for word in done.stdout.split()}


def check_completion(words, verbs):
    """Behind a dash, each option; of a command with verbs, whose options are those of a verb, the verbs."""
    line = [*words, *([NOBODY] if words[0] in NAMED else []), "-"]
    wanted = {"help"} if verbs else {"help"} | (options_of(words) - SECOND)
    missing = wanted - offered(*line) | (verbs - offered(*words, "") if verbs else set())
    if missing:
        failures.append(f"bash behind xheap {' '.join(line)} does not offer {sorted(missing)}")


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
    has_bash = shutil.which("bash")
    if not has_bash:
        print("completions were not tried: bash is not installed")
    for words in listed if has_bash else ():
        check_completion(words, {other[1] for other in listed if len(other) == 2 and other[:1] == words})
    print("\n".join(failures) or f"{len(listed)} commands and verbs, {len(hidden)} of xheap's own")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
