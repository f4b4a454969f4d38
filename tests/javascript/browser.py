"""A real browser without a window, and the server of its pages, on loopback; both end with the block."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Pages", "browsing", "pages"]

SECONDS = 120.0
OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # which needs more rights than tests have
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-popup-blocking",  # so that a page opens others, each in a process of its own
)


class Pages:
    """A server of files on loopback, and of the results that its pages send back.

    Parameters
    ----------
    folder : Path
        Of the files.
    """

    def __init__(self, folder: Path) -> None:
        self.texts: dict[str, str] = {}
        self.results: queue.Queue[Any] = queue.Queue()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, folder))

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def result(self, browser: subprocess.Popen[bytes]) -> Any:
        """What the next page sends."""
        try:
            return self.results.get(timeout=SECONDS)
        except queue.Empty:
            pytest.fail(f"no page answered in {SECONDS} seconds; the browser's exit status: {browser.poll()}")


def _handler(pages: Pages, folder: Path) -> Any:
    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, directory=str(folder))

        def do_GET(self) -> None:
            text = pages.texts.get(self.path)
            if text is None:
                super().do_GET()
            else:
                self._answer(text.encode())

        def do_POST(self) -> None:
            pages.results.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self._answer(b"{}")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    return Handler


@contextmanager
def pages(folder: Path, texts: Mapping[str, str]) -> Iterator[Pages]:
    """Serve a folder, and some texts by their paths."""
    made = Pages(folder)
    made.texts |= texts
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
        thread.join()


@contextmanager
def browsing(program: str, address: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a browser on an address; at the end all its processes, which are a group of their own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [program, *OPTIONS, f"--user-data-dir={profile}", address]
        popen = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, env=os.environ | {"HOME": profile},
        )  # fmt: skip
        try:
            yield popen
        finally:
            os.killpg(popen.pid, signal.SIGKILL)
            popen.wait(60)
