# SPDX-License-Identifier: MIT
"""Runs the command xheap for the answers that libxheap does not give."""
import json
import re
import subprocess
from typing import Any, List, Tuple

from ._library import Error, InvalidError, NoMatchError, command

#: Columns of a text: the command does not know the terminal of a notebook.
WIDTH = 100


class CommandError(Error):
    """The command failed: its message, and its exit status as `exit_status`."""

    exit_status: int = 2


def completed(words: List[str]) -> Tuple[str, str]:
    """What the command prints on standard output and on standard error. An exit status other than 0 is an exception."""
    try:
        done = subprocess.run([command(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except ValueError as error:
        raise InvalidError(f"a word of the command has a NUL in it: {words}") from error
    said, notes = (text.decode("utf-8", "backslashreplace") for text in (done.stdout, done.stderr))
    if done.returncode == 0:
        return said, notes
    # Notes stand before the reason.
    reason = re.split(r"^xheap: ", notes.strip(), flags=re.M)[-1] or f"xheap {words[0]} ended with status {done.returncode}"
    if done.returncode == 1:
        raise NoMatchError(reason)
    failed = CommandError(reason if done.returncode > 0 else f"xheap {words[0]} was ended by signal {-done.returncode}")
    failed.exit_status = done.returncode
    raise failed


def run(words: List[str]) -> str:
    """What the command prints on standard output."""
    return completed(words)[0]


def answer(words: List[str]) -> Any:
    """Its answer in JSON."""
    return json.loads(run([*words, "-format", "json"]))
