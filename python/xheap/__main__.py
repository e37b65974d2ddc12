# SPDX-License-Identifier: MIT
"""python -m xheap is the command xheap."""
import os
import sys

from ._library import LibraryError, command

try:
    path = command()
    os.execv(path, ["xheap", *sys.argv[1:]])
except (LibraryError, OSError) as error:
    print(f"xheap: {error}", file=sys.stderr)
    sys.exit(2)
