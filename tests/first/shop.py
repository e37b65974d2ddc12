# SPDX-License-Identifier: MIT
"""A web server that keeps what it was asked for: its cache of pages is never emptied. Serves on a free port, which it writes to "port", for so many seconds."""
import http.server
import json
import pathlib
import sys
import threading


class Shop(http.server.BaseHTTPRequestHandler):
    seen = {}

    def render(self):
        return json.dumps({"path": self.path, "items": [{"id": i, "price": i * 3} for i in range(50)]}).encode()

    def remember(self, body):
        self.seen[self.path] = body + b" " * 600

    def do_GET(self):
        body = self.render()
        self.remember(body)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
pathlib.Path("port").write_text(str(server.server_port))
threading.Timer(float(sys.argv[1]), server.shutdown).start()
server.serve_forever()
