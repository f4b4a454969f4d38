"""The client halves of the protocols that find strings by their fragments, each with a hash of the whole."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.strings import Symbols, hashed_rows
from sfumato.local.device.frequency.count_mean_sketch import (
    CountMeanSketchRandomizer,
    HadamardCountMeanSketchRandomizer,
)
from sfumato.local.device.frequency.hadamard import OneBitHadamardRandomizer
from sfumato.local.device.strings.randomizer import FINGERPRINTS, StringsRandomizer

__all__ = ["BitstogramRandomizer", "FragmentRandomizer", "SequenceFragmentPuzzleRandomizer"]

_MAX_CODES: Final = 1 << 22
_MAX_TABLES: Final = 16
_SKETCHES: Final[dict[str, Any]] = {
    "count-mean-sketch": CountMeanSketchRandomizer,
    "hadamard-count-mean-sketch": HadamardCountMeanSketchRandomizer,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentRandomizer(StringsRandomizer):
    """A client half that reports a fragment from a position drawn by chance, with the string's bucket.

    Parameters
    ----------
    epsilon, strings, weight, key
        See `StringsRandomizer`.
    fragment : int
        Characters of a fragment; the last one may have fewer.
    buckets : int
        How many there are, a power of two from 2 to 2^20: public hashes of the whole string. Together with
        a fragment they have at most 2^22 codes.
    """

    chosen: ClassVar[tuple[str, ...]] = (*StringsRandomizer.chosen, "fragment", "buckets")

    fragment: int = 2
    buckets: int = 256

    def _arrange(self) -> None:
        fragment = _check.integer("fragment", self.fragment, minimum=1)
        if fragment > self.strings.length:
            _check.refuse(
                "fragment",
                f"be at most {self.strings.length}, the strings' length",
                fragment,
                "take shorter ones",
            )
        buckets = _check.integer("buckets", self.buckets, minimum=2)
        if buckets & (buckets - 1) or buckets > 1 << 20:
            _check.refuse("buckets", "be a power of two from 2 to 2**20", buckets, "take 256, as is usual")
        if buckets * self.strings.base**fragment > _MAX_CODES:
            _check.refuse(
                "fragment",
                f"make at most 2**22 codes with {buckets} buckets",
                fragment,
                "take shorter fragments, or fewer buckets",
            )
        self._set(fragment=fragment, buckets=buckets)

    @property
    def starts(self) -> range:
        """Where fragments begin."""
        return range(0, self.strings.length, self.fragment)

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many hash functions there are to put strings into buckets."""

    @property
    def questions(self) -> int:
        """One for each position, for each hash function."""
        return len(self.starts) * self.rows

    @property
    def codes(self) -> Domain:
        """What `part` reports: bucket and fragment."""
        return Domain(range(self.buckets * self.strings.base**self.fragment))

    def buckets_of(self, rows: Symbols, row: int) -> NDArray[np.int64]:
        """Return the buckets that a hash function puts strings into.

        Parameters
        ----------
        rows : uint16 array, shape (strings, length)
        row : int
            Which hash function, below `rows`.

        Returns
        -------
        int64 array, shape (strings,)
        """
        return hashed_rows(rows, self.key, f"bucket {row}", self.buckets.bit_length() - 1)

    def part_codes(self, rows: Symbols, asked: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the codes of buckets and fragments.

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
        table, positions = np.divmod(asked, len(self.starts))
        found = np.empty(len(rows), np.int64)
        for row in range(self.rows):
            own = np.flatnonzero(table == row)
            found[own] = self.buckets_of(rows[own], row) * self.strings.base**self.fragment
        for at, start in enumerate(self.starts):
            own = np.flatnonzero(positions == at)
            found[own] += self.strings.numbers(rows[own, start : start + self.fragment])
        return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BitstogramRandomizer(FragmentRandomizer):
    r"""A fragment and the string's bucket by one sign of a Hadamard matrix; the whole by one of a sketch.

    Parameters
    ----------
    epsilon, strings, weight, key, fragment, buckets
        See `FragmentRandomizer`. With the alphabet ``"01"`` and fragments of 1 it is the paper's protocol,
        but for the end of a string.
    tables : int
        How many hash functions there are to put strings into buckets, up to 16.
    size, hashes : int
        Of the sketch of whole strings; see `HadamardCountMeanSketchRandomizer`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one; see `StringsRandomizer`,
    `OneBitHadamardRandomizer` and `HadamardCountMeanSketchRandomizer`.

    References
    ----------
    Bassily, Nissim, Stemmer, Thakurta (2017), "Practical locally private heavy hitters".

    Examples
    --------
    >>> from sfumato.local.device import Strings
    >>> device = BitstogramRandomizer(epsilon=1.0, strings=Strings(length=8))
    >>> device.questions, device.width
    (4, 8)
    """

    wire_name: ClassVar[str] = "bitstogram"

    chosen: ClassVar[tuple[str, ...]] = (*FragmentRandomizer.chosen, "tables", "size", "hashes")

    buckets: int = 1024
    tables: int = 1
    size: int = 1024
    hashes: int = 256

    @property
    def rows(self) -> int:
        """The tables, which are checked here."""
        tables = _check.integer("tables", self.tables, minimum=1)
        if tables > _MAX_TABLES:
            _check.refuse("tables", f"be at most {_MAX_TABLES}", tables, "take one, as is usual")
        return tables

    def _part(self, epsilon: float) -> OneBitHadamardRandomizer:
        return OneBitHadamardRandomizer(epsilon=epsilon, domain=self.codes)

    def _whole(self, epsilon: float) -> HadamardCountMeanSketchRandomizer:
        return HadamardCountMeanSketchRandomizer(
            epsilon=epsilon, domain=FINGERPRINTS, size=self.size, hashes=self.hashes, key=self.key
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceFragmentPuzzleRandomizer(FragmentRandomizer):
    r"""A fragment with a piece of the puzzle, the string's hash of 8 bits, and the whole, each by a sketch.

    Parameters
    ----------
    epsilon, strings, weight, key, fragment, buckets
        See `FragmentRandomizer`. The published form is the default: everybody reports a fragment of two
        characters and the whole string (a weight of 0), with half of epsilon each.
    sketch : str
        ``"count-mean-sketch"`` or ``"hadamard-count-mean-sketch"``, with shorter records.
    size, hashes : int
        Of both sketches.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one; see `StringsRandomizer` and
    `sfumato.local.device.CountMeanSketchRandomizer`.

    References
    ----------
    Apple Differential Privacy Team (2017), "Learning with privacy at scale": "sequence fragment puzzle".

    Examples
    --------
    >>> from sfumato.local.device import Strings
    >>> SequenceFragmentPuzzleRandomizer(epsilon=4.0, strings=Strings(length=8)).width
    263
    """

    wire_name: ClassVar[str] = "sequence-fragment-puzzle"

    chosen: ClassVar[tuple[str, ...]] = (*FragmentRandomizer.chosen, "sketch", "size", "hashes")

    weight: int = 0
    sketch: str = "count-mean-sketch"
    size: int = 1024
    hashes: int = 128

    @property
    def rows(self) -> int:
        """The one hash of 8 bits, or as many as the buckets have."""
        return 1

    def _sketch(self, epsilon: float, domain: Domain) -> CategoricalRandomizer:
        kind: object = self.sketch
        if not isinstance(kind, str) or kind not in _SKETCHES:
            _check.refuse("sketch", f"be one of {', '.join(_SKETCHES)}", kind, "take the second one")
        made: CategoricalRandomizer = _SKETCHES[kind](
            epsilon=epsilon, domain=domain, size=self.size, hashes=self.hashes, key=self.key
        )
        return made

    def _part(self, epsilon: float) -> CategoricalRandomizer:
        return self._sketch(epsilon, self.codes)

    def _whole(self, epsilon: float) -> CategoricalRandomizer:
        return self._sketch(epsilon, FINGERPRINTS)
