# SPDX-License-Identifier: MIT
"""chdb_server.py PORT DIRECTORY: chdb, which is ClickHouse as a library, behind the HTTP of ClickHouse, as far as xheap speaks it."""
import http.server
import pathlib
import sys
import urllib.parse

import chdb.session

FORMAT = "FORMAT RowBinary"
directory = pathlib.Path(sys.argv[2])
session = chdb.session.Session(str(directory / "data"))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        words = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        try:
            session.query("USE " + words.get("database", "default"))
            status, out = 200, self.answer(words.get("query"), body)
        except Exception as error:  # pylint: disable=broad-except
            status, out = 400, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    def answer(self, query, body):
        if query:
            rows = directory / "rows"
            rows.write_bytes(body)
            return session.query(query.replace(FORMAT, f"FROM INFILE '{rows}' {FORMAT}")).bytes()
        sql = body.decode()
        return session.query(sql.removesuffix(FORMAT), "RowBinary" if sql.endswith(FORMAT) else "TabSeparated").bytes()

    def log_message(self, *_):
        pass


http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
