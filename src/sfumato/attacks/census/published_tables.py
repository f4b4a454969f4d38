"""What a statistical office publishes of a block: counts, means and medians, as rows of a program."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.attacks.census.person_types import Person, PersonTypes, Where

__all__ = ["PublishedCounts", "PublishedMean", "PublishedMedian", "PublishedTable", "TableRows"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows over person types and some binary variables of their own.

    Parameters
    ----------
    rows : list of places and coefficients
        A place from the number of types on is a binary variable's.
    lower, upper : list of float
    binaries : int
    noise_scale : float
        Zero for rows that hold; otherwise the scale of the noise in ``lower``, which is ``upper``.
    """

    rows: list[tuple[NDArray[np.int64], Floats]]
    lower: list[float]
    upper: list[float]
    binaries: int = 0
    noise_scale: float = 0.0


class PublishedTable(ABC):
    """A published table; its name is what an error says of it."""

    __slots__ = ()

    name: str

    @abstractmethod
    def rows(self, types: PersonTypes) -> TableRows:
        """Return what the table says of how many persons there are of each type.

        Parameters
        ----------
        types : PersonTypes

        Returns
        -------
        TableRows
        """


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedCounts(PublishedTable):
    """Counts of persons, by some attributes.

    Parameters
    ----------
    name : str
    by : sequence of str, or mapping of str to groups
        The table's axes; groups are values, or lists of values for bins. Empty for a total.
    counts : array with an axis for each of ``by``
        NaN where a count was suppressed.
    where : mapping of str to a value or several
        Whom the table counts; everyone by default.
    suppressed : pair of int
        The least and greatest count that a suppressed cell may have.
    margin : float
        Counts may be wrong by this much: the half width of an interval around noise.
    noise_scale : float
        If positive, counts have noise of this scale and do not bind: the reconstruction is the one with the
        least sum of absolute errors over scales, which is the most likely one under Laplace noise.

    Examples
    --------
    >>> PublishedCounts(name="sex", by=("sex",), counts=[4, 3]).counts.tolist()
    [4.0, 3.0]
    >>> ages = {"age": [range(18), range(18, 100)]}
    >>> PublishedCounts(name="age", by=ages, counts=[3, float("nan")], suppressed=(1, 4)).suppressed
    (1, 4)
    """

    name: str
    by: Sequence[str] | Mapping[str, Sequence[Any]]
    counts: Any
    where: Where = field(default_factory=dict)
    suppressed: tuple[int, int] | None = None
    margin: float = 0.0
    noise_scale: float = 0.0

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts, dtype=np.float64)
        _check.non_negative("margin", self.margin)
        _check.non_negative("noise_scale", self.noise_scale)
        if counts.ndim != len(self.by):
            _check.refuse(
                f"counts of {self.name}",
                f"have {len(self.by)} axes, as by has",
                counts.ndim,
                "pass an array with an axis for each",
            )
        if np.isinf(counts).any():
            _check.refuse_state(
                f"counts of {self.name}", "be finite", "some are infinite", "pass NaN for a suppressed count"
            )
        if np.isnan(counts).any() and (self.suppressed is None or self.noise_scale):
            remedy = "pass suppressed=(least, greatest)"
            _check.refuse_state(f"counts of {self.name}", "be numbers", "some are NaN", remedy)
        if self.suppressed is not None and not 0 <= self.suppressed[0] <= self.suppressed[1]:
            _check.refuse(
                "suppressed", "be a least and a greatest count", self.suppressed, "pass a pair such as (1, 4)"
            )
        object.__setattr__(self, "counts", counts)

    @classmethod
    def of(
        cls,
        persons: Sequence[Person],
        types: PersonTypes,
        *,
        name: str,
        by: Sequence[str] | Mapping[str, Sequence[Any]],
        where: Where | None = None,
    ) -> PublishedCounts:
        """Return the table that an office would publish of some persons.

        Parameters
        ----------
        persons : sequence of tuples
        types : PersonTypes
        name, by, where
            Of the table.

        Returns
        -------
        PublishedCounts

        Examples
        --------
        >>> types = PersonTypes({"age": range(100), "sex": ("F", "M")})
        >>> PublishedCounts.of([(30, "F"), (40, "F")], types, name="P12", by=("sex",)).counts.tolist()
        [2.0, 0.0]
        """
        where = where or {}
        cell, shape = _cells(types, by, where)
        inside = cell >= 0
        weights = types.counts(persons)[inside]
        counts = np.bincount(cell[inside], weights=weights, minlength=math.prod(shape)).reshape(shape)
        return cls(name=name, by=by, counts=counts, where=where)

    def rows(self, types: PersonTypes) -> TableRows:
        """Return a row for each cell.

        Parameters
        ----------
        types : PersonTypes

        Returns
        -------
        TableRows
        """
        cell, shape = _cells(types, self.by, self.where)
        if shape != self.counts.shape:
            _check.refuse(
                f"counts of {self.name}",
                f"have the shape {shape} of its axes",
                self.counts.shape,
                "pass the counts in the order of its values",
            )
        order = np.argsort(cell, kind="stable")
        ends = np.searchsorted(cell[order], np.arange(math.prod(shape) + 1))
        rows, lower, upper = [], [], []
        least, greatest = self.suppressed or (0, 0)
        for number, count in enumerate(self.counts.ravel().tolist()):
            places = order[ends[number] : ends[number + 1]]
            rows.append((places, np.ones(len(places))))
            if math.isnan(count):
                lower.append(float(least))
                upper.append(float(greatest))
            elif self.noise_scale:
                lower.append(count)
                upper.append(count)
            else:
                lower.append(max(0.0, math.ceil(count - self.margin)))
                upper.append(float(math.floor(count + self.margin)))
        return TableRows(rows, lower, upper, noise_scale=self.noise_scale)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedMean(PublishedTable):
    """The mean of a numeric attribute.

    Parameters
    ----------
    name : str
    attribute : str
    value : float
    decimals : int, optional
        To how many decimals the mean was rounded; it is exact if left out.
    where : mapping of str to a value or several
        Whose mean it is; everyone's by default.

    Examples
    --------
    >>> PublishedMean(name="mean age", attribute="age", value=36.67, decimals=2).value
    36.67
    """

    name: str
    attribute: str
    value: float
    decimals: int | None = None
    where: Where = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check.finite("value", self.value)
        if self.decimals is not None:
            _check.integer("decimals", self.decimals)

    def rows(self, types: PersonTypes) -> TableRows:
        """Return that the sum of differences from the mean is zero, or as small as rounding makes it.

        Parameters
        ----------
        types : PersonTypes

        Returns
        -------
        TableRows
        """
        places = np.flatnonzero(types.mask(self.where))
        numbers = types.numbers(self.attribute)[places]
        value = Fraction(str(self.value))
        half = Fraction(0) if self.decimals is None else Fraction(1, 2 * 10**self.decimals)
        rows, lower, upper = [], [], []
        for end, sign in ((value - half, 1), (value + half, -1)):
            # multiplied by the denominator, so that coefficients of whole attributes are whole
            coefficients = sign * (numbers * end.denominator - end.numerator)
            rows.append((places, coefficients))
            lower.append(0.0)
            upper.append(math.inf)
        return TableRows(rows, lower, upper)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedMedian(PublishedTable):
    """The median of a numeric attribute, of a known number of persons.

    Parameters
    ----------
    name : str
    attribute : str
    value : float
        Of an even number of persons the middle of the two in the middle.
    count : int
        Whose median it is: how many.
    where : mapping of str to a value or several
        Who; everyone by default.

    Examples
    --------
    >>> PublishedMedian(name="median age", attribute="age", value=33.5, count=4).count
    4
    """

    name: str
    attribute: str
    value: float
    count: int
    where: Where = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check.finite("value", self.value)
        _check.integer("count", self.count, minimum=1)

    def rows(self, types: PersonTypes) -> TableRows:
        """Return rows that place the person in the middle, or one of the pairs that may be there.

        Parameters
        ----------
        types : PersonTypes

        Returns
        -------
        TableRows
        """
        inside = types.mask(self.where)
        numbers = types.numbers(self.attribute)
        half = self.count // 2

        def below(value: float, *, equal: bool) -> NDArray[np.int64]:
            return np.flatnonzero(inside & ((numbers <= value) if equal else (numbers < value)))

        everyone = np.flatnonzero(inside)
        rows = [(everyone, np.ones(len(everyone)))]
        lower, upper = [float(self.count)], [float(self.count)]
        if self.count % 2:
            for equal, low, high in ((True, half + 1.0, math.inf), (False, -math.inf, float(half))):
                places = below(self.value, equal=equal)
                rows.append((places, np.ones(len(places))))
                lower.append(low)
                upper.append(high)
            return TableRows(rows, lower, upper)
        known = set(np.unique(numbers[inside]).tolist())
        pairs = [value for value in sorted(known) if value <= self.value and 2 * self.value - value in known]
        binaries = len(types) + np.arange(len(pairs))
        firsts = np.array(pairs)
        # A pair chosen by its binary variable has the half-th smallest and the next one: at least `rank`
        # persons up to it, less below it. A row stands for many pairs, which is tighter than a row for each.
        for values, rank in ((firsts, half), (2 * self.value - firsts, half + 1)):
            for value in values.tolist():
                enough, reached = below(value, equal=True), binaries[values <= value]
                rows.append(_weighted(enough, reached, -float(rank)))
                lower.append(0.0)
                upper.append(math.inf)
                less, above = below(value, equal=False), binaries[values >= value]
                rows.append(_weighted(less, above, float(self.count - rank + 1)))
                lower.append(-math.inf)
                upper.append(float(self.count))
        rows.append((binaries, np.ones(len(binaries))))
        lower.append(1.0)
        upper.append(1.0)
        return TableRows(rows, lower, upper, binaries=len(binaries))


def _weighted(
    places: NDArray[np.int64], binaries: NDArray[np.int64], weight: float
) -> tuple[NDArray[np.int64], Floats]:
    """Return a row of ones at some types, and of a weight at some binary variables."""
    return np.concatenate([places, binaries]), np.repeat([1.0, weight], [len(places), len(binaries)])


def _cells(
    types: PersonTypes, by: Sequence[str] | Mapping[str, Sequence[Any]], where: Where
) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Return the cell of each type in a table, or -1, and the table's shape."""
    groups = by if isinstance(by, Mapping) else dict.fromkeys(by)
    cell = np.zeros(len(types), dtype=np.int64)
    inside = types.mask(where)
    shape = []
    for name, parts in groups.items():
        bins = types.bins(name, parts)
        size = len(types.attributes[name]) if parts is None else len(parts)
        inside &= bins >= 0
        cell = cell * size + bins
        shape.append(size)
    return np.where(inside, cell, -1), tuple(shape)
