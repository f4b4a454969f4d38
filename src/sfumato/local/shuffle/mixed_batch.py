"""What a shuffler releases: the sealed records of a fixed number of clients, in random order."""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import numpy as np

from sfumato import _check
from sfumato.errors import ParameterError, SourceError
from sfumato.local.device.base.record_layout import Records
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["MixedBatch", "batch_of", "random_order"]

_MAGIC: Final = b"sfmtMIXD"
_VERSION: Final = 2
_HEADER: Final = struct.Struct("<8sHxxI32sQQ")
"""Magic, version, bytes of a sealed record, the collection's id, the batch's number, sealed records."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class MixedBatch:
    """One released batch, of one collection.

    Parameters
    ----------
    collection : bytes
        The collection's id, 32 bytes.
    number : int
        Of the batch, from 1 on.
    sealed : uint8 array, shape (records, width)
        The sealed records, in random order.

    Examples
    --------
    >>> batch = MixedBatch(bytes(32), 1, np.arange(6, dtype=np.uint8).reshape(2, 3))
    >>> again = MixedBatch.from_bytes(batch.to_bytes())
    >>> again.number, again.sealed.tolist()
    (1, [[0, 1, 2], [3, 4, 5]])
    """

    collection: bytes
    number: int
    sealed: Records

    def to_bytes(self) -> bytes:
        """Return a header and the sealed records; `from_bytes` reads them again.

        Returns
        -------
        bytes
            A stable format.
        """
        return self._header + self.sealed.tobytes()

    @property
    def _header(self) -> bytes:
        count, width = self.sealed.shape
        return _HEADER.pack(_MAGIC, _VERSION, width, self.collection, self.number, count)

    @property
    def digest(self) -> bytes:
        """The first 16 bytes of SHA-256 of `to_bytes`: two batches with the same digest are one."""
        whole = hashlib.sha256(self._header)
        whole.update(np.ascontiguousarray(self.sealed).data)
        return whole.digest()[:16]

    @staticmethod
    def from_bytes(data: bytes) -> MixedBatch:
        """Return the batch that `to_bytes` wrote.

        Parameters
        ----------
        data : bytes
            As `to_bytes` wrote it.

        Returns
        -------
        MixedBatch
            Still sealed.

        Raises
        ------
        ParameterError
            If it is none, of another version, or not whole.
        """
        whole: object = data
        if not isinstance(whole, bytes) or len(data) < _HEADER.size or not data.startswith(_MAGIC):
            raise ParameterError("a batch must be one that a shuffler released, got other bytes")
        return MixedBatch._parsed(data, len(data))

    @staticmethod
    def from_file(path: Path) -> MixedBatch:
        """Return the batch in a file, of which no more is in memory than is looked at.

        Parameters
        ----------
        path : Path
            Of what `to_bytes` wrote; it must stay as it is while the batch is in use.

        Returns
        -------
        MixedBatch
            Still sealed.

        Raises
        ------
        SourceError
            If the file cannot be read.
        ParameterError
            If it is no batch, of another version, or not whole.
        """
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        except (OSError, ValueError) as error:  # a ValueError is a name that no file can have
            raise SourceError(f"{str(path)!r} must be a file that can be read; check it") from error
        if size < _HEADER.size or data[: len(_MAGIC)] != _MAGIC:
            raise ParameterError("a batch must be one that a shuffler released, got other bytes")
        return MixedBatch._parsed(data, size)

    @staticmethod
    def _parsed(data: bytes | mmap.mmap, size: int) -> MixedBatch:
        _, version, width, collection, number, count = _HEADER.unpack_from(data)
        if version != _VERSION:
            remedy = (
                "use a newer sfumato" if version > _VERSION else "open it by the sfumato that released it"
            )
            _check.refuse("a batch", f"be of version {_VERSION}", version, remedy)
        if not width or size != _HEADER.size + width * count:
            raise ParameterError("a batch must be whole, got more or fewer bytes than its header says")
        sealed = np.frombuffer(data, np.uint8, offset=_HEADER.size).reshape(count, width)
        return MixedBatch(collection, number, sealed)


def batch_of(batch: object) -> MixedBatch:
    """Return a batch itself, or the one of bytes or of the file at a path."""
    if isinstance(batch, MixedBatch):
        return batch
    if isinstance(batch, str | os.PathLike):
        return MixedBatch.from_file(Path(batch))
    return MixedBatch.from_bytes(batch)  # type: ignore[arg-type]


def random_order(size: int, source: RandomSource) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return a uniformly random permutation of the numbers below ``size``.

    Notes
    -----
    The order of independent words of 64 bits, all of which are drawn anew where two are alike: given that
    none are, every order is exactly as likely as any other.
    """
    while True:
        words = source.words(size)
        order = np.argsort(words)
        if not (np.diff(words[order]) == 0).any():
            return order
