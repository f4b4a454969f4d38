"""What every collector does with what comes: store it once for each client, and release whole batches."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from sfumato import _check
from sfumato._durable import replace_file, sync_folder
from sfumato.crypto.hpke import PublicKey
from sfumato.errors import ParameterError
from sfumato.local.device.base.record_layout import Records
from sfumato.local.shuffle.mixed_batch import random_order
from sfumato.numerics.randomness.source import RandomSource, random_source
from sfumato.server.store import Report, Store
from sfumato.server.store_file import refuse_folder

__all__ = ["Collector"]

_DATABASE: Final = "waiting.db"
_BATCHES: Final = "batches"


class Collector(ABC):
    """One collection's process without the network: what it is given is bytes, and no address.

    Parameters
    ----------
    folder : Path
        Its own: ``waiting.db`` holds what waits, ``batches`` what is released. Made if there is none.
    store_id : bytes
        32 bytes that the store is of.
    collection_id : bytes
        Of what is collected, 32 bytes, as devices compute it.
    batch_size : int
        How many clients' reports are mixed and released together.
    envelope_width : int
        Bytes of what every client sends.
    stored_width : int
        Bytes of it that are stored, beside the nonce.

    Notes
    -----
    What `take` took is durable when it returns: a process that is killed at any moment, or a power cut, loses
    none of it. Clients are distinguished by their nonces and never by content. When ``batch_size`` clients'
    reports wait, and not before, they become one batch in the same transaction in which the last of them was
    taken: all records of all of them, in a uniformly random order; what comes then waits for the next one. So
    no batch is short, and no report is in two.

    While reports wait, where they lie in the file is drawn by chance. Nonces are remembered for good, apart
    from reports. No time, address, or order is ever written. What the file's blocks held before is left to
    the file system and the disk: keep the folder where that does not matter, or on an encrypted disk.

    Memory is that of some copies of one batch, whatever the number of reports.
    """

    owner: ClassVar[str]
    """What it is, for messages."""
    suffix: ClassVar[str]
    """Of the files of batches."""
    reasons: ClassVar[tuple[str, ...]]
    """Why what comes is refused."""

    __slots__ = (
        "_closed", "_folder", "_lock", "_refused", "_released", "_source", "_store", "batch_size",
        "envelope_width", "id", "stored_bytes",
    )  # fmt: skip

    def __init__(
        self,
        folder: Path,
        *,
        store_id: bytes,
        collection_id: bytes,
        batch_size: int,
        envelope_width: int,
        stored_width: int,
    ) -> None:
        self.id, self.batch_size, self.envelope_width = collection_id, batch_size, envelope_width
        self._folder = Path(folder)
        self._refused: Counter[str] = Counter(dict.fromkeys(self.reasons, 0))
        self._source: RandomSource = random_source()
        self._lock, self._closed = threading.Lock(), False
        self._store = Store(
            self._folder / _DATABASE,
            collection=store_id,
            size=batch_size,
            width=stored_width,
            mixed=self._mixed,
            source=self._source,
            owner=self.owner,
        )
        self._released, self.stored_bytes = 0, 0
        try:
            self._refuse_older()
            self._release()
            self._measure()
        except OSError as error:
            self._store.close()
            refuse_folder(self._folder, error)
        except BaseException:
            self._store.close()
            raise

    def _refuse_older(self) -> None:
        """Refuse a store that was lost, or put back as it was before some batches."""
        files = (self._folder / _BATCHES).glob(f"*{self.suffix}")
        names = (path.stem.removeprefix("batch-") for path in files)
        last = max((int(name) for name in names if name.isascii() and name.isdigit()), default=0)
        if last > self._store.batches:
            raise ParameterError(
                f"{_DATABASE!r} must know of all batches beside it, got batch {last} and "
                f"{self._store.batches} that it knows: it is an older copy; begin a new collection"
            )

    @abstractmethod
    def _report(self, envelope: bytes) -> Report | str:
        """Return the nonce and what is stored of what one client sent, or the reason why it is refused."""

    @abstractmethod
    def _mixed(self, number: int, clients: Records) -> bytes:
        """Return a batch of its number and the records of its clients, one client a row: `_shuffled`."""

    def _shuffled(self, clients: Records, width: int) -> Records:
        """Return the clients' records, taken apart and in a uniformly random order."""
        records = clients.reshape(-1, width)
        return records[random_order(len(records), self._source)]

    @property
    def analysts(self) -> tuple[PublicKey, ...] | None:
        """The keys for whose word released batches are handed out over the network; None if they are not."""
        return None

    def key_offer(self) -> Mapping[str, Any] | None:
        """Return which keys devices are to seal for, as JSON; None if nothing is sealed."""
        return None

    @property
    def batches(self) -> int:
        """How many batches were released."""
        return self._released

    @property
    def progress(self) -> tuple[int, int]:
        """How many batches were filled, and how many reports wait for the next: for the operator alone."""
        return self._store.progress

    @property
    def refused(self) -> Mapping[str, int]:
        """How many envelopes were refused since the start, by reason."""
        return dict(self._refused)

    def take(self, envelopes: Sequence[bytes]) -> list[bool]:
        """Take what clients sent, and return which are of this collection.

        Parameters
        ----------
        envelopes : sequence of bytes
            Whatever came.

        Returns
        -------
        list of bool
            True for each that was taken, or whose nonce was taken before: the two are not distinguished.
        """
        given: object = envelopes
        if not isinstance(given, list | tuple) or not all(isinstance(one, bytes) for one in given):
            _check.refuse_type("envelopes", "be a list of bytes", given, "pass [envelope] for one")
        with self._lock:  # one transaction at a time, whoever calls
            if self._closed:
                _check.refuse_state(
                    f"the {self.owner}", "be open", "it is closed", "open another on its folder"
                )
            reports = [self._report(envelope) for envelope in envelopes]
            self._refused.update(report for report in reports if isinstance(report, str))
            before = self._database_bytes()
            try:
                self._store.take([report for report in reports if not isinstance(report, str)])
                self.stored_bytes += self._release() + self._database_bytes() - before
            except BaseException:
                self._measure()
                raise
        return [not isinstance(report, str) for report in reports]

    def path(self, number: int) -> Path:
        """Return where a released batch is.

        Parameters
        ----------
        number : int
            Of the batch, from 1 on.

        Returns
        -------
        Path
            Inside the folder; the file exists once the batch is released.
        """
        return self._folder / _BATCHES / f"batch-{number:06d}{self.suffix}"

    def _release(self) -> int:
        """Write out the batches that wait for it, after a crash those that it left; return their bytes."""
        size = 0
        for number in self._store.ready():
            place, content = self.path(number), self._store.content(number)
            place.parent.mkdir(mode=0o700, exist_ok=True)
            replace_file(place, place.with_suffix(".part"), content)
            sync_folder(self._folder)
            self._store.written(number)
            size += len(content)
        self._released = self._store.batches
        return size

    def _database_bytes(self) -> int:
        return _size(self._folder / _DATABASE)

    def look(self) -> None:
        """Set ``stored_bytes`` to what the store and the released batches that are still there take."""
        with self._lock:
            self._measure()

    def _measure(self) -> None:
        folder = self._folder / _BATCHES
        batches = list(folder.iterdir()) if folder.is_dir() else []
        self.stored_bytes = self._database_bytes() + sum(map(_size, batches))

    def close(self) -> None:
        """Let go of the folder; what waits, waits there."""
        with self._lock:
            self._closed = True
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _size(path: Path) -> int:
    """Return the bytes of a file; 0 if it was taken away."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
