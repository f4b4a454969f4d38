"""The state of a counter: what it counted so far and the randomness of its noise. It is raw data.

Without it noise would be drawn anew for sums that were released already, and two noisy answers show more than
one.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato._durable import lock_beside, replace_file
from sfumato._wire import INTEGER, TEXT, Format, Record, canonical, parse
from sfumato.errors import LedgerMismatch, ParameterError, SourceError
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["CounterState", "RecordedSource"]

_FORMAT: Final = Format("sfumato.counter-state", 1)
_FACTS: Final[Record[Any]] = Record(
    "the state of a counter",
    dict,
    {"counter": TEXT, "ledger": TEXT, "steps": INTEGER, "measures": INTEGER},
)
_SECRET_BYTES: Final = 32

Integers = NDArray[np.int64]


@final
class RecordedSource:
    """Random words that are remembered, so that the same ones can be drawn again.

    Parameters
    ----------
    fresh : RandomSource
    recorded : ndarray of uint64
        What was drawn before: it is handed out first.
    """

    def __init__(self, fresh: RandomSource, recorded: NDArray[np.uint64] | None = None) -> None:
        self.fresh = fresh
        self._before = np.zeros(0, np.uint64) if recorded is None else recorded
        self._again = 0
        self._drawn: list[NDArray[np.uint64]] = []

    @property
    def simulated(self) -> bool:
        """Whether the words follow from a seed."""
        return self.fresh.simulated

    @property
    def recorded(self) -> NDArray[np.uint64]:
        """All words, those of before and those drawn since."""
        return np.concatenate([self._before, *self._drawn])

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next words: those that were drawn before, then fresh ones."""
        known = self._before[self._again : self._again + count].copy()
        self._again += len(known)
        if len(known) == count:
            return known
        drawn = self.fresh.words(count - len(known))
        self._drawn.append(drawn.copy())
        return np.concatenate([known, drawn])

    def bytes(self, count: int) -> bytes:
        """Return the next bytes, drawn as whole words."""
        return self.words(-(-count // 8)).astype("<u8").tobytes()[:count]


@final
class CounterState:
    """What a counter remembers, in memory or in a file that one process holds at a time.

    Parameters
    ----------
    path : Path or None
    identity, ledger : str
        What the counter is, and the id of the ledger that it was charged to.
    source : RecordedSource
        Where its noise comes from.
    lock : int or None
        The file's lock, where it is held already.
    """

    def __init__(
        self,
        path: Path | None,
        identity: str,
        ledger: str,
        source: RecordedSource,
        lock: int | None = None,
    ) -> None:
        self.path = path
        self.identity = identity
        self.ledger = ledger
        self.source = source
        self.steps: list[list[Integers]] = []
        self.keys: pa.Table = pa.table({})
        self._lock = _locked(path) if lock is None and path is not None else lock

    @classmethod
    def find(cls, path: Path | None, identity: str, ledger: str, fresh: RandomSource) -> Self | None:
        """Read the state of a counter, None where there is none yet.

        The file is locked before it is read: another process could else release a period in between, and this
        one would release it again with other noise.

        Raises
        ------
        LedgerMismatch
            If it is another counter's, or a later version wrote it.
        SourceError
            If it cannot be read, or another process holds it.
        """
        if path is None or not path.exists():
            return None
        lock = _locked(path)
        try:
            return cls._read(path, identity, ledger, fresh, lock)
        except BaseException:
            os.close(lock)
            raise

    @classmethod
    def _read(cls, path: Path, identity: str, ledger: str, fresh: RandomSource, lock: int) -> Self:
        try:
            content = path.read_bytes()
            facts, arrays = _members(content)
        except (OSError, EOFError, ValueError, TypeError, KeyError, zipfile.BadZipFile):
            raise SourceError(
                f"state must be a counter's, got {str(path)!r}, which cannot be read; name another file, and "
                "the counter is charged again"
            ) from None
        if facts is None or (facts["counter"], facts["ledger"]) != (identity, ledger):
            raise LedgerMismatch(
                f"state must be of this counter, this ledger and this version, got another's in "
                f"{str(path)!r}; open it with the query and parameters that it was made with, or name "
                "another file"
            )
        state = cls(path, identity, ledger, RecordedSource(fresh, arrays["words"]), lock)
        with pa.ipc.open_stream(arrays["keys"].tobytes()) as reader:
            state.keys = reader.read_all()
        state.steps = [
            [arrays[f"step-{step}-measure-{index}"] for index in range(facts["measures"])]
            for step in range(facts["steps"])
        ]
        return state

    def secret(self) -> bytes:
        """Return a fresh secret for the engine's choice of rows and groups."""
        return self.source.fresh.bytes(_SECRET_BYTES)

    def add(self, keys: pa.Table, values: Sequence[Integers]) -> None:
        """Add a period's exact sums.

        Raises
        ------
        SourceError
            If the public groups are no longer those of the first period.
        """
        if self.steps and keys != self.keys:
            raise SourceError(
                "the public groups of a counter must stay as they were; list the first ones again"
            )
        self.keys = keys
        self.steps.append(list(values))

    def save(self) -> None:
        """Write the file whole, readable by its owner alone, before anything of it is released."""
        if self.path is None:
            return
        try:
            replace_file(self.path, self.path.with_name(self.path.name + ".new"), self.to_bytes())
        except OSError:
            raise SourceError(
                f"state must be written before anything is released, got no way to write {str(self.path)!r}; "
                "nothing was released: make room, and ask again"
            ) from None

    def to_bytes(self) -> bytes:
        """Return what a counter's file holds: NumPy's archive, of the format ``sfumato.counter-state``."""
        facts = {
            "counter": self.identity,
            "ledger": self.ledger,
            "steps": len(self.steps),
            "measures": len(self.steps[0]) if self.steps else 0,
        }
        arrays: dict[str, Any] = {
            "facts": np.frombuffer(canonical(_FORMAT.wrap(facts)).encode(), np.uint8),
            "words": self.source.recorded,
            "keys": np.frombuffer(_as_bytes(self.keys), np.uint8),
        }
        for step, values in enumerate(self.steps):
            arrays |= {f"step-{step}-measure-{index}": value for index, value in enumerate(values)}
        held = io.BytesIO()
        np.savez(held, **arrays)
        return held.getvalue()

    def close(self) -> None:
        """Let another process have the file; calling it again does nothing."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _members(content: bytes) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the facts and the arrays of a file; no facts where they are of another format or version."""
    with np.load(io.BytesIO(content), allow_pickle=False) as members:
        arrays = {name: members[name] for name in members.files}
    written = arrays["facts"].tobytes()
    try:
        _, fields = _FORMAT.unwrap("state", parse("state", written))
        return {**_FACTS.decode("state", fields)}, arrays
    except ParameterError:
        return None, arrays


def _as_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _locked(path: Path) -> int:
    """Hold the lock beside a file for as long as the descriptor is open."""
    try:
        return lock_beside(path)
    except BlockingIOError:
        what = f"be free, got {str(path)!r}, which another counter holds; close that one first"
    except OSError:
        what = f"be in a folder that can be written, got {str(path)!r}; name another"
    raise SourceError(f"state must {what}") from None
