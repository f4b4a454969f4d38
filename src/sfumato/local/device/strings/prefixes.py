"""The client halves of the protocols that find strings by their prefixes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.domains.strings import Strings, Symbols, hashed_rows
from sfumato.local.device.frequency.count_mean_sketch import HadamardCountMeanSketchRandomizer
from sfumato.local.device.frequency.local_hashing import OptimalLocalHashingRandomizer
from sfumato.local.device.strings.randomizer import FINGERPRINTS, StringsRandomizer, cut_points

__all__ = ["PrefixExtendingRandomizer", "PrefixRandomizer", "TreeHistRandomizer"]

_SHORTEST: Final = 2
_FIRST: Final = 1 << 14
_KEPT: Final = 64
"""Number of selected prefixes that levels are chosen for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixRandomizer(StringsRandomizer):
    """A client half that reports a prefix of a length drawn by chance, or the whole string.

    Parameters
    ----------
    epsilon, strings, weight, key
        See `StringsRandomizer`; strings of at least 2 characters.
    levels : tuple of int, optional
        The lengths of the prefixes, rising, all shorter than a whole string. None chooses few of them, such
        that the server extends 64 prefixes to at most 2^14 from one to the next, or by one character.
    """

    chosen: ClassVar[tuple[str, ...]] = (*StringsRandomizer.chosen, "levels")

    levels: tuple[int, ...] | None = None

    def _arrange(self) -> None:
        if self.strings.length < _SHORTEST:
            _check.refuse(
                "strings", f"have a length of at least {_SHORTEST}", self.strings.length, "raise it"
            )
        chosen = _levels(self.strings) if self.levels is None else self.levels
        self._set(levels=cut_points("levels", chosen, self.strings.length))

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of the prefixes."""
        return self.levels or ()

    @property
    def questions(self) -> int:
        """One a level."""
        return len(self.lengths)

    def part_codes(self, rows: Symbols, asked: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return fingerprints of prefixes: those of the strings that end where the prefixes do.

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
        ends = np.array(self.lengths)[asked]
        inside = np.arange(rows.shape[1]) < ends[:, None]
        return hashed_rows(np.where(inside, rows, np.uint16(0)), self.key, "whole")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixExtendingRandomizer(PrefixRandomizer):
    r"""A prefix by local hashing, for the prefix extending method ("PEM").

    Parameters
    ----------
    epsilon, strings, weight, key, levels
        See `PrefixRandomizer`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one; see `StringsRandomizer` and
    `OptimalLocalHashingRandomizer`.

    References
    ----------
    Wang, Li, Jha (2019), "Locally differentially private heavy hitter identification".

    Examples
    --------
    >>> device = PrefixExtendingRandomizer(epsilon=1.0, strings=Strings(length=8))
    >>> device.levels, device.width
    ((2, 3, 4, 5, 6, 7), 10)
    """

    wire_name: ClassVar[str] = "prefix-extending"

    def _part(self, epsilon: float) -> OptimalLocalHashingRandomizer:
        return OptimalLocalHashingRandomizer(epsilon=epsilon, domain=FINGERPRINTS)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeHistRandomizer(PrefixRandomizer):
    r"""A prefix by one sign of a Hadamard sketch.

    Parameters
    ----------
    epsilon, strings, weight, key, levels
        See `PrefixRandomizer`.
    size, hashes : int
        Of the sketches; see `HadamardCountMeanSketchRandomizer`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one; see `StringsRandomizer` and
    `HadamardCountMeanSketchRandomizer`.

    References
    ----------
    Bassily, Nissim, Stemmer, Thakurta (2017), "Practical locally private heavy hitters".

    Examples
    --------
    >>> TreeHistRandomizer(epsilon=1.0, strings=Strings(length=8)).width
    8
    """

    wire_name: ClassVar[str] = "treehist"

    chosen: ClassVar[tuple[str, ...]] = (*PrefixRandomizer.chosen, "size", "hashes")

    size: int = 1024
    hashes: int = 256

    def _part(self, epsilon: float) -> HadamardCountMeanSketchRandomizer:
        return HadamardCountMeanSketchRandomizer(
            epsilon=epsilon, domain=FINGERPRINTS, size=self.size, hashes=self.hashes, key=self.key
        )


def _levels(strings: Strings) -> tuple[int, ...]:
    """Return the fewest levels whose extensions the server can go through quickly."""
    length = strings.length
    first = max([1, *(n for n in range(1, length) if strings.number_of_endings(n) <= _FIRST)])
    step = max([1, *(n for n in range(1, length) if _KEPT * strings.number_of_endings(n) <= _FIRST)])
    return (*range(first, length, step),)
