"""The console as a process: CPU time of its pages beside a bare Starlette route, sizes of pages, memory.

A ledger with ``--charges`` charges, of which one is published, is served by ``sfumato console serve``. Pages
are read over connections that stay, a hundred on each, from addresses of loopback of their own, since one
address is slowed down. CPU seconds are the server's own, from the kernel, so that the figures hold on a
machine that is busy. The bare route answers as many bytes as the release page has, by the same server.
"""

from __future__ import annotations

import argparse
import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import sfumato
from sfumato.ledger import Role
from sfumato.server.console.access.permissions import Scope
from sfumato.server.console.access.token_store import TokenStore
from sfumato.server.http_process import listening_socket, run_application
from sfumato.server.limits import Limits
from tests.server.console.processes import prepare, running

__all__ = ["main"]

EACH = 100
SQL = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(delta=0) COUNT(*) AS n FROM data WHERE age >= {}"
FASTEST, SLOWEST_ASK, LARGEST = 200.0, 100.0, 50_000


class Figure(NamedTuple):
    """What was measured of one page."""

    name: str
    cpu: float
    median: float
    size: int


class Server:
    """A process that answers, by its port and its number."""

    def __init__(self, port: int, process: int) -> None:
        self._port, self._process, self._addresses = port, process, 1

    def measure(
        self, name: str, path: str, *, token: str = "", form: Mapping[str, str] | None = None, count: int
    ) -> Figure:
        """Read one page so often, after ten times to warm up."""
        self._read(path, token, form, 10)
        before, seconds, size = self._cpu(), list[float](), 0
        for _ in range(-(-count // EACH)):
            size = self._read(path, token, form, min(EACH, count), seconds)
        return Figure(name, (self._cpu() - before) / len(seconds), statistics.median(seconds), size)

    def _read(
        self,
        path: str,
        token: str,
        form: Mapping[str, str] | None,
        count: int,
        seconds: list[float] | None = None,
    ) -> int:
        self._addresses += 1
        headers = {"host": f"localhost:{self._port}", "accept": "text/html"}
        headers |= {"authorization": f"Bearer {token}"} if token else {}
        headers |= {} if form is None else {"content-type": "application/x-www-form-urlencoded"}
        body = None if form is None else urlencode(form)
        source = f"127.0.{self._addresses // 250}.{self._addresses % 250 + 2}"
        connection = http.client.HTTPConnection("127.0.0.1", self._port, source_address=(source, 0))
        size = 0
        for _ in range(count):
            start = time.perf_counter()
            connection.request("GET" if form is None else "POST", path, body, headers)
            reply = connection.getresponse()
            size = len(reply.read())
            if seconds is not None:
                seconds.append(time.perf_counter() - start)
            if reply.status != 200:
                raise SystemExit(f"{path} answered {reply.status}")
        connection.close()
        return size

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self._process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """The most memory that it had, in MiB."""
        lines = Path(f"/proc/{self._process}/status").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def serve_bare(size: int) -> None:
    """Serve one route of so many bytes until the process is ended."""
    content = b"x" * size

    async def answer(_: Request) -> Response:
        return Response(content, media_type="text/html")

    with listening_socket("127.0.0.1", 0) as listening:
        app = Starlette(routes=[Route("/", answer)])
        run_application(app, listening, Limits(), started=lambda url: print(url, flush=True))


@contextmanager
def bare(size: int) -> Iterator[Server]:
    """Run the bare route as a process."""
    command = [sys.executable, "-m", "benchmarks", "console", "--bare", str(size)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Server(int(process.stdout.readline().rpartition(":")[2]), process.pid)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def make(folder: Path, charges: int) -> tuple[Path, Callable[[str], str]]:
    """Make the ledger; return the settings and what makes a token of a member."""
    config, _ = prepare(folder)
    key, data = Ed25519PrivateKey.generate(), str(folder / "people.parquet")
    about: dict[str, Any] = {"privacy_unit": "id", "epsilon": 1.0, "ledger": folder / "people.ledger"}
    with sfumato.connect(data, **about, analyst="ada", purpose="a benchmark") as session:
        for number in range(charges):
            session.sql(SQL.format(number - 10**6).replace("delta=0", "epsilon=0.001, delta=0"))
    with sfumato.connect(data, **about) as session:
        ledger = session.ledger
        ledger.members.set_roles("rita", {Role.REVIEWER}, by="carl")
        ledger.members.register_key("rita", key.public_key(), by="carl")
        ledger.members.set_roles("otto", {Role.AUDITOR}, by="carl")
        ledger.reviews.request(1, by="ada")
        approval = ledger.reviews.approval(1, by="rita")
        ledger.reviews.approve(approval, approval.sign(key))
        ledger.reviews.publish(1, by="carl")
    tokens = TokenStore(folder / "console" / "tokens")
    return config, lambda name: tokens.create(name, tuple(Scope), days=1)[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks console", description=__doc__)
    parser.add_argument("--charges", type=int, default=200, help="in the ledger")
    parser.add_argument("--count", type=int, default=1000, help="requests for the release page")
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.bare is not None:
        serve_bare(options.bare)
        return 0
    with tempfile.TemporaryDirectory() as name:
        config, token = make(Path(name), options.charges)
        with running(config) as console:
            server = Server(console.port, console.process.pid)
            started = server.memory()
            few = min(options.count, 80)
            priced = {"sql": SQL.format(20), "epsilon": "0.125"}
            release = server.measure("release page", "/releases/1", count=options.count)
            figures = [
                release,
                server.measure("list of releases", "/releases", count=few),
                server.measure("Ask, empty", "/ask", token=token("ada"), count=few),
                server.measure("Ask, with a price", "/ask/price", token=token("bob"), form=priced, count=few),
                server.measure("Budget", "/budget", token=token("carl"), count=few),
                server.measure("Log", "/log", token=token("otto"), count=few),
            ]
            last = server.memory()
        with bare(release.size) as plain:
            figures.append(plain.measure("bare route", "/", count=options.count))
            memory = started, last, plain.memory()
    return report(figures, memory)


def report(figures: Sequence[Figure], memory: Sequence[float]) -> int:
    """Print a line for each page, and return whether a target is missed."""
    base = figures[-1].cpu
    print(f"{'page':<20}{'CPU ms':>10}{'a second':>10}{'ratio':>8}{'median ms':>11}{'bytes':>9}")
    for each in figures:
        cpu, rate = f"{1e3 * each.cpu:>10.2f}", f"{1 / each.cpu:>10.0f}"
        print(f"{each.name:<20}{cpu}{rate}{each.cpu / base:>8.1f}{1e3 * each.median:>11.1f}{each.size:>9}")
    print("memory, MiB: {:.0f} at first, {:.0f} at last, {:.0f} of the bare route".format(*memory))
    by_name = {each.name: each for each in figures}
    missed = [
        1 / by_name["release page"].cpu < FASTEST,
        max(1e3 * by_name[name].cpu for name in ("Ask, empty", "Ask, with a price")) > SLOWEST_ASK,
        max(each.size for each in figures if each.name != "Log") > LARGEST,
    ]
    print("a target is missed" if any(missed) else "all targets are met")
    return int(any(missed))
