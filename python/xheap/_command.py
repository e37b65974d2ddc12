# SPDX-License-Identifier: MIT
"""Runs the command xheap for the answers that libxheap does not give."""
import json
import subprocess
from typing import Any, List, Optional

from ._library import DamagedError, DeniedError, Error, InvalidError, NoMatchError, NotFoundError, command

#: Columns of a text: the command does not know the terminal of a notebook.
WIDTH = 100


class CommandError(Error):
    """The command failed: its message, and its exit status as `exit_status`."""

    exit_status: int = 2


def run(words: List[str], accepted: int = 0) -> str:
    """What the command prints on standard output. An exit status above `accepted` is an error."""
    try:
        done = subprocess.run([command(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except ValueError as error:
        raise InvalidError(f"a word of the command has a NUL in it: {words}") from error
    said = done.stderr.decode("utf-8", "backslashreplace").strip()
    if not 0 <= done.returncode <= accepted:
        lines = [line for line in said.splitlines() if line.startswith("xheap: ")] or said.splitlines()
        reason = "\n".join(lines).replace("xheap: ", "", 1)
        failed = CommandError(reason or f"xheap {words[0]} was ended by signal {-done.returncode}" if done.returncode < 0 else reason or f"xheap {words[0]} failed")
        failed.exit_status = done.returncode
        raise failed
    return done.stdout.decode("utf-8", "backslashreplace")


def answer(words: List[str], accepted: int = 0) -> Any:
    """Its answer in JSON."""
    return json.loads(run([*words, "-format", "json"], accepted))
