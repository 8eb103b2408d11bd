"""A web server on this machine, of pages that a test makes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """Answers ``pages`` and 404 else; ``asked`` is every path in order. A page may claim another length than it has."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.claims: dict[str, int] = {}
        self.moved: dict[str, str] = {}
        self.asked: list[str] = []
        self.url = ""


@contextmanager
def serving() -> Iterator[Server]:
    """A server while the block lasts."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(self.path)
            if self.path in server.moved:
                self.send_response(302)
                self.send_header("Location", server.moved[self.path])
                self.end_headers()
                return
            page = server.pages.get(self.path)
            self.send_response(404 if page is None else 200)
            if page is not None:
                self.send_header("Content-Length", str(server.claims.get(self.path, len(page))))
            self.end_headers()
            self.wfile.write(page or b"")

        def log_message(self, *arguments: object) -> None: ...

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{listening.server_port}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
