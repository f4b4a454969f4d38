"""The typed plan: what a query asks, with unit column, stability and bounds on every node.

The front end makes a :class:`Query` (user expressions only: no bounding can be written by the user, so
nothing can redefine a key behind it). The price step turns its aggregates into measures, exact integers per
unit and group (`sfumato.queries.plan.measure`), and an :class:`AggregationJob` for the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from sfumato.queries.plan.measure import Measure
from sfumato.queries.plan.nodes import Filter, Project, Relation, Scan
from sfumato.queries.plan.schema import Column, ColumnType, Expression, Named, Schema

__all__ = [
    "Aggregate",
    "AggregateKind",
    "AggregationJob",
    "Column",
    "ColumnType",
    "Expression",
    "Filter",
    "GroupSelection",
    "Measure",
    "Named",
    "Options",
    "OrderItem",
    "Project",
    "PublicGroups",
    "PublicRelation",
    "PublicTable",
    "PublicValues",
    "Query",
    "Relation",
    "Scan",
    "Schema",
]


class AggregateKind(Enum):
    """The aggregates of a private SELECT."""

    COUNT_ROWS = "COUNT(*)"
    COUNT_VALUES = "COUNT(x)"
    COUNT_UNITS = "COUNT(DISTINCT unit)"
    SUM = "SUM"
    AVG = "AVG"
    COUNT_DISTINCT = "COUNT(DISTINCT x)"
    QUANTILE = "PERCENTILE_CONT"
    QUANTILES = "APPROX_QUANTILES"
    VAR_POP = "VAR_POP"
    VAR_SAMP = "VAR_SAMP"
    STDDEV_POP = "STDDEV_POP"
    STDDEV_SAMP = "STDDEV_SAMP"
    COVAR_POP = "COVAR_POP"
    COVAR_SAMP = "COVAR_SAMP"
    CORR = "CORR"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of the SELECT list, as the analyst wrote it.

    ``group_bounds`` clamp what one unit adds to one group, ``row_bounds`` clamp one row's value; ``epsilon``
    is the part of the query's epsilon that was asked for. ``quantiles`` are the orders of those it estimates.
    ``second`` is the other column of what is read off two, with ``second_bounds`` for one row's value of it;
    ``report`` says that value and interval are wanted as one JSON text. ``interval_epsilon`` is the part of
    the query's epsilon that the interval of a quantile was given.
    """

    kind: AggregateKind
    name: str
    expression: Expression | None = None
    group_bounds: tuple[float, float] | None = None
    row_bounds: tuple[float, float] | None = None
    epsilon: float | None = None
    quantiles: tuple[float, ...] = ()
    second: Expression | None = None
    second_bounds: tuple[float, float] | None = None
    report: bool = False
    interval_epsilon: float | None = None

    @property
    def unbounded(self) -> bool:
        """Whether it needs bounds and states none, so that they are to be found."""
        if self.kind in (AggregateKind.SUM, AggregateKind.AVG):
            return self.group_bounds is None and self.row_bounds is None
        return not self.kind.name.startswith("COUNT") and self.row_bounds is None


class GroupSelection(Enum):
    """How the groups that are shown get chosen."""

    LAPLACE_THRESHOLD = "LAPLACE_THRESHOLD"
    GAUSSIAN_THRESHOLD = "GAUSSIAN_THRESHOLD"
    TRUNCATED_GEOMETRIC = "TRUNCATED_GEOMETRIC"
    PUBLIC_GROUPS = "PUBLIC_GROUPS"


@dataclass(frozen=True, slots=True)
class Options:
    """The OPTIONS(...) clause after the session's defaults were filled in and checked.

    ``max_groups_contributed`` is None only where a unit cannot be in two groups (no GROUP BY, or rows as
    units), or where ``max_rows_contributed`` bounds its rows over all groups instead.
    ``group_selection`` is None where the planner may choose the distribution; ``group_selection_epsilon`` is
    the part of epsilon that choosing the groups was given. ``min_privacy_units`` is the least number of units
    that a group must have, exactly, to be considered. ``truncation_epsilon`` is the part of epsilon that the
    report of what the limits cut off was given; None where none is asked for.
    """

    epsilon: float
    delta: float
    max_groups_contributed: int | None
    max_rows_per_group: int | None
    group_selection: GroupSelection | None
    group_selection_epsilon: float | None = None
    max_rows_contributed: int | None = None
    min_privacy_units: int = 1
    truncation_epsilon: float | None = None

    @property
    def max_rows(self) -> int | None:
        """The maximum number of rows of one unit in one group, where that is bounded."""
        return self.max_rows_per_group or self.max_rows_contributed


@dataclass(frozen=True, slots=True)
class PublicValues:
    """Group keys listed in the query or by the caller: one tuple of Python values per group."""

    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class PublicTable:
    """Group keys read as the distinct rows of columns of a public table, in the order of the query's keys."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublicRelation:
    """Group keys read as the distinct rows of columns of a relation over public tables, in their order."""

    relation: Relation
    columns: tuple[str, ...]


PublicGroups: TypeAlias = PublicValues | PublicTable | PublicRelation


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One ORDER BY term over the released columns; post-processing."""

    name: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A private SELECT, checked: rows of ``relation``, grouped by ``keys``, aggregated under ``options``.

    ``output`` lists the released columns in the order of the SELECT list: names of keys, of aggregates and of
    ``computed`` columns. These are expressions over keys and aggregates by name, post-processing that reads
    released numbers only; ``having`` names the one that says which rows are shown. Aggregates and computed
    columns that ``output`` leaves out are for ``having``, ``order_by`` and other columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> with sf.connect(pa.table({"n": [1, 2]}), privacy_unit=sf.ROW, epsilon=1.0, rng=1) as session:
    ...     query = session.read(
    ...         "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) COUNT(*) AS people FROM data"
    ...     )
    >>> isinstance(query, Query), query.output
    (True, ('people',))
    """

    relation: Relation
    keys: tuple[Named, ...]
    aggregates: tuple[Aggregate, ...]
    options: Options
    public_groups: PublicGroups | None
    output: tuple[str, ...]
    order_by: tuple[OrderItem, ...]
    limit: int | None
    computed: tuple[Named, ...] = ()
    having: str | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class AggregationJob:
    """What an engine must compute: exact bounded integers per group, before any noise.

    ``max_groups`` None means that a unit cannot be in more than one group; ``max_rows`` None means no
    limit on rows of one unit in one group. With ``public_groups`` rows of other groups are dropped before
    bounding and every public group is in the answer. ``max_rows_contributed`` is the most rows that one unit
    keeps over all groups.
    """

    relation: Relation
    keys: tuple[Named, ...]
    measures: tuple[Measure, ...]
    max_groups: int | None
    max_rows: int | None
    public_groups: PublicGroups | None
    max_rows_contributed: int | None = None


MOMENT_KINDS: Final = frozenset(
    {
        AggregateKind.VAR_POP,
        AggregateKind.VAR_SAMP,
        AggregateKind.STDDEV_POP,
        AggregateKind.STDDEV_SAMP,
        AggregateKind.COVAR_POP,
        AggregateKind.COVAR_SAMP,
        AggregateKind.CORR,
    }
)
"""Aggregates that are estimated from sums of products of rows."""


ADDITIVE: Final = (
    AggregateKind.COUNT_ROWS,
    AggregateKind.COUNT_VALUES,
    AggregateKind.COUNT_UNITS,
    AggregateKind.COUNT_DISTINCT,
    AggregateKind.SUM,
)
"""Aggregates whose error is that of one measure's noise."""


@dataclass(frozen=True, slots=True)
class FoundBounds:
    """Bounds that were searched for, released like any noisy number.

    Parameters
    ----------
    words : str
        What was searched.
    lower, upper : float
        Each zero or a power of two with a sign.
    found : bool
        False where nothing stood out of the noise, so that these are the fixed ones, -1 and 1.
    """

    words: str
    lower: float
    upper: float
    found: bool
