"""What was opened so far: batches, parts of one, and their counts; as bytes, and merged with another's."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, final

import numpy as np

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.base.base_aggregator import Intake
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.local.shuffle.mixed_batch import MixedBatch
from sfumato.local.shuffle.opening_worker import CountedPieces

__all__ = ["PIECE", "OpeningProgress", "Piece"]

PIECE: Final = 1 << 14
"""Records of a piece; the last one of a batch may have fewer."""

_MAGIC: Final = b"sfmtOPEN"
_VERSION: Final = 1
_HEADER: Final = struct.Struct("<8sHxxI32s5Q")
"""Magic, version, records of a piece, the collection's id; broken seals, how many batches were opened, how
many are exposed, how many were begun, bytes of the aggregator."""
_OPENED: Final = np.dtype([("number", "<u8"), ("digest", "V16")])
_BEGUN: Final = struct.Struct("<Q16sQQ")
"""Number, digest, records counted, bytes of the bits that say which pieces are done."""
_SUM: Final = 32


@final
@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Records of a batch that are opened together."""

    number: int
    index: int
    sealed: Records


@final
@dataclass(slots=True)
class _Begun:
    """A batch of which some pieces were opened."""

    digest: bytes
    done: set[int] = field(default_factory=set)
    accepted: int = 0


@final
class OpeningProgress:
    """The counts of an opening, and which records they are of.

    Parameters
    ----------
    collection : PublicCollection
    aggregator : Intake
        With nothing counted.

    Notes
    -----
    Each record of an opened piece is counted once: as accepted, as refused by the aggregator, or as one with
    a broken seal. So these counts add up to the records of all opened pieces, which `from_bytes` checks.
    """

    __slots__ = ("_begun", "_collection", "_torn", "aggregator", "exposed", "opened", "unsealable")

    def __init__(self, collection: PublicCollection, aggregator: Intake[Any]) -> None:
        self._collection, self.aggregator = collection, aggregator
        self.opened: dict[int, bytes] = {}
        self.exposed: list[int] = []
        self.unsealable = 0
        self._begun: dict[int, _Begun] = {}
        self._torn = False

    @property
    def _records(self) -> int:
        return self._collection.batch_size * self._collection.messages

    @property
    def _pieces(self) -> int:
        return -(-self._records // PIECE)

    @property
    def begun(self) -> tuple[int, ...]:
        """The numbers of batches of which not all pieces were opened."""
        return tuple(self._begun)

    def begin(self, batch: MixedBatch) -> bool:
        """Check a batch, and return whether there is something left to open of it.

        Parameters
        ----------
        batch : MixedBatch

        Raises
        ------
        ParameterError
            If it is no whole batch of this collection, or one of its number and of other content was opened.
        """
        known = self._collection
        number: object = batch.number
        if type(number) is not int or not 0 <= number < 1 << 64 or batch.sealed.dtype != np.uint8:
            raise ParameterError("a batch must have a number and records of bytes; use MixedBatch.from_bytes")
        if batch.collection != known.id:
            raise ParameterError("a batch must be of this collection, got another's; use that one's file")
        if batch.sealed.shape != (self._records, known.sealed_width):
            raise ParameterError("a batch must have all records of its clients, got more or fewer")
        digest, begun = batch.digest, self._begun.get(batch.number)
        before = self.opened.get(batch.number) if begun is None else begun.digest
        if before not in (None, digest):
            rule = "be the one that was opened under its number"
            _check.refuse("a batch", rule, batch.number, "ask the shuffler which one it released")
        if batch.number in self.opened:
            return False
        if begun is None:
            self._begun[batch.number] = _Begun(digest)
        return True

    def pieces(self, batch: MixedBatch) -> Iterator[Piece]:
        """Yield the pieces of a batch that was begun that are not opened yet."""
        done = frozenset(self._begun[batch.number].done)
        for index in range(self._pieces):
            if index not in done:
                yield Piece(batch.number, index, batch.sealed[index * PIECE : (index + 1) * PIECE])

    def count(self, pieces: list[Piece], counted: CountedPieces) -> None:
        """Add what was counted of some pieces.

        Parameters
        ----------
        pieces : list of Piece
        counted : CountedPieces
            What a worker counted of them.
        """
        self._torn = True  # for as long as an interrupt would leave a part of it done
        self.aggregator.merge(counted.state)
        self.unsealable += sum(counted.unsealable)
        for piece, accepted in zip(pieces, counted.accepted, strict=True):
            begun = self._begun[piece.number]
            begun.done.add(piece.index)
            begun.accepted += accepted
            if len(begun.done) == self._pieces:
                self._finish(piece.number, self._begun.pop(piece.number))
        self._torn = False

    def check_whole(self) -> None:
        """Refuse counts that were added in part, since the process was interrupted meanwhile.

        Raises
        ------
        ParameterError
            If they were; what is on the disk is from before.
        """
        if self._torn:
            remedy = "open another, on the same state if there is one"
            _check.refuse_state("the opening", "be uninterrupted", "it was ended while it added", remedy)

    def _finish(self, number: int, begun: _Begun) -> None:
        self.opened[number] = begun.digest
        if self._records - begun.accepted > self._collection.colluders * self._collection.messages:
            self.exposed.append(number)

    def settle(self) -> None:
        """Forget the batches of which no piece was opened, after a failure."""
        self._begun = {number: one for number, one in self._begun.items() if one.done}

    def merge(self, other: OpeningProgress) -> None:
        """Add what another one of the same collection opened, all of it other batches.

        Parameters
        ----------
        other : OpeningProgress

        Raises
        ------
        ParameterError
            If a batch is in both; then nothing is added.
        """
        both = (self.opened.keys() | self._begun.keys()) & (other.opened.keys() | other._begun.keys())
        if both:
            _check.refuse("other", "have opened other batches only", min(both), "leave one of the two out")
        self._torn = True
        self.aggregator.merge(other.aggregator)
        self.unsealable += other.unsealable
        self.opened |= other.opened
        self._begun |= other._begun
        self.exposed += other.exposed
        self._torn = False

    def to_bytes(self) -> bytes:
        """Return all of it, with a checksum; `load` reads it again.

        Returns
        -------
        bytes
            A stable format.

        Raises
        ------
        ParameterError
            If an addition was interrupted.
        """
        self.check_whole()
        counts, opened = self.aggregator.to_bytes(), np.zeros(len(self.opened), _OPENED)
        opened["number"] = sorted(self.opened)
        digests = b"".join(self.opened[number] for number in sorted(self.opened))
        opened["digest"] = np.frombuffer(digests, _OPENED["digest"])
        begun = [(number, one) for number, one in sorted(self._begun.items()) if one.done]
        sizes = len(opened), len(self.exposed), len(begun), len(counts)
        header = _HEADER.pack(_MAGIC, _VERSION, PIECE, self._collection.id, self.unsealable, *sizes)
        exposed = np.array(self.exposed, "<u8").tobytes()
        content = header + opened.tobytes() + exposed + b"".join(map(self._begun_bytes, begun)) + counts
        return content + hashlib.sha256(content).digest()

    def _begun_bytes(self, begun: tuple[int, _Begun]) -> bytes:
        number, one = begun
        done = np.zeros(self._pieces, bool)
        done[list(one.done)] = True
        bits = np.packbits(done).tobytes()
        return _BEGUN.pack(number, one.digest, one.accepted, len(bits)) + bits

    def load(self, state: bytes) -> None:
        """Take up what `to_bytes` wrote, in the place of what is there.

        Parameters
        ----------
        state : bytes
            As `to_bytes` wrote it.

        Raises
        ------
        ParameterError
            If it is of another version or collection, was altered, or its counts do not add up to its
            records.
        """
        given: object = state
        if not isinstance(given, bytes) or len(state) < _HEADER.size + _SUM or not state.startswith(_MAGIC):
            _refuse("be one that an opening wrote", "got other bytes")
        _, version, piece, collection, unsealable, opened, exposed, begun, size = _HEADER.unpack_from(state)
        if version != _VERSION:
            remedy = "use a newer sfumato" if version > _VERSION else "open the batches again"
            _check.refuse("state", f"be of version {_VERSION}", version, remedy)
        content, digest = state[:-_SUM], state[-_SUM:]
        if hashlib.sha256(content).digest() != digest:
            _refuse("be whole and unaltered", "its checksum is another's")
        if collection != self._collection.id or piece != PIECE:
            raise ParameterError("state must be of this collection, got another's; use that one's file")
        self.unsealable = unsealable
        if not self._restore(content[_HEADER.size :], opened, exposed, begun, size):
            _refuse("hold counts of the batches that it names", "got others")

    def _restore(self, rest: bytes, opened: int, exposed: int, begun: int, size: int) -> bool:
        """Take up the parts behind the header; return whether they belong together."""
        start = opened * _OPENED.itemsize
        if len(rest) < start + 8 * exposed + size:
            return False
        table = np.frombuffer(rest[:start], _OPENED)
        self.opened = {int(number): digest.tobytes() for number, digest in table}
        self.exposed = np.frombuffer(rest[start : start + 8 * exposed], "<u8").tolist()
        self._begun, position = {}, start + 8 * exposed
        for _ in range(begun):
            number, one, position = self._read_begun(rest, position)
            if one is None:
                return False
            self._begun[number] = one
        if len(rest) != position + size or len(self.opened) != opened or len(self._begun) != begun:
            return False
        self.aggregator.load(rest[position:])
        apart = not self.opened.keys() & self._begun.keys() and self.opened.keys() >= set(self.exposed)
        return apart and self._records_opened() == self._records_counted()

    def _read_begun(self, rest: bytes, position: int) -> tuple[int, _Begun | None, int]:
        end = position + _BEGUN.size
        if len(rest) < end:
            return 0, None, end
        number, digest, accepted, size = _BEGUN.unpack_from(rest, position)
        if size != -(-self._pieces // 8) or len(rest) < end + size:
            return 0, None, end
        bits = np.unpackbits(np.frombuffer(rest[end : end + size], np.uint8))
        done = set(np.flatnonzero(bits).tolist())
        sound = max(done, default=0) < self._pieces and len(done) < self._pieces
        return number, _Begun(digest, done, accepted) if sound else None, end + size

    def _records_opened(self) -> int:
        last = self._records - (self._pieces - 1) * PIECE
        parts = sum(len(one.done) * PIECE for one in self._begun.values())
        short = sum(self._pieces - 1 in one.done for one in self._begun.values())
        return len(self.opened) * self._records + parts - short * (PIECE - last)

    def _records_counted(self) -> int:
        return self.aggregator.accepted + sum(self.aggregator.refused.values()) + self.unsealable


def _refuse(rule: str, found: str) -> NoReturn:
    raise ParameterError(f"state must {rule}, {found}; open the batches again, or use a copy of it")
