"""The categories that may be reported: any hashable values, each with an index, and a digest of all."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError

__all__ = ["Domain"]

_VERSION: Final = b"sfumato domain 1\n"
_MAX: Final = 1 << 62
_RULE: Final = "be at least 2 hashable values, none of them twice"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """The categories of a question, in an order that devices and server agree on.

    Parameters
    ----------
    values : range, sequence of hashables or one-dimensional array
        At least 2, none of them twice; public. Equal values are one category (``1``, ``1.0`` and ``True``
        are). A range is never written out, nor are whole numbers with even steps, which become one.

    Attributes
    ----------
    digest : bytes
        32 bytes that identify this domain, on every machine and in every later version.

    Raises
    ------
    ParameterError
        If there are fewer than 2 values, one occurs twice, or one has no fixed text to take a digest of.

    Examples
    --------
    >>> colours = Domain(["red", "green", "blue"])
    >>> colours.codes(["blue", "red"]).tolist(), len(Domain(range(1024)))
    ([2, 0], 1024)
    """

    values: Sequence[Hashable]
    digest: bytes = field(init=False, repr=False)
    _indices: Mapping[Hashable, int] = field(init=False, repr=False)
    _sorted: tuple[NDArray[np.int64], NDArray[np.int64]] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = _listed(self.values)
        positions = (
            {} if isinstance(values, range) else {value: position for position, value in enumerate(values)}
        )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_indices", positions)
        object.__setattr__(self, "_sorted", _in_order(values))
        object.__setattr__(self, "digest", hashlib.sha256(_VERSION + _canonical(values)).digest())

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        values = self.values
        few = isinstance(values, range) or len(values) <= 6
        return f"Domain({values if few else f'{values[0]!r}, ... {len(values)} values'})"

    def codes(self, values: Iterable[Any]) -> NDArray[np.int64]:
        """Return the indices of values, counted from 0.

        Parameters
        ----------
        values : one-dimensional array or iterable
            Of categories; integer arrays are fastest.

        Returns
        -------
        ndarray of int64

        Raises
        ------
        ParameterError
            If one is no category of the domain. The message shows no value.
        """
        if hasattr(values, "__array__"):
            values = np.asarray(values)
        if isinstance(values, np.ndarray) and values.ndim != 1:
            _check.refuse("values", "have one dimension", values.ndim, "pass one per respondent")
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            _check.refuse_type("values", "be an array or a list", values, "pass [value] for one")
        whole = _whole_numbers(values)
        if whole is not None and isinstance(self.values, range):
            return _of_range(self.values, whole)
        if whole is not None and self._sorted is not None:
            return _of_sorted(*self._sorted, whole)
        return self._of_any(values.tolist() if isinstance(values, np.ndarray) else values)

    def specification(self) -> dict[str, Any]:
        """Return what makes the domain again, as JSON: its digest, and its values where JSON has them.

        Returns
        -------
        dict
            What `json.dumps` writes.
        """
        specification: dict[str, Any] = {"digest": self.digest.hex()}
        if isinstance(self.values, range):
            specification["range"] = [self.values.start, self.values.stop, self.values.step]
        elif all(type(value) in (str, int, bool) for value in self.values):
            specification["values"] = list(self.values)
        return specification

    @staticmethod
    def from_specification(specification: Mapping[str, Any], domain: Domain | None = None) -> Domain:
        """Return the domain that `specification` described.

        Parameters
        ----------
        specification : mapping
        domain : Domain, optional
            The domain itself, for one whose values JSON does not have.

        Returns
        -------
        Domain

        Raises
        ------
        ParameterError
            If the mapping is malformed, or its digest is another.
        """
        if domain is None:
            try:
                steps = specification.get("range")
                domain = Domain(list(specification["values"]) if steps is None else range(*steps))
            except (AttributeError, KeyError, TypeError, ValueError):
                raise ParameterError(
                    "domain must be written with its values, got a digest alone or no domain; pass domain="
                ) from None
        if specification != domain.specification():
            raise ParameterError("domain must be the one of the specification's digest, got another domain")
        return domain

    def _of_any(self, values: Iterable[Any]) -> NDArray[np.int64]:
        members = self.values
        try:
            if isinstance(members, range):
                found: Iterable[int] = (members.index(_plain(value)) for value in values)
            else:
                found = map(self._indices.__getitem__, values)
            codes = np.fromiter(found, dtype=np.int64)
        except (KeyError, TypeError, ValueError, OverflowError):
            codes = None
        return _outside() if codes is None else codes


def _outside() -> NoReturn:
    """Refuse values, without the error that would show one."""
    raise ParameterError(
        "values must be categories of the domain, got one that is not; give such answers one of their own"
    )


def _listed(given: object) -> Sequence[Hashable]:
    """Check the values of a domain, and return them as a range or a tuple."""
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        _check.refuse_type("values", _RULE, given, "pass a range, a list or a tuple")
    if isinstance(given, range):
        values: Sequence[Hashable] = given
    else:
        values = tuple(value.item() if isinstance(value, np.generic) else value for value in given)
        try:
            distinct = len(set(values))
        except TypeError:
            _check.refuse_type("values", _RULE, given, "pass tuples instead of lists as categories")
        if distinct < len(values) or not all(map(operator.eq, values, values)):
            _check.refuse_type("values", _RULE, given, "remove repeated values, and NaN")
        values = _as_range(values)
    if isinstance(values, range) and values and max(abs(values[0]), abs(values[-1])) >= _MAX:
        _check.refuse("values", "be a range within 2**62 of 0", values, "use strings for such numbers")
    if len(values) < 2:
        _check.refuse("values", _RULE, values, "name another category: one needs no report")
    return values


def _as_range(values: tuple[Hashable, ...]) -> Sequence[Hashable]:
    """Return whole numbers with even steps as a range, and others as they are."""
    numbers = [value for value in values if type(value) is int and abs(value) < _MAX]
    if len(numbers) < max(2, len(values)):
        return values
    step = numbers[1] - numbers[0]
    found = range(numbers[0], numbers[0] + step * len(numbers), step)
    return found if numbers == list(found) else values


def _in_order(values: Sequence[Hashable]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return whole numbers in ascending order with their indices; None for others, and for ranges."""
    if isinstance(values, range) or any(type(value) is not int for value in values):
        return None
    try:
        numbers = np.array(values, dtype=np.int64)
    except OverflowError:
        return None
    order = np.argsort(numbers)
    return numbers[order], order


def _whole_numbers(values: object) -> NDArray[np.int64] | None:
    """Return values as int64, if they are whole numbers that fit."""
    if isinstance(values, list | tuple) and values and type(values[0]) is int:
        try:
            values = np.asarray(values)
        except (ValueError, OverflowError):
            return None
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
        return None
    if values.dtype == np.uint64 and values.size and int(values.max()) >= 1 << 63:
        return None
    return values.astype(np.int64, copy=False)


def _of_range(values: range, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    minimum, maximum = sorted((values[0], values[-1]))
    if numbers.size and (numbers.min() < minimum or numbers.max() > maximum):
        _outside()
    away = numbers - values.start
    if values.step == 1:
        return away
    codes, rest = np.divmod(away, values.step)
    if rest.any():
        _outside()
    return np.asarray(codes)


def _of_sorted(
    numbers: NDArray[np.int64], positions: NDArray[np.int64], values: NDArray[np.int64]
) -> NDArray[np.int64]:
    at = np.minimum(np.searchsorted(numbers, values), len(numbers) - 1)
    if (numbers[at] != values).any():
        _outside()
    return np.asarray(positions[at])


def _plain(value: Any) -> int:
    """Return the int that a value equals; a range would compare with each of its members."""
    whole = int(value)
    if whole != value:
        raise ValueError
    return whole


_SCALARS: Final[Mapping[type, tuple[bytes, Callable[[Any], str]]]] = {
    type(None): (b"n", lambda _: ""),
    bool: (b"?", lambda value: "1" if value else "0"),
    int: (b"i", str),
    float: (b"d", float.hex),
    Decimal: (b"D", str),
    Fraction: (b"q", lambda value: f"{value.numerator}/{value.denominator}"),
    date: (b"y", date.isoformat),
    datetime: (b"z", datetime.isoformat),
    time: (b"h", time.isoformat),
}
"""The tag and the text of each kind of scalar category; a class of the caller's own has its own text."""


def _canonical(value: object) -> bytes:
    """Return bytes that differ for different categories and are the same on every machine."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, range):
        return _tagged(b"r", f"{value.start},{value.step},{len(value)}".encode())
    if isinstance(value, tuple):
        return _tagged(b"t", b"".join(map(_canonical, value)))
    if isinstance(value, frozenset):  # its own text has no fixed order
        return _tagged(b"f", b"".join(sorted(map(_canonical, value))))
    if isinstance(value, bytes):
        return _tagged(b"b", value)
    if type(value) is str:
        return _tagged(b"s", value.encode("utf-8", "surrogatepass"))
    return _scalar(value)


def _scalar(value: object) -> bytes:
    kind = type(value)
    if kind in _SCALARS:
        tag, written = _SCALARS[kind]
        return _tagged(tag, written(value).encode())
    if kind.__repr__ is object.__repr__:
        remedy = "use strings, numbers, tuples of them, or a class with a __repr__ of its own"
        _check.refuse("values", "have a text that is always the same", kind.__qualname__, remedy)
    return _tagged(b"o", f"{kind.__module__}.{kind.__qualname__} {value!r}".encode())


def _tagged(tag: bytes, content: bytes) -> bytes:
    return tag + str(len(content)).encode() + b":" + content
