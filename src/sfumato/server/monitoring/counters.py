"""Counters of a service that survive a kill: numbers in a file that is mapped into memory.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> path = Path(folder.name) / "counters"
>>> with Counters(path) as counters:
...     counters.add("seal")
...     counters.add("late", 2)
>>> with Counters(path) as again:
...     again["seal"], again["late"], again["rate"]
(1, 2, 0)
>>> folder.cleanup()
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from pathlib import Path
from typing import Final, final

from sfumato import _check
from sfumato._durable import new_file

__all__ = ["COUNTED", "Counters"]

COUNTED: Final = (
    "shape", "seal",
    "large", "unfinished", "waiting", "rate",
    "connections", "address", "late",
    "stored", "failed", "nanoseconds",
    "tag", "encoding", "early", "expired",
    "total", "sender", "full",
)  # fmt: skip
"""In the order of the file, to which later versions append: refused envelopes, requests and connections; the
store's transactions; reasons of plain local reports, and requests beyond the time of a collection; and
requests beyond limits of all collections."""

_MAGIC: Final = b"sfmtCNTR"
_VERSION: Final = 1
_HEADER: Final = struct.Struct("<8sHxxxxxx")
_NUMBER: Final = struct.Struct("<Q")
_ROOM: Final = 64
"""Numbers of a file; those of no name are 0, for names to come."""
_SIZE: Final = _HEADER.size + _ROOM * _NUMBER.size


@final
class Counters:
    """Numbers that only grow, by name; usable as a context manager.

    Parameters
    ----------
    path : Path, optional
        Made if there is none; without one the numbers end with the process.

    Raises
    ------
    ParameterError
        If the file holds something else.

    Notes
    -----
    A process that is killed loses none of them: the system has the memory, and writes it to the disk. A power
    cut loses what the system had not written yet, as nothing waits for the disk here. The numbers are of all
    senders together; no time, address or order is in them.
    """

    __slots__ = ("_lock", "_memory", "_places")

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._places = {name: _HEADER.size + _NUMBER.size * at for at, name in enumerate(COUNTED)}
        self._memory = mmap.mmap(-1, _SIZE) if path is None else _mapped(path)

    def add(self, name: str, amount: int = 1) -> None:
        """Add to one of `COUNTED`."""
        place = self._places[name]
        with self._lock:
            _NUMBER.pack_into(self._memory, place, _NUMBER.unpack_from(self._memory, place)[0] + amount)

    def __getitem__(self, name: str) -> int:
        found: int = _NUMBER.unpack_from(self._memory, self._places[name])[0]
        return found

    def close(self) -> None:
        """Let go of the file."""
        self._memory.close()

    def __enter__(self) -> Counters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _mapped(path: Path) -> mmap.mmap:
    """Map a file that is made if there is none."""
    if not path.exists():
        new_file(path, _HEADER.pack(_MAGIC, _VERSION) + bytes(_SIZE - _HEADER.size))
    held = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        content = os.pread(held, _SIZE + 1, 0)
        if len(content) != _SIZE or _HEADER.unpack_from(content) != (_MAGIC, _VERSION):
            remedy = "move it away; counting begins again from 0"
            _check.refuse_state(repr(path.name), "hold a collector's counters", "it holds others", remedy)
        return mmap.mmap(held, _SIZE)
    finally:
        os.close(held)
