"""Domains that are bought: categories and edges that nobody knows beforehand, found with noise."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import _check
from sfumato.frames.arrow import as_arrow
from sfumato.mechanisms.base.calibration import PrivacyTarget
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.selection.stability_histogram import StabilityHistogram
from sfumato.mechanisms.statistics.quantile.quantiles import Quantiles
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.privacy.neighboring import Neighboring
from sfumato.synthetic.domain.attributes import Attribute, Categorical, Ordered, attribute_of, check_flags
from sfumato.synthetic.domain.column_types import is_text, plain_column, unstorable
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.domain.domain_release import DomainRelease
from sfumato.synthetic.domain.edges import MOST_CELLS

__all__ = ["BoughtCategories", "BoughtDomain", "BoughtEdges", "ColumnInputs", "declarable"]

_MOST_BINS: Final = 1 << 10
_DECLARE: Final = "declare its cells, or pass BoughtCategories() or BoughtEdges(lower, upper, bins=16)"
_PLAIN: Final = "use a TableDomain where all columns are declared"
_EPOCH: Final = dt.date(1970, 1, 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoughtCategories:
    """A column of texts or whole numbers whose values are to be found.

    Parameters
    ----------
    missing, other : bool
        As in `Categorical`, of what is bought. Rare values are not found, so they are counted as others
        unless that is False.

    Examples
    --------
    >>> BoughtCategories(missing=True)
    BoughtCategories(missing=True, other=True)
    """

    missing: bool = False
    other: bool = True

    def __post_init__(self) -> None:
        check_flags(missing=self.missing, other=self.other)

    def described(self) -> dict[str, Any]:
        """Return what a document says of it.

        Returns
        -------
        dict
        """
        return {"bought": "categories", "missing": self.missing, "other": self.other}

    def attribute(self, found: Mapping[Any, int]) -> Categorical | None:
        """Return the categories that were found, or None if there is none.

        Parameters
        ----------
        found : mapping of str or int to int
            Released counts, the largest first.

        Returns
        -------
        Categorical or None
            The text "(other)" is one of the others, where these are a cell, and no value of its own.
        """
        values = [value for value in found if not (self.other and value == "(other)")]
        return Categorical(sorted(values[:MOST_CELLS]), self.missing, self.other) if values else None


@final
@dataclass(frozen=True, slots=True)
class BoughtEdges:
    """A column of numbers or dates whose bins are to hold about as many rows each.

    Parameters
    ----------
    lower, upper : int, float or datetime.date
        The ends of the scale, which are public. Whole numbers have whole edges.
    bins : int
        How many bins at most: edges that are found twice are there once.
    missing : bool
        As in `Ordered`.

    Raises
    ------
    ParameterError
        If the ends are not of one kind, or do not rise.

    Examples
    --------
    >>> BoughtEdges(0, 100, bins=4).lower
    0
    """

    lower: Any
    upper: Any
    bins: int
    missing: bool = False

    def __post_init__(self) -> None:
        check_flags(missing=self.missing)
        object.__setattr__(self, "bins", _check.integer("bins", self.bins, minimum=2))
        if self.bins > _MOST_BINS:
            _check.refuse("bins", f"be at most {_MOST_BINS}", self.bins, "take fewer, or declare them")
        if self._dated != isinstance(self.upper, dt.date):
            _check.refuse_type(
                "upper", "be a date where lower is, and else a number", self.upper, "pass two of one kind"
            )
        Ordered(edges=[self.lower, self.upper])
        for name in ("lower", "upper") if not self._dated else ():  # plain numbers, as documents write them
            end = getattr(self, name)
            object.__setattr__(self, name, int(end) if isinstance(end, Integral) else float(end))

    @property
    def _dated(self) -> bool:
        return isinstance(self.lower, dt.date)

    def described(self) -> dict[str, Any]:
        """Return what a document says of it.

        Returns
        -------
        dict
        """
        ends = [each.isoformat() if self._dated else each for each in (self.lower, self.upper)]
        return {"bought": "edges", "ends": ends, "bins": self.bins, "missing": self.missing}

    def quantiles(self, epsilon: float) -> Quantiles:
        """Return the mechanism that finds the inner edges; dates are days since 1970.

        Parameters
        ----------
        epsilon : float

        Returns
        -------
        Quantiles
        """
        ends = self.lower, self.upper
        if self._dated:
            ends = (self.lower - _EPOCH).days, (self.upper - _EPOCH).days
        inner = [place / self.bins for place in range(1, self.bins)]
        return Quantiles(quantiles=inner, bounds=ends, epsilon=epsilon)

    def attribute(self, found: Any) -> Ordered:
        """Return the bins between edges that were found.

        Parameters
        ----------
        found : sequence of float

        Returns
        -------
        Ordered
        """
        inner: Any = np.asarray(found).tolist()
        if self._dated:
            inner = [_EPOCH + dt.timedelta(days=int(days)) for days in inner]
        rising = sorted({each for each in inner if self.lower < each < self.upper})
        return Ordered(edges=[self.lower, *rising, self.upper], missing=self.missing)


Column: TypeAlias = BoughtCategories | BoughtEdges | Attribute


@final
@dataclass(frozen=True, slots=True)
class ColumnInputs:
    """What is known of columns that are bought, counted by an engine: raw data.

    Parameters
    ----------
    values : mapping of str to dict or float64 array
        Of a column of categories the rows by value, of one of edges the rows' numbers; of each unit one row
        at most.
    """

    values: Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True)
class BoughtDomain(Mechanism):
    r"""A domain of which some columns' categories and edges are found in the data, for a part of the budget.

    Parameters
    ----------
    columns : mapping of str to BoughtCategories, BoughtEdges, Categorical, Ordered or list
        Those that are declared cost nothing.
    epsilon : float
        Of all that is bought together; each column gets an equal part.
    delta : float
        Of all categories together, of which there may be none at delta 0.

    Raises
    ------
    ParameterError
        If nothing is to be bought, or categories are to be bought at delta 0.

    Notes
    -----
    Guarantee: under adding or removing a row, the composition of one `StabilityHistogram` for each column of
    categories and of `Quantiles` for each of edges, so (epsilon, delta)-differential privacy. Conditions: a
    person has at most one row, and what is declared does not come from the data. A row is one count of one
    value of a column, or none (NULL, or a text that no column can declare), and one number of a column of
    edges, or none (NULL and NaN); infinities are counted at the ends.

    References
    ----------
    Bun, Nissim, Stemmer (2016), "Simultaneous private learning of multiple concepts", stability-based
    histograms. Kaplan, Schnapp, Stemmer, "Differentially private approximate quantiles" (ICML 2022).

    Examples
    --------
    >>> import pyarrow as pa
    >>> columns = {"city": BoughtCategories(), "age": BoughtEdges(0, 100, bins=4), "sex": ["f", "m"]}
    >>> mechanism = BoughtDomain(columns, epsilon=1.0, delta=1e-6)
    >>> people = {"city": ["Rome", "Oslo"] * 500, "age": range(1000), "sex": ["f"] * 1000}
    >>> released = mechanism.release(pa.table(people), rng=1)
    >>> released.domain["city"].labels
    ('Oslo', 'Rome', '(other)')
    >>> released.loss == mechanism.privacy_loss
    True
    """

    columns: Mapping[str, Any]
    epsilon: float
    delta: float = 0.0
    _parts: Mapping[str, StabilityHistogram | Quantiles] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given: object = self.columns
        if not isinstance(given, Mapping) or not given:
            _check.refuse_type("columns", "be a mapping of columns to cells", given, _DECLARE)
        if not all(isinstance(name, str) for name in self.columns):
            _check.refuse_type("columns", "have texts as names", given, "rename the column")
        columns = {name: _column(name, each) for name, each in self.columns.items()}
        bought = [name for name, each in columns.items() if isinstance(each, BoughtCategories | BoughtEdges)]
        if not bought:
            _check.refuse_state("columns", "have one to be bought", "all are declared", _PLAIN)
        lists = sum(isinstance(each, BoughtCategories) for each in columns.values())
        epsilon = _check.positive("epsilon", self.epsilon)
        if lists:
            request = PrivacyTarget.approximate(epsilon, self.delta, "declare the categories")
            epsilon = request.epsilon
        epsilon = _part_of(epsilon, len(bought))
        parts: dict[str, StabilityHistogram | Quantiles] = {}
        for name in bought:
            column = columns[name]
            if isinstance(column, BoughtEdges):
                parts[name] = column.quantiles(epsilon)
            else:
                parts[name] = StabilityHistogram.calibrated(
                    epsilon=epsilon, delta=_part_of(self.delta, lists)
                )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "_parts", parts)

    @property
    def bought(self) -> tuple[str, ...]:
        """The columns that are to be bought."""
        return tuple(self._parts)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return compose(part.privacy_loss for part in self._parts.values())

    def described(self) -> list[list[Any]]:
        """Return the columns as JSON, in order: name, and what it is or how it is to be bought.

        Returns
        -------
        list
        """
        return [[name, each.described()] for name, each in self.columns.items()]

    @property
    def neighboring(self) -> Neighboring:
        """Who is protected: one row, added or removed."""
        return Neighboring.ADD_REMOVE

    def release(self, value: Any, rng: Rng = None) -> DomainRelease:
        """Find categories and edges.

        Parameters
        ----------
        value : frame or ColumnInputs
            Of Arrow, pandas, Polars or another library, or what an engine counted; private. Columns that are
            declared are not read.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        DomainRelease

        Raises
        ------
        ParameterError
            If a column is not there once, or is of another type, whatever is in it.
        """
        source = random_source(rng)
        inputs = value.values if isinstance(value, ColumnInputs) else self.inputs(value)
        found: dict[str, Attribute] = {}
        for name, column in self.columns.items():
            if name not in self._parts:
                found[name] = column
                continue
            released = self._parts[name].release(inputs[name], source).value
            made = column.attribute(released)
            if made is not None:
                found[name] = made
        absent = tuple(name for name in self.columns if name not in found)
        domain = TableDomain(found) if found else None
        return self._release_as(DomainRelease, domain, source, absent=absent)

    def inputs(self, value: Any) -> dict[str, Any]:
        """Return what the mechanism of each column that is bought takes: raw data, for tests and audits.

        Parameters
        ----------
        value : frame
            Private.

        Returns
        -------
        dict of str to dict or array
            Counts by value of categories, and numbers of edges.
        """
        table, made = as_arrow("table", value), {}
        for name in self._parts:
            if table.schema.names.count(name) != 1:
                found = f"{name!r} is there {table.schema.names.count(name)} times"
                _check.refuse_state("table", "have each column once", found, "rename its columns")
            column, wanted = plain_column(pa.chunked_array(table[name])), self.columns[name]
            made[name] = (
                _numbers(name, column, wanted) if isinstance(wanted, BoughtEdges) else _counts(name, column)
            )
        return made


def _column(name: str, given: object) -> Column:
    if isinstance(given, BoughtCategories | BoughtEdges):
        return given
    return attribute_of(name, given)


def _part_of(whole: float, parts: int) -> float:
    """Return an equal part, of which so many add up to no more than the whole."""
    return whole if parts == 1 else math.nextafter(whole / parts, 0.0)


def _counts(name: str, column: pa.ChunkedArray) -> dict[Any, int]:
    """Return how many rows have each value; texts that cannot be declared are left out one by one."""
    if not (is_text(column.type) or pa.types.is_integer(column.type)):
        rule = "be of texts or whole numbers, where its categories are bought"
        _check.refuse_state(f"column {name!r}", rule, f"it is of {column.type}", "cast it, or declare it")
    counted = pc.value_counts(column.drop_null())
    values, counts = counted.field("values").to_pylist(), counted.field("counts").to_pylist()
    return declarable(dict(zip(values, counts, strict=True)))


def declarable(counts: Mapping[Any, int]) -> dict[Any, int]:
    """Return the counts of values that a column of a domain can declare; private."""
    return {value: n for value, n in counts.items() if not (isinstance(value, str) and unstorable(value))}


def _numbers(name: str, column: pa.ChunkedArray, wanted: BoughtEdges) -> NDArray[np.float64]:
    """Return the numbers of the rows that have one; `Quantiles` clamps them to the ends."""
    ends = Ordered(edges=[wanted.lower, wanted.upper])
    ends.require(name, column.type)
    values = ends.as_numbers(column)
    return values[~np.isnan(values)]
