# SPDX-License-Identifier: MIT
"""Asks a server on this machine for pages, each another one: visit.py SECONDS. Its port is in the file "port"."""
import http.client
import pathlib
import sys
import time

PER_SECOND = 100
end = time.monotonic() + float(sys.argv[1])
number = 0
while not pathlib.Path("port").exists():
    time.sleep(0.05)
port = int(pathlib.Path("port").read_text())
while time.monotonic() < end:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", f"/page/{number}")
        connection.getresponse().read()
        connection.close()
    except OSError:
        time.sleep(0.05)
    number += 1
    time.sleep(1 / PER_SECOND)
