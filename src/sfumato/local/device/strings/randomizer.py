"""The base of client halves that report a part of a string, the whole string, or both."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import checked_epsilon
from sfumato.local.device.base.randomizer import CategoricalRandomizer, Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.strings import Strings, Symbols, hashed_rows
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["FINGERPRINTS", "StringsRandomizer", "cut_points"]

FINGERPRINTS: Final = Domain(range(1 << 32))
"""Hashes that stand for strings."""

_MAX_QUESTIONS: Final = 200
_MAX_WEIGHT: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class StringsRandomizer(Randomizer):
    r"""A client half that reports a part of a string, drawn by chance, or the whole, or both.

    Parameters
    ----------
    epsilon : float
        See `Randomizer`: for everything that one person reports, whatever other string would be true.
    strings : Strings
        What may be true.
    weight : int
        How many times as many respondents report the whole string as report any one part, up to 50. With 0
        everybody reports a part and the whole, each for half of epsilon.
    key : int
        Public; names the hash functions, from 0 to 2^64 - 1.

    Attributes
    ----------
    part, whole : CategoricalRandomizer
        What a part's code is reported by, and that of the whole string.

    Notes
    -----
    Whole strings (and prefixes) are reported as fingerprints: public hashes of 32 bits, which are the same
    for any two strings with probability 2^-32; those two are one.

    A record is the number of the question in a byte, the record of `part` or `whole` (with a weight of 0,
    both), zeros where that one is shorter, and the tag.

    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one. Which question it is does not depend
    on what is true; given the question, the report is that of `part` or of `whole`, for all of epsilon. With
    a weight of 0 it is both, drawn independently, each for at most half of it: the losses add up.
    """

    chosen: ClassVar[tuple[str, ...]] = ("epsilon", "strings", "weight", "key")

    strings: Strings
    weight: int = 2
    key: int = 0
    part: CategoricalRandomizer = field(init=False, repr=False, compare=False)
    whole: CategoricalRandomizer = field(init=False, repr=False, compare=False)

    def _prepare(self) -> None:
        given: object = self.strings
        if not isinstance(given, Strings):
            _check.refuse_type("strings", "be Strings", given, "pass Strings(length=...)")
        weight, key = _check.integer("weight", self.weight), _check.integer("key", self.key)
        if weight > _MAX_WEIGHT:
            _check.refuse("weight", f"be at most {_MAX_WEIGHT}", weight, "take 2, as is usual")
        if key >> 64:
            _check.refuse("key", "be below 2**64", key, "take any public number below it")
        self._set(weight=weight, key=key)
        self._arrange()
        if self.questions > _MAX_QUESTIONS:
            _check.refuse(
                "strings", f"make at most {_MAX_QUESTIONS} questions", self.questions, "take longer parts"
            )
        epsilon = self.epsilon if weight else _half(self.epsilon)
        self._set(part=self._part(checked_epsilon(epsilon)).within(), whole=self._whole(epsilon).within())

    @abstractmethod
    def _arrange(self) -> None:
        """Check the parameters of the protocol and set what follows, with `_set`."""

    @abstractmethod
    def _part(self, epsilon: float) -> CategoricalRandomizer:
        """Return what reports a part's code, an index in a range from 0 on."""

    def _whole(self, epsilon: float) -> CategoricalRandomizer:
        """Return what reports a fingerprint: the same as a part's code, if not overridden."""
        return self._part(epsilon)

    @property
    @abstractmethod
    def questions(self) -> int:
        """How many parts a string has."""

    @abstractmethod
    def part_codes(self, rows: Symbols, asked: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the code of each string's part that is asked for.

        Parameters
        ----------
        rows : uint16 array, shape (strings, length)
            Strings as rows of symbols.
        asked : int64 array, shape (strings,)
            The question that each string answers.

        Returns
        -------
        int64 array, shape (strings,)
        """

    def whole_codes(self, rows: Symbols) -> NDArray[np.int64]:
        """Return fingerprints of whole strings.

        Parameters
        ----------
        rows : uint16 array, shape (strings, length)

        Returns
        -------
        int64 array, shape (strings,)
        """
        return hashed_rows(rows, self.key, "whole")

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """How likely any one part is asked for, and the whole."""
        slots = self.questions + self.weight
        return Fraction(1, slots), Fraction(self.weight, slots) if self.weight else Fraction(1)

    @property
    def _room(self) -> int:
        widths = self.part.width, self.whole.width
        return max(widths) if self.weight else sum(widths)

    @property
    def _bits(self) -> int:
        return 8 * (1 + self._room)

    def _chances(self) -> dict[str, Any]:
        return {"parts": [self.part.digest.hex(), self.whole.digest.hex()], "hash": "blake2b, shift"}

    def _records(self, values: Any, source: RandomSource) -> Records:
        rows = self.strings.symbols(values)
        slots = uniform_integers(self.questions + self.weight, len(rows), source)
        asked = np.minimum(slots, self.questions)
        records = np.zeros((len(rows), self.width), np.uint8)
        records[:, 0] = asked
        partly = np.flatnonzero(asked < self.questions)
        codes = self.part_codes(rows[partly], asked[partly])
        records[partly, 1 : 1 + self.part.width] = self.part.encoded(codes, source)
        wholly = np.flatnonzero(asked == self.questions) if self.weight else partly
        codes, start = self.whole_codes(rows[wholly]), 1 if self.weight else 1 + self.part.width
        records[wholly, start : start + self.whole.width] = self.whole.encoded(codes, source)
        self.layout.stamp(records)
        return records

    def asked(self, records: Records) -> NDArray[np.int64]:
        """Return which questions records answer: `questions` stands for the whole string alone.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        int64 array, shape (records,)
        """
        return records[:, 0].astype(np.int64)

    def cut(self, records: Records, *, whole: bool) -> Records:
        """Return the records of `part`, or of `whole`, where all have one.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
        whole : bool
            Whether to return those of `whole`.

        Returns
        -------
        uint8 array, shape (records, width of the part)
        """
        start, device = 1, self.part
        if whole:
            start, device = 1 if self.weight else 1 + self.part.width, self.whole
        return np.ascontiguousarray(records[:, start : start + device.width])

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records answer a question, with a record that it has, and nothing after that.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        asked = self.asked(records)
        partly = asked < self.questions
        sound = self._sound(records, whole=False)
        if self.weight:
            wholly = asked == self.questions
            return np.asarray(partly & sound | wholly & self._sound(records, whole=True))
        return np.asarray(partly & sound & self._sound(records, whole=True))

    def _sound(self, records: Records, *, whole: bool) -> NDArray[np.bool_]:
        device, piece = self.whole if whole else self.part, self.cut(records, whole=whole)
        sound = device.layout.genuine(piece) & device.well_formed(piece)
        if self.weight:
            sound &= ~records[:, 1 + device.width : 1 + self._room].any(axis=1)
        return np.asarray(sound)

    def probabilities(self, value: Any, **given: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a string true: private, and for very few reports.

        Parameters
        ----------
        value : str or bytes
        **given
            What `part` and `whole` take besides a value, such as a ``seed``.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        rows, (one, all_of_it) = self.strings.symbols([value]), self.chances
        whole = _distribution(self.whole, int(self.whole_codes(rows)[0]), given)
        distribution: dict[bytes, Fraction] = {}
        for question in range(self.questions):
            own = _distribution(self.part, int(self.part_codes(rows, np.array([question]))[0]), given)
            if self.weight:
                distribution |= {bytes([question]) + record: one * mass for record, mass in own.items()}
                continue
            both = product(own.items(), whole.items())
            distribution |= {
                bytes([question]) + first + second: one * p * q for (first, p), (second, q) in both
            }
        if self.weight:
            distribution |= {
                bytes([self.questions]) + record: all_of_it * mass for record, mass in whole.items()
            }
        records = np.zeros((len(distribution), self.width), np.uint8)
        for row, record in zip(records, distribution, strict=True):
            row[: len(record)] = list(record)
        self.layout.stamp(records)
        return {row.tobytes(): mass for row, mass in zip(records, distribution.values(), strict=True)}


def cut_points(name: str, given: Any, length: int) -> tuple[int, ...]:
    """Return whole numbers that rise from at least 1 to less than a string's length.

    Parameters
    ----------
    name : str
        What errors call them.
    given : sequence of int
    length : int
        Of a string.

    Returns
    -------
    tuple of int
    """
    rule = f"be rising whole numbers from 1 to {length - 1}"
    if not isinstance(given, tuple | list) or not given:
        _check.refuse(name, rule, given, "pass lengths of prefixes, or None")
    points = tuple(_check.integer(name, point, minimum=1) for point in given)
    if sorted(set(points)) != list(points) or points[-1] >= length:
        _check.refuse(name, rule, points, "pass lengths of prefixes, or None")
    return points


def _distribution(device: Any, code: int, given: dict[str, Any]) -> dict[bytes, Fraction]:
    distribution: dict[bytes, Fraction] = device.probabilities(code, **given)
    return distribution


def _half(epsilon: float) -> float:
    """Return the largest float of which two add up to at most epsilon: halves are exact."""
    half = epsilon / 2
    return half if Fraction(half) * 2 <= Fraction(epsilon) else math.nextafter(half, 0.0)
