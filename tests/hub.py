"""A publisher's hub on this machine: as much of its protocol as its client needs to list commits and to fetch files."""

import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

COMMITS = ("0000111122223333444455556666777788889999", "784021482c3faaaabbbbccccddddeeeeffff0000",
           "c7f77a4ef051aaaabbbbccccddddeeeeffff0000")  # fmt: skip


class Hub(ThreadingHTTPServer):
    """Serves ``files`` (name -> content) of every repository. ``cut`` breaks off the first answer with a body after that many
    bytes; ``announced`` replaces the hash that is announced for a file; ``closed`` refuses everything."""

    def __init__(self, files, cut=0, announced=None, closed=False):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.cut, self.announced = files, cut, announced or {}
        self.requests, self.closed = [], closed

    def handle_error(self, request, client_address):
        """A client that was cut off is no news."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *given):
        pass

    def answer(self, content: bytes, status=200, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(content), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        paths = json.loads(body)["paths"] if body.startswith("{") else parse_qs(body)["paths"]
        found = []
        for name in paths:
            if name in self.server.files:
                content = self.server.files[name]
                oid = self.server.announced.get(name) or hashlib.sha256(content).hexdigest()
                lfs = {"oid": oid, "size": len(content), "pointerSize": 130}
                found.append({"type": "file", "path": name, "size": len(content), "oid": "a" * 40, "lfs": lfs})
        self.answer(json.dumps(found).encode(), Content_Type="application/json")

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.server.requests.append((self.command, self.path, self.headers.get("Range")))
        if self.server.closed:
            return self.answer(b"", 403)
        if "/commits/" in self.path:
            listing = [
                {"id": c, "title": "", "message": "", "authors": [], "date": "2025-01-01T00:00:00.000Z"}
                for c in COMMITS
            ]
            return self.answer(json.dumps(listing).encode(), Content_Type="application/json")
        revision, name = re.search(r"/resolve/([^/]+)/(.+)$", self.path).groups()
        if name not in self.server.files:
            return self.answer(b"", 404, X_Error_Code="EntryNotFound")
        content = self.server.files[name]
        tag = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X_Repo_Commit": revision, "Accept_Ranges": "bytes"}
        if self.command == "HEAD":
            self.send_response(200)
            for key, value in {"Content-Length": len(content), **tag}.items():
                self.send_header(key.replace("_", "-"), str(value))
            return self.end_headers()
        start = int(re.match(r"bytes=(\d+)-", self.headers.get("Range") or "bytes=0-")[1])
        if self.server.cut:
            part, self.server.cut = content[: self.server.cut], 0
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(part)
            self.wfile.flush()
            self.close_connection = True
            return self.connection.shutdown(2)
        ranged = {"Content_Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        return self.answer(content[start:], 206 if start else 200, **tag, **ranged)


@contextmanager
def serving(files, **options):
    hub = Hub(files, **options)
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
