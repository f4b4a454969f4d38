"""Keys and a collection whose reports say which client they are of, so that each can be looked for."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato import local
from sfumato.local.shuffle import Collection, MixedBatch, SecretKey
from tests.forks import started

__all__ = [
    "ANALYST",
    "IMPORTS",
    "SHUFFLER",
    "Process",
    "collection",
    "envelope",
    "memory_folder",
    "running",
    "values_in",
]

ANALYST = SecretKey("analyst", b"a" * 32)
SHUFFLER = SecretKey("shuffler", b"s" * 32)
CLIENTS = 1 << 14


def collection(batch_size: int = 4, **changes: Any) -> Collection:
    """A collection in which hardly anybody ever lies: a report is false with probability 1e-13."""
    oracle = local.RandomizedResponse(epsilon=40.0, domain=local.Domain(range(CLIENTS)))
    keys = {"analyst": ANALYST.public, "shuffler": SHUFFLER.public}
    return Collection(**{"protocol": oracle, "batch_size": batch_size, **keys, **changes})


def envelope(made: Collection, client: int) -> bytes:
    """What a client sends; its secret is its number."""
    return made.device.envelope(client, client.to_bytes(16, "big"))


def values_in(made: Collection, data: bytes) -> Counter[int]:
    """How often each client's report is in a released batch."""
    batch, known = MixedBatch.from_bytes(data), made.device
    assert batch.collection == known.id
    found: Counter[int] = Counter()
    for row in batch.sealed:
        opened = ANALYST.opened(row.tobytes(), known.report_context)
        assert opened is not None
        found[int.from_bytes(opened[1:3], "little") & (CLIENTS - 1)] += 1
    return found


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder of which no disk waits to be written, where the system has such; else any."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


@dataclass
class Process:
    """A running service: where it is, its process, and what it printed."""

    url: str
    popen: Any
    folder: Path
    first: str

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def stop(self) -> tuple[str, str]:
        """Ask it to end; return all that it printed on both outputs."""
        self.popen.terminate()
        out, err = self.popen.communicate(timeout=60)
        return self.first + str(out), str(err)


IMPORTS = """
from sfumato.server import Shuffler, serve, serve_collections
import sfumato.server.serving, sfumato.server.hosting.configuration
from sfumato.server.dap.running import serve_dap
import uvicorn.lifespan.off, uvicorn.loops.auto, uvicorn.protocols.http.h11_impl
"""
"""What a service imports by its first request."""

SERVE = """
import json, sys
from pathlib import Path
from sfumato.local import device
from sfumato.local.shuffle import SecretKey
from sfumato.server import Listening, serve
from sfumato.server.limits import Limits
folder, limits, options, tls = Path(sys.argv[1]), *map(json.loads, sys.argv[2:4]), sys.argv[4:]
specification = json.loads((folder / "collection.json").read_text())
serve(
    device.PublicCollection.from_specification(specification), SecretKey.from_file(folder / "shuffler.key",
    "shuffler"), folder / "store", specification=specification, listening=Listening(limits=Limits(**limits),
    certificate=tuple(map(Path, tls)) or None, say=lambda line: print(line, flush=True), **options),
)
"""


@contextmanager
def running(
    made: Collection,
    folder: Path,
    *,
    tls: Sequence[Path] = (),
    warm: bool = True,
    options: dict[str, Any] | None = None,
    **limits: float,
) -> Iterator[Process]:
    """The real process, ended by its own id; options are further ones of `Listening`."""
    if not (folder / "collection.json").exists():
        (folder / "collection.json").write_text(json.dumps(made.specification()))
        SHUFFLER.to_file(folder / "shuffler.key")
    further = options or {}
    given = json.dumps(limits), json.dumps(further)
    words = [str(folder), *given, *map(str, tls)]
    with started(SERVE, *words, imports=IMPORTS, warm=warm) as popen:
        first = popen.stdout.readline()
        assert " at http" in first, popen.stderr.read()
        url = json.loads(first)["url"] if further.get("structured_log") else first.split(" at ")[1].strip()
        yield Process(url, popen, folder / "store", first)
