"""The guarded application of `tests.server.console.setting` as a process, on a free port of loopback."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.server.console.access.proxy_header import ProxyHeader
from sfumato.server.console.guard.hosts import own_origins
from sfumato.server.console.guard.request_limits import RequestLimits
from sfumato.server.http_process import listening_socket, run_application
from sfumato.server.limits import Limits
from tests.forks import server_fork
from tests.server.console.setting import console

__all__ = ["Served", "serving"]

SCRIPT = "import sys; from tests.server.console.serving import main; main(*sys.argv[1:])"
IMPORTS = """
import tests.server.console.serving
import uvicorn.lifespan.off, uvicorn.loops.auto, uvicorn.protocols.http.h11_impl
"""


@dataclass(frozen=True)
class Served:
    """A running service."""

    port: int
    running: Any

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Make one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def printed(self) -> str:
        """End it, and return all that it printed on both outputs."""
        self.running.terminate()
        out, err = self.running.communicate(timeout=60)
        return f"{out}{err}"


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[Served]:
    """Run the process, and end it by its own id."""
    with server_fork(SCRIPT, str(folder), json.dumps(settings), imports=IMPORTS) as running:
        first = running.line()
        assert first.startswith("http://")
        yield Served(int(first.rpartition(":")[2]), running)


def main(folder: str, settings: str) -> None:
    """Serve until the process is ended, with limits and a trusted proxy's peers in a JSON object."""
    limits = json.loads(settings)
    peers = limits.pop("peers")
    with listening_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        origins = own_origins([f"http://127.0.0.1:{port}", f"http://localhost:{port}"])
        proxy = ProxyHeader(header="x-remote-user", peers=peers)
        with console(Path(folder), proxy=proxy, limits=RequestLimits(**limits), origins=origins) as made:

            def started(url: str) -> None:
                sys.stdout.write(url + "\n")
                sys.stdout.flush()

            run_application(made.app, listening, Limits(), started=started)
