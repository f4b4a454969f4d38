"""The shuffler: takes envelopes, forgets where they came from, and releases whole batches in random order."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, final

from sfumato import _check
from sfumato._durable import replace_file, sync_folder
from sfumato.crypto.secret_key import SecretKey
from sfumato.errors import ParameterError
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.shuffle.collection import NONCE, PublicCollection
from sfumato.local.device.shuffle.sparse_collection import SparseCollection
from sfumato.local.shuffle.mixed_batch import MixedBatch, random_order
from sfumato.local.shuffle.sparse_histogram import SparseHistogram
from sfumato.numerics.randomness.source import RandomSource, random_source
from sfumato.server.store import Report, Store
from sfumato.server.store_file import refuse_folder

__all__ = ["Shuffler"]

_DATABASE: Final = "waiting.db"
_BATCHES: Final = "batches"


@final
class Shuffler:
    """One collection's shuffler, without the network: what it is given is bytes, and no address.

    Parameters
    ----------
    collection : sfumato.local.device.PublicCollection or SparseCollection
        Batches of the second kind are not mixed records but noisy counts above a threshold.
    key : SecretKey
        The shuffler's.
    folder : Path
        Its own: ``waiting.db`` holds what waits, ``batches`` what is released. Made if there is none.

    Raises
    ------
    ParameterError
        If the key is not the collection's shuffler's, the folder is another collection's, another process
        has it open, or it holds batches that its ``waiting.db`` does not know of: an older copy of that file
        would release reports again.

    Notes
    -----
    What `take` took is durable when it returns: a process that is killed at any moment, or a power cut, loses
    none of it. Envelopes are distinguished by their nonces and never by content. When ``batch_size`` clients'
    reports wait, and not before, they become one batch in the same transaction in which the last of them was
    taken: all records of all of them, in a uniformly random order; what comes then waits for the next one. So
    no batch is short, and no report is in two.

    While reports wait, where they lie in the file is drawn by chance. Nonces are remembered for good, apart
    from reports. No time, address, or order is ever written. What the file's blocks held before is left to
    the file system and the disk: keep the folder where that does not matter, or on an encrypted disk.

    Memory is that of some copies of one batch, whatever the number of reports.

    Examples
    --------
    Four clients' reports become one batch, which the analyst opens:

    >>> import tempfile
    >>> from sfumato import local
    >>> from sfumato.local.shuffle import Collection
    >>> analyst, shuffler = SecretKey.generate("analyst"), SecretKey.generate("shuffler")
    >>> oracle = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(["yes", "no"]))
    >>> collection = Collection(
    ...     protocol=oracle, batch_size=4, analyst=analyst.public, shuffler=shuffler.public
    ... )
    >>> opening = collection.opening(analyst)
    >>> with tempfile.TemporaryDirectory() as folder, Shuffler(collection.device, shuffler, folder) as server:
    ...     envelopes = [collection.device.envelope("yes", bytes([client]) * 32) for client in range(4)]
    ...     taken = server.take(envelopes)
    ...     opened = opening.add(server.path(1).read_bytes())
    >>> all(taken), opened, opening.estimate().reports
    (True, 4, 4)
    """

    __slots__ = (
        "_closed", "_collection", "_folder", "_key", "_lock", "_refused", "_released", "_source", "_store",
    )  # fmt: skip

    def __init__(self, collection: PublicCollection | SparseCollection, key: SecretKey, folder: Path) -> None:
        if isinstance(collection, SparseCollection):
            SparseHistogram(collection)  # refuses what its noise cannot be calibrated for
        else:
            _check.instance("collection", collection, PublicCollection, "pass that of sfumato.local.device")
        _check.instance("key", key, SecretKey, "use SecretKey.from_file")
        if key.public != collection.shuffler:
            raise ParameterError("key must be that of the collection's shuffler, got another; use that one")
        self._collection, self._key, self._folder = collection, key, Path(folder)
        self._refused: Counter[str] = Counter(shape=0, seal=0)
        self._source: RandomSource = random_source()
        self._lock, self._closed = threading.Lock(), False
        self._store = Store(
            self._folder / _DATABASE,
            collection=collection.id,
            size=collection.batch_size,
            width=collection.messages * collection.sealed_width,
            mixed=self._mixed,
            source=self._source,
        )
        self._released = 0
        try:
            self._refuse_older()
            self._release()
        except OSError as error:
            self._store.close()
            refuse_folder(self._folder, error)
        except BaseException:
            self._store.close()
            raise

    def _refuse_older(self) -> None:
        """Refuse a store that was lost, or put back as it was before some batches."""
        names = (path.stem.removeprefix("batch-") for path in (self._folder / _BATCHES).glob("*.mixed"))
        last = max((int(name) for name in names if name.isascii() and name.isdigit()), default=0)
        if last > self._store.batches:
            raise ParameterError(
                f"{_DATABASE!r} must know of all batches beside it, got batch {last} and "
                f"{self._store.batches} that it knows: it is an older copy; begin a new collection"
            )

    @property
    def collection(self) -> PublicCollection | SparseCollection:
        """What is collected."""
        return self._collection

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
        """How many envelopes were refused since the start, by reason: another length, no such seal."""
        return dict(self._refused)

    def take(self, envelopes: Sequence[bytes]) -> list[bool]:
        """Take envelopes, and return which are ones of this collection.

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
                _check.refuse_state("the shuffler", "be open", "it is closed", "open another on its folder")
            reports = [self._report(envelope) for envelope in envelopes]
            self._store.take([report for report in reports if report is not None])
            self._release()
        return [report is not None for report in reports]

    def _report(self, envelope: bytes) -> Report | None:
        known = self._collection
        if len(envelope) != known.envelope_width:
            self._refused["shape"] += 1
            return None
        opened = self._key.opened(envelope, known.envelope_context)
        if opened is None:
            self._refused["seal"] += 1
            return None
        return opened[:NONCE], opened[NONCE:]

    def _mixed(self, number: int, clients: Records) -> bytes:
        """Return a batch: the clients' records apart, in random order; or what is shown of their keys."""
        if isinstance(self._collection, SparseCollection):
            return SparseHistogram(self._collection).release(number, clients, self._source)
        records = clients.reshape(-1, self._collection.sealed_width)
        order = random_order(len(records), self._source)
        return MixedBatch(self._collection.id, number, records[order]).to_bytes()

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
        return self._folder / _BATCHES / f"batch-{number:06d}.mixed"

    def _release(self) -> None:
        """Write out the batches that wait for it; after a crash, those that it left."""
        for number in self._store.ready():
            place = self.path(number)
            place.parent.mkdir(mode=0o700, exist_ok=True)
            replace_file(place, place.with_suffix(".part"), self._store.content(number))
            sync_folder(self._folder)
            self._store.written(number)
        self._released = self._store.batches

    def close(self) -> None:
        """Let go of the folder; what waits, waits there."""
        with self._lock:
            self._closed = True
            self._store.close()

    def __enter__(self) -> Shuffler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
