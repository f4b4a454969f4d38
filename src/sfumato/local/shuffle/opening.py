"""The analyst's half of a shuffled collection: batches are opened once, by one process or several."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, Self, cast, final

from sfumato import _check
from sfumato.errors import SourceError
from sfumato.local.base.base_aggregator import Intake
from sfumato.local.base.protocol import ReportProtocol
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.local.shuffle.mixed_batch import MixedBatch, batch_of
from sfumato.local.shuffle.opening_file import OpeningFile
from sfumato.local.shuffle.opening_keys import Keys, checked_keys
from sfumato.local.shuffle.opening_progress import PIECE, OpeningProgress, Piece
from sfumato.local.shuffle.opening_worker import CountedPieces, OpeningWorker, counted_by_processes

__all__ = ["OpenableCollection", "Opening", "State"]

_EVERY: Final = 1 << 17
"""Records between two writes of the state."""
_SHARE: Final = 16
"""Bytes of the state for each of these records, where it is large: so writing takes little of the time."""

Batch = MixedBatch | bytes | str | os.PathLike[str]
State = str | os.PathLike[str] | bytes | None


class OpenableCollection(Protocol):
    """What a collection is to those who open it."""

    @property
    def device(self) -> PublicCollection:
        """What the devices know."""

    @property
    def protocol(self) -> ReportProtocol[Any, Any]:
        """What counts the reports."""


@final
class Opening:
    """Opens the released batches of a collection, and counts their records.

    Parameters
    ----------
    collection : Collection
    key : SecretKey or sequence of SecretKey
        The analyst's; or all that it has of those that were used in the course of the collection, at most 8,
        of which the collection's own may have been destroyed.
    state : path or bytes, optional
        A file that holds what was opened, read if it exists; it is this process's until `close`. Or what
        `to_bytes` of another opening returned. Without a file all is in memory.

    Raises
    ------
    ParameterError
        If a key is another's or given twice, or the file holds no state of this collection.
    SourceError
        If another process holds the file, or it cannot be read.

    Notes
    -----
    A record whose seal does not open, or that is none of this protocol, is counted as refused and never an
    error: its client chose its bytes. If more are refused in a batch than ``colluders`` could have sent,
    there were more of them than the loss allows for, and the batch is among the `exposed`. Whether its
    randomness followed from a seed is what a record says of itself: one that lies marks the estimate.

    *Several keys.* Each record is counted under whichever key opens it; one that no key opens is refused as
    ``"seal"``. So all records of a batch under a key that is not given are refused, and it is among the
    `exposed`: give all keys that have not been destroyed.

    *Once.* A batch is known by its number and a digest of its content. What was opened is never opened again,
    `merge` refuses two openings that have a batch in common, and another batch under a number that was opened
    is refused. A state is replaced in one step (written, brought to the disk, renamed): after a kill or a
    power cut it is one that was written before, in which each record is counted once or not yet. What was
    opened since is opened again, and was counted nowhere.

    *The loss* does not change by any of this: each client is in one batch, and an estimate is of whole
    batches alone; while a batch is open in part, there is none. The state is as secret as the batches' counts
    are, and its file is readable by its owner alone; it holds no key.

    Examples
    --------
    >>> from sfumato import local
    >>> from sfumato.local.shuffle import Collection, SecretKey
    >>> secrets = {role: SecretKey.generate(role) for role in ("analyst", "shuffler")}
    >>> oracle = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(range(10)))
    >>> keys = {role: secret.public for role, secret in secrets.items()}
    >>> collection = Collection(protocol=oracle, batch_size=100, **keys)
    >>> opening = collection.opening(secrets["analyst"])
    >>> opening.batches, opening.exposed, opening.aggregator.accepted
    (0, (), 0)

    Then call ``opening.add(batch)`` for each batch that the shuffler released, and ``opening.estimate()``.
    What was opened elsewhere is added as bytes:

    >>> elsewhere = collection.opening(secrets["analyst"]).to_bytes()
    >>> opening.merge(Opening.from_bytes(elsewhere, collection, secrets["analyst"])).batches
    0
    """

    __slots__ = ("_collection", "_file", "_keys", "_progress")

    def __init__(self, collection: OpenableCollection, key: Keys, *, state: State = None) -> None:
        _check.instance(
            "collection", getattr(collection, "device", None), PublicCollection, "pass a Collection"
        )
        self._collection, self._keys = collection, checked_keys(key, collection.device)
        self._progress = OpeningProgress(collection.device, collection.protocol.aggregator())
        self._file: OpeningFile | None = None
        if isinstance(state, bytes):
            self._progress.load(state)
        elif state is not None:
            self._file = self._hold(state)

    def _hold(self, state: object) -> OpeningFile:
        """Hold the file of a state, and take up what is in it."""
        if not isinstance(state, str | os.PathLike):
            _check.refuse_type("state", "be a path or bytes", state, "leave it out to store nothing")
        file = OpeningFile(state)
        try:
            content = file.read()
            if content:
                self._progress.load(content)
        except BaseException:
            file.close()
            raise
        return file

    @property
    def aggregator(self) -> Intake[Any]:
        """What counted the records whose seals opened."""
        return self._progress.aggregator

    @property
    def batches(self) -> int:
        """How many batches were opened."""
        return len(self._progress.opened)

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the batches that were opened."""
        return frozenset(self._progress.opened)

    @property
    def refused(self) -> Mapping[str, int]:
        """How many records were not counted, by reason; ``"seal"`` did not open."""
        return {"seal": self._progress.unsealable, **self.aggregator.refused}

    @property
    def exposed(self) -> tuple[int, ...]:
        """The numbers of batches in which more clients lied than are tolerated; their loss may be greater."""
        return tuple(self._progress.exposed)

    def add(self, batch: Batch) -> int:
        """Open a batch, and return how many records were counted.

        Parameters
        ----------
        batch : MixedBatch, bytes or path
            As the shuffler released it.

        Returns
        -------
        int
            Records that were counted; the others are in `refused`.

        Raises
        ------
        ParameterError
            If it is no whole batch of this collection, or was opened before; then nothing is counted.
        SourceError
            If it, or the state, is a file that cannot be read or written.
        """
        self._check_open()
        before, read = self.aggregator.accepted, batch_of(batch)
        if not self._progress.begin(read):
            _check.refuse("a batch", "be opened once", read.number, "leave it out")
        self._count(self._progress.pieces(read), 1)
        return self.aggregator.accepted - before

    def add_batches(self, batches: Iterable[Batch], *, processes: int = 1) -> int:
        """Open many batches, by several processes, and return how many of them were new.

        Parameters
        ----------
        batches : iterable of MixedBatch, bytes or path
            As the shuffler released them; those that were opened before are left out.
        processes : int
            How many to open with; 1 is this one. Scripts that ask for more must be guarded by
            ``if __name__ == "__main__":``, for others are started afresh.

        Returns
        -------
        int
            Batches that were not opened before.

        Raises
        ------
        ParameterError
            If one is no whole batch of this collection, is given twice, or another was opened under its
            number. Those before it are counted.
        SourceError
            If a file cannot be read, the state cannot be written, or a process was ended. What was counted
            before is in the state.

        Notes
        -----
        Batches are read piece by piece, files without loading them, so that memory is that of a few pieces
        and the counts, however many there are. The state is written now and then, and at the end.
        """
        wanted, given = _check.integer("processes", processes, minimum=1), cast("object", batches)
        if isinstance(given, str | bytes | os.PathLike | MixedBatch) or not isinstance(given, Iterable):
            _check.refuse_type("batches", "be a list of batches", given, "call add(batch) for one")
        self._check_open()
        before = self.batches
        self._count(self._left(batches), wanted)
        return self.batches - before

    def _left(self, batches: Iterable[Batch]) -> Iterator[Piece]:
        """Yield what is left to open of some batches."""
        seen: set[int] = set()
        for batch in batches:
            read = batch_of(batch)
            if read.number in seen:
                _check.refuse("a batch", "be opened once", read.number, "leave it out")
            seen.add(read.number)
            if self._progress.begin(read):
                yield from self._progress.pieces(read)

    def _count(self, pieces: Iterator[Piece], processes: int) -> None:
        """Open pieces and count them; now and then, and at the end, bring the state to the disk."""
        refusals: list[Exception] = []
        waiting: deque[list[Piece]] = deque()
        since = 0
        try:
            for counted in self._counted(_grouped(_until_refused(pieces, refusals)), waiting, processes):
                group = waiting.popleft()
                self._progress.count(group, counted)
                since += sum(len(piece.sealed) for piece in group)
                if since >= max(_EVERY, (self._file.size if self._file else 0) // _SHARE):
                    self._write()
                    since = 0
        except SourceError as error:
            refusals.append(error)
        finally:
            self._progress.settle()
        self._write()
        if refusals:
            raise refusals[0]

    def _counted(
        self, groups: Iterator[list[Piece]], waiting: deque[list[Piece]], processes: int
    ) -> Iterator[CountedPieces]:
        """Yield what is counted of groups of pieces, and put those into what waits for a count."""
        collection = self._collection
        keys = [(key.role, key.seed, key.cipher) for key in self._keys]

        def tasks() -> Iterator[list[Records]]:
            for group in groups:
                waiting.append(group)
                yield [piece.sealed for piece in group]

        if processes == 1:
            worker = OpeningWorker(collection.protocol, collection.device.report_context, *keys)
            return map(worker.count, tasks())
        made_of = collection.protocol, collection.device.report_context, *keys
        return counted_by_processes(tasks(), processes, *made_of)

    def merge(self, other: Self | bytes) -> Self:
        """Add what another opening of the same collection counted, of other batches; return this one.

        Parameters
        ----------
        other : Opening or bytes
            Bytes are those of `to_bytes`.

        Returns
        -------
        Opening
            This one.

        Raises
        ------
        ParameterError
            If it is another collection's, or a batch is in both; then nothing is added.
        """
        state: object = other.to_bytes() if isinstance(other, Opening) else other
        if not isinstance(state, bytes):
            _check.refuse_type("other", "be an Opening, or bytes of one", state, "pass to_bytes()")
        self._check_open()
        added = OpeningProgress(self._collection.device, self._collection.protocol.aggregator())
        added.load(state)
        self._progress.merge(added)
        self._write()
        return self

    def to_bytes(self) -> bytes:
        """Return what was opened and counted so far.

        Returns
        -------
        bytes
            A stable format with a checksum, which holds no key; `from_bytes` reads it.
        """
        return self._progress.to_bytes()

    @classmethod
    def from_bytes(cls, state: bytes, collection: OpenableCollection, key: Keys) -> Self:
        """Return the opening that `to_bytes` wrote, in memory.

        Parameters
        ----------
        state : bytes
            As `to_bytes` wrote it, or the content of a state's file.
        collection : Collection
            The same one.
        key : SecretKey or sequence of SecretKey
            The analyst's.

        Returns
        -------
        Opening

        Raises
        ------
        ParameterError
            If the bytes are of another version or collection, or not whole.
        """
        if not isinstance(state, bytes):
            _check.refuse_type("state", "be bytes", state, "pass what to_bytes() gave")
        return cls(collection, key, state=state)

    def estimate(self) -> Any:
        """Return the protocol's estimate from the counted records; some protocols ask more of `aggregator`.

        Returns
        -------
        object
            Such as an `sfumato.local.Estimate`.

        Raises
        ------
        ParameterError
            If a batch was opened in part, or an addition was interrupted.
        """
        self._progress.check_whole()
        if self._progress.begun:
            found = f"a part of batch {min(self._progress.begun)} is not"
            _check.refuse_state("all batches", "be opened whole", found, "add that batch again")
        return cast("Any", self.aggregator).estimate()

    def _check_open(self) -> None:
        if self._file is not None and self._file.closed:
            _check.refuse_state("the opening", "be open", "it was closed", "open another on its state")

    def _write(self) -> None:
        if self._file is not None:
            self._file.write(self.to_bytes())

    def close(self) -> None:
        """Let another process have the state; calling it again does nothing."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _grouped(pieces: Iterator[Piece]) -> Iterator[list[Piece]]:
    """Yield pieces in groups of about as many records as a whole piece has."""
    group: list[Piece] = []
    for piece in pieces:
        group.append(piece)
        if sum(len(each.sealed) for each in group) >= PIECE:
            yield group
            group = []
    if group:
        yield group


def _until_refused(pieces: Iterator[Piece], refusals: list[Exception]) -> Iterator[Piece]:
    """Yield pieces up to a batch that is refused, or an error of who gives the batches, and put that down."""
    try:
        yield from pieces
    except Exception as error:
        refusals.append(error)
