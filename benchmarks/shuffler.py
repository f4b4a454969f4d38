"""The shuffler's service on loopback: envelopes a second, CPU time, and memory as they become more."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato import local
from sfumato.local.device import PublicQuestion
from sfumato.local.protocol_file import protocol_to_document
from sfumato.local.shuffle import Collection, SecretKey
from sfumato.server import Shuffler, Visitor

__all__ = ["measure_shuffler"]

BATCH = 1000
CONCURRENT = 10_000
SHUFFLE, LOCAL = ("shuffle", "serve"), ("local", "serve")
RUN = "from sfumato.cli.main import main; main()"


def measure_shuffler(people: int) -> None:
    """Print one row for each way to send: one envelope in a request, and a hundred."""
    keys = {role: SecretKey.generate(role) for role in ("analyst", "shuffler")}
    collection = Collection(
        protocol=local.OptimalLocalHashing(epsilon=1.0, domain=local.Domain(range(1024))),
        batch_size=BATCH,
        colluders=BATCH // 100,
        analyst=keys["analyst"].public,
        shuffler=keys["shuffler"].public,
    )
    known = collection.device
    start = time.process_time()
    envelopes = [known.envelope(client % 1024, client.to_bytes(16, "big")) for client in range(people)]
    each = (time.process_time() - start) / people
    print(f"\nShuffler: {known.envelope_width} bytes an envelope, {1e6 * each:.0f} microseconds to seal one")
    print(f"{'in a request':<14}{'at a time':>10}{'sent':>9}{'seconds':>9}{'a second':>10}", end="")
    print(f"{'CPU us each':>13}{'peak MB':>12}")
    for size, count, clients in ((1, people // 5, 64), (100, people, 8)):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "collection.json").write_text(json.dumps(collection.specification()))
            keys["shuffler"].to_file(place / "key")
            measure_one(place, envelopes[:count], size, clients)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "collection.json").write_text(json.dumps(collection.specification()))
        keys["shuffler"].to_file(place / "key")
        measure_concurrent(place, envelopes[:CONCURRENT])
    with tempfile.TemporaryDirectory() as folder:
        measure_plain(Path(folder), collection.protocol, min(people, CONCURRENT))
    with tempfile.TemporaryDirectory() as folder:
        opened(collection, keys, envelopes[: 10 * BATCH], Path(folder))


def measure_plain(folder: Path, protocol: Any, people: int) -> None:
    """Print the same for the collector of plain local reports."""
    (folder / "collection.json").write_text(json.dumps(protocol_to_document(protocol)))
    asked = PublicQuestion(randomizer=protocol.device)
    sent = [asked.submission(client % 1024, client.to_bytes(16, "big")) for client in range(people)]
    print(f"plain local reports, {asked.submission_width} bytes each:")
    measure_concurrent(folder, sent, LOCAL)


@contextmanager
def served(folder: Path, kind: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Run the service with its default settings; its URL and process."""
    options = [str(folder / "collection.json"), "--folder", str(folder / "store"), "--port", "0"]
    if kind == SHUFFLE:
        options += ["--key", str(folder / "key")]
    command = [sys.executable, "-c", RUN, *kind, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as popen:
        try:
            assert popen.stdout is not None
            yield popen.stdout.readline().split(" at ")[1].strip(), popen.pid
        finally:
            popen.terminate()
            popen.communicate()


def measure_concurrent(folder: Path, envelopes: list[bytes], kind: tuple[str, ...] = SHUFFLE) -> None:
    """Print how many of as many clients at a time are refused, and the memory: a target of issue 25."""
    with served(folder, kind) as (url, process):
        before = cpu_seconds(process)
        start = time.perf_counter()
        statuses = asyncio.run(sent_together(int(url.rpartition(":")[2]), envelopes))
        seconds = time.perf_counter() - start
        cpu, memory = cpu_seconds(process) - before, peak(process)
    refused = sum(count for status, count in statuses.items() if status != 200)
    print(
        f"{len(envelopes):,} clients at a time, default settings: {refused} refused (target 0), "
        f"{memory:.0f} MB (target 400), {seconds:.1f} s, CPU {cpu:.1f} s"
    )


async def sent_together(port: int, envelopes: list[bytes]) -> Counter[int]:
    """Open a request for each envelope, 50 from an address; with all open, send the rest; count answers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < len(envelopes) + 64:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(envelopes) + 64, hard))
    connections = []
    head = "POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n"
    for number, envelope in enumerate(envelopes):
        at = number // 50
        address = f"127.0.{1 + at // 250}.{1 + at % 250}"
        connections.append(await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0)))
        connections[-1][1].write(head.format(len(envelope)).encode())
    for (_, writer), envelope in zip(connections, envelopes, strict=True):
        writer.write(envelope)
    answers = await asyncio.gather(*(reader.readline() for reader, _ in connections))
    for _, writer in connections:
        writer.close()
    return Counter(int(answer.split()[1]) if answer else 0 for answer in answers)


def measure_one(folder: Path, envelopes: list[bytes], size: int, clients: int) -> None:
    """Send envelopes over some connections at a time, and print what it took."""
    with served(folder, SHUFFLE) as (url, process):
        half = len(envelopes) // 2
        before, memory = cpu_seconds(process), []
        start = time.perf_counter()
        for part in (envelopes[:half], envelopes[half:]):
            send_all(url, part, size, clients)
            memory.append(peak(process))
        seconds = time.perf_counter() - start
        cpu = (cpu_seconds(process) - before) / len(envelopes)
    rate, memories = len(envelopes) / seconds, f"{memory[0]:.0f}, {memory[1]:.0f}"
    print(f"{size:<14}{clients:>10}{len(envelopes):>9,}{seconds:>9.2f}{rate:>10,.0f}", end="")
    print(f"{1e6 * cpu:>13.0f}{memories:>12}", flush=True)


def send_all(url: str, envelopes: list[bytes], size: int, clients: int) -> None:
    def send(mine: list[bytes]) -> None:
        with Visitor(url) as visitor:
            for start in range(0, len(mine), size):
                told = visitor.send(mine[start : start + size])
                assert told["refused"] == 0

    threads = [threading.Thread(target=send, args=(envelopes[at::clients],)) for at in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def opened(collection: Collection, keys: dict[str, SecretKey], envelopes: list[bytes], folder: Path) -> None:
    """Print how fast the shuffler's store and the analyst are, without the network."""
    with Shuffler(collection.device, keys["shuffler"], folder) as shuffler:
        start = time.process_time()
        for at in range(0, len(envelopes), 500):
            shuffler.take(envelopes[at : at + 500])
        taken = time.process_time() - start
        opening = collection.opening(keys["analyst"])
        start = time.process_time()
        for number in range(1, shuffler.batches + 1):
            opening.add(shuffler.path(number).read_bytes())
        counted = time.process_time() - start
    each = 1e6 / len(envelopes)
    print(f"without the network: CPU us to take one {taken * each:.0f}, to open one {counted * each:.0f}")


def cpu_seconds(process: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def peak(process: int) -> float:
    """The greatest resident memory of a process so far, MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
