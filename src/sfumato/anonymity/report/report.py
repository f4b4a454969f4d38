"""The report of a table: each measure is computed when it is first asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import Format, canonical
from sfumato.anonymity.measures.beta_likeness import basic_beta, enhanced_beta
from sfumato.anonymity.measures.delta_disclosure import delta_disclosure
from sfumato.anonymity.measures.k_anonymity import alpha_anonymity, k_anonymity
from sfumato.anonymity.measures.l_diversity import distinct_values, entropy_values, recursive_ratios
from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts, sensitive_counts
from sfumato.anonymity.measures.t_closeness import (
    equal_distances,
    hierarchical_distances,
    ordered_distances,
)
from sfumato.anonymity.report.risks import Risks
from sfumato.anonymity.report.text import report_text
from sfumato.anonymity.table.columns import has_numbers
from sfumato.anonymity.table.grouping import EquivalenceClasses
from sfumato.anonymity.table.microdata import Microdata
from sfumato.privacy.interpretation.plotting import axes

__all__ = ["Distance", "Report"]

Distance: TypeAlias = Literal["equal", "ordered", "hierarchical"]

_FORMAT: Final = Format("sfumato.anonymity-report")
_PER_COLUMN: Final = (
    "distinct_l", "entropy_l", "recursive_c", "alpha", "t", "basic_beta", "enhanced_beta", "delta_disclosure"
)  # fmt: skip


@final
class Report:
    """Measures of a table, for the curator only: `check` makes it.

    No measure is a promise of differential privacy, and each is an answer about real rows.

    Parameters
    ----------
    data : Microdata
    levels : mapping of str to int
        At which level of its hierarchy each quasi-identifier is looked at.
    classes : EquivalenceClasses
        Of the rows that agree in all quasi-identifiers at these levels.
    population_sizes : int64 array, optional
        The people of the population in each class.
    population_size : int, optional
        The people of the population.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import anonymity
    >>> rows = {"zip": ["021", "021", "100", "100"], "job": ["cook", "nurse", "cook", "cook"]}
    >>> data = anonymity.Microdata(pa.table(rows), quasi_identifiers=["zip"], sensitive=["job"])
    >>> report = anonymity.check(data)
    >>> report.k, report.distinct_l, report.t
    (2, {'job': 1}, {'job': 0.25})
    """

    def __init__(
        self,
        data: Microdata,
        levels: Mapping[str, int],
        classes: EquivalenceClasses,
        *,
        population_sizes: NDArray[np.int64] | None = None,
        population_size: int | None = None,
    ) -> None:
        self._data = data
        self._levels = dict(levels)
        self._classes = classes
        self._population_sizes = population_sizes
        self._population_size = population_size
        self._counts: dict[str, SensitiveCounts] = {}

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._data.rows

    @property
    def classes(self) -> int:
        """The number of classes of rows that agree in all quasi-identifiers."""
        return len(self._classes.sizes)

    @property
    def class_sizes(self) -> NDArray[np.int64]:
        """The rows of each class."""
        return self._classes.sizes

    @property
    def levels(self) -> Mapping[str, int]:
        """At which level of its hierarchy each quasi-identifier is looked at."""
        return self._levels

    @cached_property
    def k(self) -> int:
        """The k of k-anonymity: the rows of the smallest class."""
        return k_anonymity(self._classes)

    @property
    def k_map(self) -> int | None:
        """The k of k-map: the fewest people of the population in a class; None without a population."""
        return None if self._population_sizes is None else int(self._population_sizes.min())

    @cached_property
    def risk(self) -> Risks:
        """The risk of re-identification."""
        return Risks(self._classes.sizes, self._population_sizes, self._population_size)

    @cached_property
    def alpha(self) -> Mapping[str, float]:
        """The alpha of (alpha, k)-anonymity, by sensitive column."""
        return {name: alpha_anonymity(self.counts(name)) for name in self._data.sensitive}

    @cached_property
    def distinct_l(self) -> Mapping[str, int]:
        """The l of distinct l-diversity, by sensitive column."""
        return {name: int(distinct_values(self.counts(name)).min()) for name in self._data.sensitive}

    @cached_property
    def entropy_l(self) -> Mapping[str, float]:
        """The l of entropy l-diversity, by sensitive column; it need not be an integer."""
        return {name: float(entropy_values(self.counts(name)).min()) for name in self._data.sensitive}

    @cached_property
    def recursive_c(self) -> Mapping[str, float]:
        """Recursive (c, l)-diversity holds for each c above it, by sensitive column, l that of `distinct_l`.

        Infinite where a class has a single value, so that it holds for no c and no l of at least 2.
        """
        return {
            name: self.recursive_diversity(name, max(2, least)) for name, least in self.distinct_l.items()
        }

    @cached_property
    def t(self) -> Mapping[str, float]:
        """The t of t-closeness, by sensitive column, with the distance of `t_distance`."""
        return {name: self.t_closeness(name) for name in self._data.sensitive}

    @property
    def t_distance(self) -> Mapping[str, Distance]:
        """The ground distance that `t` uses, by sensitive column.

        Hierarchical where a hierarchy was given, ordered for numbers, and equal for other values.
        """
        return {name: self._distance(name) for name in self._data.sensitive}

    @cached_property
    def basic_beta(self) -> Mapping[str, float]:
        """The beta of basic beta-likeness, by sensitive column."""
        return {name: basic_beta(self.counts(name)) for name in self._data.sensitive}

    @cached_property
    def enhanced_beta(self) -> Mapping[str, float]:
        """The beta of enhanced beta-likeness, by sensitive column; infinite where it holds for none."""
        return {name: enhanced_beta(self.counts(name)) for name in self._data.sensitive}

    @cached_property
    def delta_disclosure(self) -> Mapping[str, float]:
        """The delta of delta-disclosure privacy, by sensitive column.

        Infinite where a class lacks a value that others have.
        """
        return {name: delta_disclosure(self.counts(name)) for name in self._data.sensitive}

    def recursive_diversity(self, column: str, l: int) -> float:  # noqa: E741 - the paper's name
        """Return the number above which every c makes the table recursively (c, l)-diverse.

        Parameters
        ----------
        column : str
            A sensitive column.
        l : int
            At least 2.

        Returns
        -------
        float
            Infinite where a class has fewer than l values.
        """
        _check.integer("l", l, minimum=2)
        return float(recursive_ratios(self.counts(column), l).max())

    def t_closeness(self, column: str, distance: Distance | None = None) -> float:
        """Return the t of t-closeness with a distance of one's choice.

        Parameters
        ----------
        column : str
            A sensitive column.
        distance : {"equal", "ordered", "hierarchical"}, optional
            Between its values; that of `t_distance` by default.

        Returns
        -------
        float
        """
        counts = self.counts(column)
        distance = self._distance(column) if distance is None else distance
        if distance == "hierarchical":
            return float(hierarchical_distances(counts, self._data.hierarchies[column]).max())
        if distance not in {"equal", "ordered"}:
            _check.refuse("distance", "be equal, ordered or hierarchical", distance, "choose one of them")
        measure = equal_distances if distance == "equal" else ordered_distances
        return float(measure(counts).max())

    def counts(self, column: str) -> SensitiveCounts:
        """Return how often each value of a sensitive column occurs in each class.

        Parameters
        ----------
        column : str

        Returns
        -------
        SensitiveCounts
        """
        if column not in self._data.sensitive:
            _check.refuse("column", "be a sensitive column", column, "name it in sensitive")
        if column not in self._counts:
            encoded = self._data.columns[column]
            cardinality = encoded.hierarchy.cardinality(0)
            self._counts[column] = sensitive_counts(self._classes, encoded.codes, cardinality)
        return self._counts[column]

    def _distance(self, column: str) -> Distance:
        encoded = self._data.columns[column]
        if encoded.declared:
            return "hierarchical"
        return "ordered" if has_numbers(encoded.hierarchy.values) else "equal"

    def to_dict(self) -> dict[str, Any]:
        """Return all measures, by name.

        Returns
        -------
        dict of str to object
            Infinity is None.
        """
        measured = {name: getattr(self, name) for name in _PER_COLUMN}
        return {
            "rows": self.rows,
            "classes": self.classes,
            "levels": self._levels,
            "k": self.k,
            "k_map": self.k_map,
            "sensitive": {
                column: {
                    "t_distance": self.t_distance[column],
                    **{name: _finite(found[column]) for name, found in measured.items()},
                }
                for column in self._data.sensitive
            },
            "risk": self.risk.to_dict(),
        }

    def to_json(self) -> str:
        """Return all measures as one line of JSON.

        Returns
        -------
        str
            Of the format ``sfumato.anonymity-report``; infinity is null.
        """
        return canonical(_FORMAT.wrap(self.to_dict()))

    def plot(self, ax: Any = None) -> Any:
        """Draw what fraction of the rows lies in classes of at most so many rows.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        ax = axes(ax)
        size, many = np.unique(self._classes.sizes, return_counts=True)
        ax.step(size, np.cumsum(size * many) / self.rows, where="post")
        ax.set_xscale("log")
        ax.set_xlabel("rows of the class")
        ax.set_ylabel("fraction of rows in classes of at most this size")
        return ax

    def __str__(self) -> str:
        return report_text(self.to_dict())


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
