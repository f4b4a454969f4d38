"""The messages of a round as bytes: a header of JSON, which names format, kind and round, then a binary body.

Every message carries the digest of the round's parameters, so that none is read in another round.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import BYTES, INTEGER, TEXT, Format, Record, canonical, parse
from sfumato.crypto.secret_sharing import limbs

__all__ = ["ENVELOPE", "KEY", "LIMBS", "SERVER", "SHARE", "SIGNATURE", "Message", "bitmap", "members"]

KEY: Final = 32
SIGNATURE: Final = 64
LIMBS: Final = limbs(KEY)
"""Words of a share."""
SHARE: Final = 8 * LIMBS
"""Bytes of a share of a key or a seed."""
ENVELOPE: Final = 2 * SHARE + 16
"""Bytes of two shares, sealed."""
SERVER: Final = -1
"""The sender of what the server says to all."""

_FORMAT: Final = Format("sfumato.secure_aggregation.message", 1)
_LONGEST_HEADER: Final = 512
_REMEDY: Final = "pass the bytes that the other role returned in this round"

KINDS: Final = (
    "keys",
    "roster",
    "shares",
    "delivery",
    "vector",
    "survivors",
    "consent",
    "evidence",
    "unmask",
)
"""In the order of a round."""


@final
@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    client : int
        Whose it is: the client that sent it or is to have it; `SERVER` for what all clients get.
    digest : bytes
        Of the round's parameters.
    body : bytes
    """

    kind: str
    client: int
    digest: bytes
    body: bytes | memoryview

    def to_bytes(self) -> bytes:
        """Return the message as it is sent."""
        header = b'{"client":%d' % self.client + _after_client(self.kind, self.digest)
        return len(header).to_bytes(4, "big") + header + self.body

    @staticmethod
    def from_bytes(data: bytes, kind: str, digest: bytes, sizes: tuple[int, int, int]) -> Message:
        """Return a message of one kind and round.

        Parameters
        ----------
        data : bytes
            What `to_bytes` wrote.
        kind : str
            The only one that is accepted.
        digest : bytes
            Of the round.
        sizes : tuple of int
            The body has the first number of bytes, plus a multiple of the second, and at most the third.

        Raises
        ------
        ParameterError
            If it is malformed, or of another kind or round.
        """
        name = f"the message of {kind}"
        given: object = data
        if not isinstance(given, bytes):
            _check.refuse_type(name, "be bytes", given, _REMEDY)
        long = int.from_bytes(data[:4], "big")
        if not (len(data) >= 4 and 0 < long <= _LONGEST_HEADER and 4 + long <= len(data)):
            _check.refuse_state(name, "have a header and a body", "it is cut or malformed", _REMEDY)
        header, rest = data[4 : 4 + long], _after_client(kind, digest)
        number = _CLIENT.fullmatch(header.removesuffix(rest))
        if number is None or not header.endswith(rest):
            _refuse_header(name, header, kind, digest)
        fixed, each, largest = sizes
        size = len(data) - 4 - long
        if not fixed <= size <= largest or (size - fixed) % (each or 1) or (not each and size != fixed):
            _check.refuse_state(name, "have the size that the round says", "it has another", _REMEDY)
        return Message(kind, int(number[1]), digest, memoryview(data)[4 + long :])


_CLIENT: Final = re.compile(rb'\{"client":(-1|0|[1-9][0-9]{0,6})')


@functools.lru_cache(maxsize=64)
def _after_client(kind: str, digest: bytes) -> bytes:
    """Return the canonical header from behind the client's number, the first of its sorted keys."""
    fields = {"kind": kind, "client": 0, "digest": digest.hex()}
    return canonical(_FORMAT.wrap(fields)).removeprefix('{"client":0').encode()


def _refuse_header(name: str, data: bytes, kind: str, digest: bytes) -> NoReturn:
    """Refuse a header that is not the expected one, with the first reason that is found."""
    header = _HEADER.decode(name, _FORMAT.unwrap(name, parse(name, data))[1])
    if header["kind"] != kind:
        _check.refuse_state(name, f"be of the kind {kind}", "it is of another", _REMEDY)
    if header["digest"] != digest:
        _check.refuse_state(name, "be of this round", "it has the digest of another", _REMEDY)
    _check.refuse_state(name, "have the one text of its header", "it is written otherwise", _REMEDY)


_FIELDS: Final[Mapping[str, Any]] = {"kind": TEXT, "client": INTEGER, "digest": BYTES}
_HEADER: Final[Record[dict[str, Any]]] = Record("a header", dict, _FIELDS)


def bitmap(chosen: NDArray[np.bool_]) -> bytes:
    """Return a set of clients as bits.

    >>> bitmap(np.array([True, False, True])).hex()
    '05'
    """
    return np.packbits(chosen, bitorder="little").tobytes()


def members(data: bytes | memoryview, clients: int) -> NDArray[np.bool_]:
    """Return the set of clients that `bitmap` wrote; bits beyond the last client are refused.

    >>> members(bytes([5]), 3).tolist()
    [True, False, True]
    """
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    if bits[clients:].any():
        _check.refuse_state("a set of clients", "have no bit beyond the last one", "it has one", _REMEDY)
    return bits[:clients].astype(bool)
