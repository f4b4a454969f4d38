"""What a shuffler releases: the sealed records of a fixed number of clients, in random order."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.record_layout import Records
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["MixedBatch", "random_order"]

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
        count, width = self.sealed.shape
        header = _HEADER.pack(_MAGIC, _VERSION, width, self.collection, self.number, count)
        return header + self.sealed.tobytes()

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
        _, version, width, collection, number, count = _HEADER.unpack_from(data)
        if version != _VERSION:
            remedy = (
                "use a newer sfumato" if version > _VERSION else "open it by the sfumato that released it"
            )
            _check.refuse("a batch", f"be of version {_VERSION}", version, remedy)
        if not width or len(data) != _HEADER.size + width * count:
            raise ParameterError("a batch must be whole, got more or fewer bytes than its header says")
        sealed = np.frombuffer(data, np.uint8, offset=_HEADER.size).reshape(count, width)
        return MixedBatch(collection, number, sealed)


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
