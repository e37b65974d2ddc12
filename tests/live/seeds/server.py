# SPDX-License-Identifier: MIT
"""A web application with a thread for each connection, whose work is done in a library: server.py LIBRARY PORT_FILE. Ends at SIGTERM."""
import ctypes
import http.server
import json
import os
import signal
import sys
import threading

application, interpreter = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[1])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        number = application.app_request()
        interpreter.make_label(number)
        body = json.dumps({"request": number, "visitors": [{"name": str(n), "visits": [n] * 5} for n in range(20)]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
with open(f"{sys.argv[2]}.new", "w") as file:
    file.write(f"{server.server_address[1]} {os.getpid()}")
os.rename(f"{sys.argv[2]}.new", sys.argv[2])
server.serve_forever()
