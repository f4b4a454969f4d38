"""Strings of bounded length over a stated alphabet, as rows of symbols, and public hashes of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError

__all__ = ["Strings", "Symbols", "hashed_rows"]

Symbols = NDArray[np.uint16]
"""Rows of symbols: 0 is the end of a string and all after it; the others count the alphabet from 1."""

_LONGEST: Final = 64
_MAX: Final = 1 << 12
_RULE: Final = "be from 2 to 4096 different characters, as a str, or byte values, as bytes"
_WORD: Final = 64


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Strings:
    """The strings that may be reported.

    Parameters
    ----------
    length : int
        Maximum number of characters (or bytes) of a string, from 1 to 64. Of longer ones the first ``length``
        are reported: all that begin alike are one string.
    alphabet : str or bytes
        The characters that occur, from 2 to 4096, none of them twice; public. Given as bytes, strings are
        bytes. ``bytes(range(256))`` takes any bytes, such as text in UTF-8; ``"01"`` takes bits.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Examples
    --------
    >>> words = Strings(length=4)
    >>> words.symbols(["ab", "zebra"]).tolist()
    [[1, 2, 0, 0], [26, 5, 2, 18]]
    >>> words.values(words.symbols(["ab", "zebra"]))
    ['ab', 'zebr']
    """

    length: int
    alphabet: str | bytes = "abcdefghijklmnopqrstuvwxyz"
    _table: NDArray[np.uint16] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        length = _check.integer("length", self.length, minimum=1)
        if length > _LONGEST:
            _check.refuse("length", f"be at most {_LONGEST}", length, "report what strings begin with")
        given: object = self.alphabet
        if not isinstance(given, str | bytes):
            _check.refuse_type("alphabet", _RULE, given, 'pass characters such as "01"')
        if not 2 <= len(given) <= _MAX or len(set(given)) < len(given):
            _check.refuse("alphabet", _RULE, given[:100], "name each character once")
        points = _points([given])[0]
        table = np.zeros(int(points.max()) + 2, np.uint16)
        table[points] = np.arange(1, len(points) + 1)
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "_table", table)

    @property
    def base(self) -> int:
        """How many symbols there are, the end among them."""
        return len(self.alphabet) + 1

    def symbols(self, values: Iterable[Any]) -> Symbols:
        """Return strings as rows of `length` symbols; longer ones are cut.

        Parameters
        ----------
        values : array or iterable
            Strings, or bytes if the alphabet is bytes.

        Returns
        -------
        uint16 array, shape (strings, length)
            0 after a string's end; 1 is the first character of the alphabet.

        Raises
        ------
        ParameterError
            If one is not of the alphabet, or no string (or bytes, if the alphabet is). It is not shown.
        """
        kind = type(self.alphabet)
        single = isinstance(values, str | bytes) or (isinstance(values, np.ndarray) and not values.ndim)
        if single or not isinstance(values, Iterable):
            _check.refuse_type("values", "be an array or a list", values, "pass [value] for one")
        listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
        if not all(issubclass(found, kind) for found in set(map(type, listed))):
            _outside(kind)
        cut = [value[: self.length] for value in listed]
        points, lengths = _points(cut)
        found = self._table[np.minimum(points, len(self._table) - 1)]
        if not found.all():
            _outside(kind)
        rows = np.zeros((len(cut), self.length), np.uint16)
        rows[np.arange(self.length) < lengths[:, None]] = found
        return rows

    def values(self, rows: Symbols) -> list[str] | list[bytes]:
        """Return the strings of rows of symbols: what comes before the end.

        Parameters
        ----------
        rows : uint16 array, shape (strings, symbols)

        Returns
        -------
        list of str or bytes
        """
        letters = self.alphabet
        if isinstance(letters, bytes):
            return [bytes(letters[at - 1] for at in row if at) for row in rows.tolist()]
        return ["".join(letters[at - 1] for at in row if at) for row in rows.tolist()]

    def endings(self, count: int) -> Symbols:
        """Return all rows of ``count`` symbols that some string has: after an end there are only ends.

        Parameters
        ----------
        count : int
            Symbols of a row.

        Returns
        -------
        uint16 array, shape (number_of_endings(count), count)

        Examples
        --------
        >>> Strings(length=4, alphabet="01").endings(2).tolist()
        [[0, 0], [1, 0], [2, 0], [1, 1], [2, 1], [1, 2], [2, 2]]
        """
        rows = np.zeros((1, 0), np.uint16)
        for at in range(count):
            letters = np.arange(1, self.base, dtype=np.uint16)
            going = rows[rows[:, -1] > 0] if at else rows
            ended = np.hstack([rows, np.zeros((len(rows), 1), np.uint16)])
            longer = np.hstack([np.tile(going, (len(letters), 1)), np.repeat(letters, len(going))[:, None]])
            rows = np.vstack([ended, longer])
        return rows

    def number_of_endings(self, count: int) -> int:
        """Return how many rows `endings` has.

        Parameters
        ----------
        count : int
            Symbols of a row.

        Returns
        -------
        int
        """
        return int(sum(len(self.alphabet) ** at for at in range(count + 1)))

    def extended(self, rows: Symbols, stop: int) -> Symbols:
        """Return all prefixes of a length that extend given shorter ones; ended strings stay as they are.

        Parameters
        ----------
        rows : uint16 array, shape (strings, symbols)
            The shorter prefixes, all different.
        stop : int
            Length of the new prefixes, at least that of the rows.

        Returns
        -------
        uint16 array, shape (prefixes, stop)
        """
        more = self.endings(stop - rows.shape[1])
        ended = rows[:, -1] == 0 if rows.shape[1] else np.zeros(len(rows), np.bool_)
        going = rows[~ended]
        longer = np.hstack([np.repeat(going, len(more), axis=0), np.tile(more, (len(going), 1))])
        rest = np.zeros((int(ended.sum()), more.shape[1]), np.uint16)
        return np.vstack([longer, np.hstack([rows[ended], rest])])

    def numbers(self, rows: Symbols) -> NDArray[np.int64]:
        """Return rows of few symbols as whole numbers, the first symbol the highest digit.

        Parameters
        ----------
        rows : uint16 array, shape (strings, symbols)
            Few enough symbols that ``base ** symbols`` is below 2^63.

        Returns
        -------
        int64 array, shape (strings,)
        """
        found = np.zeros(len(rows), np.int64)
        for column in rows.T:
            found = found * self.base + column
        return found

    def specification(self) -> dict[str, Any]:
        """Return what makes this again, as JSON.

        Returns
        -------
        dict
            What `json.dumps` writes.
        """
        letters = self.alphabet
        characters = {"bytes": letters.hex()} if isinstance(letters, bytes) else {"characters": letters}
        return {"length": self.length, **characters}

    @staticmethod
    def from_specification(specification: Any) -> Strings:
        """Return the strings that `specification` described; the one error names no value.

        Parameters
        ----------
        specification : mapping
            What `specification` returned.

        Returns
        -------
        Strings

        Raises
        ------
        ParameterError
            If it describes no strings.
        """
        try:
            in_bytes = "bytes" in specification
            letters = bytes.fromhex(specification["bytes"]) if in_bytes else specification["characters"]
            return Strings(length=specification["length"], alphabet=letters)
        except (KeyError, TypeError, ValueError):
            raise ParameterError(
                "specification must state its strings, got none; use the version it is of"
            ) from None


def hashed_rows(rows: Symbols, key: int, label: str, bits: int = 32) -> NDArray[np.int64]:
    r"""Return public hashes of rows of symbols, whole numbers of some bits.

    Parameters
    ----------
    rows : uint16 array
        Rows that end in 0 have the same hash with and without those columns.
    key : int
        Names a family of hash functions.
    label : str
        Names one of the family.
    bits : int
        From 1 to 48.

    Returns
    -------
    int64 array, shape (rows,)
        Below ``2**bits``.

    Notes
    -----
    The high bits of :math:`a_0 + \sum_i a_i x_i \bmod 2^{64}`. With words a drawn evenly, the hashes of any
    two different rows are independent and even, since symbols have at most 16 bits (Dietzfelbinger 1996).
    The words are those of BLAKE2b of key and label: the same on every machine.

    Examples
    --------
    >>> hashed_rows(np.array([[1, 2], [1, 0], [2, 1]], np.uint16), 0, "demo", 8).tolist()
    [205, 11, 122]
    """
    words = _words(key, label)
    found = np.full(len(rows), words[0])
    for word, column in zip(words[1:], rows.T, strict=False):
        found += word * column
    return (found >> np.uint64(_WORD - bits)).astype(np.int64)


@lru_cache(maxsize=64)
def _words(key: int, label: str) -> NDArray[np.uint64]:
    keyed, name = key.to_bytes(8, "little"), label.encode()
    digests = (
        hashlib.blake2b(at.to_bytes(4, "little") + name, digest_size=8, key=keyed, person=b"sfumato string")
        for at in range(_LONGEST + 1)
    )
    words = np.frombuffer(b"".join(digest.digest() for digest in digests), "<u8").astype(np.uint64)
    words.flags.writeable = False
    return words


def _points(values: list[Any]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the code points, or bytes, of strings one after the other, and the strings' lengths."""
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    if values and isinstance(values[0], bytes):
        return np.frombuffer(b"".join(values), np.uint8).astype(np.uint32), lengths
    text = "".join(values).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(text, "<u4").astype(np.uint32), lengths


def _outside(kind: type) -> None:
    raise ParameterError(
        f"values must be {kind.__name__} of the alphabet, got others; "
        "write what else occurs as a character of it"
    )
