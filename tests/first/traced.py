# SPDX-License-Identifier: MIT
"""Runs a program under tracemalloc, as one who has no other tool would: traced.py PROGRAM WORD... Its last lines are those of the program that hold the most, or that grew since the second second."""
import runpy
import sys
import threading
import tracemalloc

sys.argv = sys.argv[1:]
early = []
watch = threading.Timer(2, lambda: early.append(tracemalloc.take_snapshot()))
watch.daemon = True
tracemalloc.start(25)
watch.start()
kept = runpy.run_path(sys.argv[0], run_name="__main__")
late = tracemalloc.take_snapshot()
rows = late.compare_to(early[0], "lineno") if early else late.statistics("lineno")
for row in rows[:10]:
    print(row)
