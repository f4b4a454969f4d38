"""Columns that are computed from released ones, and their intervals.

A sum or a ratio of several columns is tested as one number, whose noise has a known distribution. What is
made from these by functions that only grow, or by products and quotients, has the ends that follow, at a part
of the error probability for each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from sfumato.queries.plan.query import ADDITIVE, AggregateKind, ColumnType, Expression, Named
from sfumato.queries.plan.schema import ARROW_TYPES
from sfumato.queries.plan.typed_expressions import NUMERIC, column
from sfumato.queries.release.estimates import (
    as_arrow_array,
    clamped,
    interval,
    possible,
    shown_of,
    values,
)
from sfumato.queries.release.intervals import ShownCounts, hull
from sfumato.queries.release.linear_ratios import LinearForm, LinearRatio, linear_ratio
from sfumato.queries.release.postprocessing import column_types, ends, evaluate, named_columns, parsed
from sfumato.queries.release.ratio_intervals import NoiseTerm, ratio_interval, sum_interval
from sfumato.queries.release.record import ComputedColumn, ReleasedColumn, ReleaseRecord
from sfumato.queries.release.tails.noise_tails import noise_tail, sum_tail
from sfumato.queries.sql.clauses.answer_expressions import released_type

__all__ = ["clamped_values", "computed_interval", "released_columns", "with_computed"]

Floats: TypeAlias = NDArray[np.float64]
Ends: TypeAlias = tuple[NDArray[Any], NDArray[Any]]


def with_computed(record: ReleaseRecord, computed: Sequence[Named]) -> ReleaseRecord:
    """Return a record with the columns that are computed from its released ones."""
    if not computed:
        return record
    made = evaluate(released_columns(record), [named.expression for named in computed])
    table = record.table
    for index, found in enumerate(made):
        table = table.append_column(f"p{index}", found)
    columns = (ComputedColumn(n.name, n.expression.sql, n.expression.type) for n in computed)
    return replace(record, table=table, computed=tuple(columns))


def clamped_values(record: ReleaseRecord, computed: ComputedColumn) -> pa.ChunkedArray:
    """Return a computed column anew, from released ones that are clamped to what is possible."""
    base = released_columns(record, clamp=True)
    return evaluate(base, [parsed(computed.sql, column_types(base))])[0]


def released_columns(record: ReleaseRecord, *, clamp: bool = False) -> pa.Table:
    """Return keys and noised columns, shown or not, in the types that expressions compute in."""
    columns = {name: record.table[f"k{index}"] for index, name in enumerate(record.keys)}
    for each in record.columns:
        if each.kind is not AggregateKind.QUANTILES:  # an array, which no expression can use
            columns[each.name] = _typed(values(record, each, clamp=clamp), released_type(each.kind))
    return pa.table(list(columns.values()), names=list(columns))


def _typed(found: NDArray[Any], type_: ColumnType) -> pa.Array:
    return as_arrow_array(found).cast(ARROW_TYPES[type_])


def computed_interval(
    record: ReleaseRecord, computed: ComputedColumn, level: float, *, clamp: bool = False
) -> tuple[pa.ChunkedArray | pa.Array, pa.ChunkedArray | pa.Array] | None:
    """Return the ends of a computed column, if they follow from its parts; NULL where they do not for a row.

    A ratio whose denominator cannot be distinguished from zero has infinite ends.

    Parameters
    ----------
    record : ReleaseRecord
    computed : ComputedColumn
    level : float
    clamp : bool
        Whether what is impossible of the parts is cut off.

    Notes
    -----
    Guarantee: each interval holds, with probability at least ``level``, the value of the expression at the
    bounded answers. A weighted sum of columns, and a ratio of two, is one part, whose interval is that of its
    own noise (`ratio_interval`, `sum_interval`); any other column is one, too. Where there are several parts,
    each has the same share of the error probability (a union bound), and the ends follow by interval
    arithmetic.
    """
    if computed.type not in NUMERIC | {ColumnType.DATE}:
        return None
    base = released_columns(record)
    expression = parsed(computed.sql, column_types(base))
    sums = {each.name: each for each in record.columns if each.kind in ADDITIVE}
    tree, parts = _with_parts(expression.tree, sums)
    outer = Expression(tree, expression.type)
    noised = [each for each in record.columns if each.name in named_columns(outer)]
    many = len(noised) + len(parts)
    if not many:
        return None
    each_level = 1 - (1 - level) / many
    intervals = {name: part.interval(record, base, each_level) for name, part in parts.items()}
    if clamp:
        for name, part in parts.items():
            low, high = (clamped(end, part.possible(record)) for end in intervals[name])
            intervals[name] = low, high
    if isinstance(tree, exp.Column) and parts:  # nothing else is in it; an end may be infinite
        ((low, high),) = intervals.values()
        whole = computed.type is ColumnType.INTEGER
        low, high = (np.floor(low) + 1, np.ceil(high) - 1) if whole else (low, high)
        return _typed(low, computed.type), _typed(high, computed.type)
    intervals |= {each.name: interval(record, each, each_level, clamp=clamp) for each in noised}
    return _arithmetic(base, outer, intervals)


def _with_parts(
    tree: exp.Expression, sums: Mapping[str, ReleasedColumn]
) -> tuple[exp.Expression, dict[str, _Part]]:
    """Return an expression with a column in place of each part that is tested as one, and the parts."""
    parts: dict[str, _Part] = {}

    def replaced(node: exp.Expression) -> exp.Expression:
        ratio = linear_ratio(node, sums)
        if ratio is not None and (len(ratio.names) > 1 or ratio.denominator.weights):
            part = _Part(node, ratio, {name: sums[name] for name in sorted(ratio.names)})
            name = next((name for name, each in parts.items() if each.tree == node), f"/part{len(parts)}")
            parts[name] = part
            return column(name, None).tree
        for key, child in list(node.args.items()):
            if isinstance(child, exp.Expression):
                node.set(key, replaced(child))
            elif isinstance(child, list):
                node.set(key, [replaced(e) if isinstance(e, exp.Expression) else e for e in child])
        return node

    return replaced(tree.copy()), parts


def _arithmetic(
    base: pa.Table, expression: Expression, intervals: Mapping[str, Ends]
) -> tuple[pa.ChunkedArray, pa.ChunkedArray] | None:
    """Return the ends that follow from intervals of the columns of ``base``, and of further ones."""
    names = {name: (f"{name}/low", f"{name}/high") for name in intervals}
    bounds = ends(expression, names)
    if bounds is None:
        return None
    types = column_types(base)
    for name, both in intervals.items():
        for named, found in zip(names[name], both, strict=True):
            base = base.append_column(named, _typed(found, types.get(name, ColumnType.FLOAT)))
    low, high = evaluate(base, bounds)
    known, none = pc.and_(pc.is_valid(low), pc.is_valid(high)), pa.scalar(None, low.type)
    return pc.if_else(known, low, none), pc.if_else(known, high, none)


@final
@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an expression that is a ratio of two weighted sums of columns, each read off one measure."""

    tree: exp.Expression
    ratio: LinearRatio
    columns: Mapping[str, ReleasedColumn]

    def _kinds(self) -> list[list[tuple[int, float, float]]]:
        """Return the measures with their weights above and below, together where these are in proportion."""
        above, below = self.ratio.numerator.weights, self.ratio.denominator.weights
        weights: dict[int, tuple[float, float]] = {}
        for name, each in self.columns.items():
            one, other = weights.get(each.total, (0.0, 0.0))
            weights[each.total] = one + above.get(name, 0.0), other + below.get(name, 0.0)
        kinds: list[list[tuple[int, float, float]]] = []
        for index, (one, other) in weights.items():
            alike = [
                kind for kind in kinds if math.isclose(one * kind[0][2], other * kind[0][1], rel_tol=1e-12)
            ]
            if not (one or other):
                continue
            if alike:
                alike[0].append((index, one, other))
            else:
                kinds.append([(index, one, other)])
        return kinds

    def interval(self, record: ReleaseRecord, base: pa.Table, level: float) -> Ends:
        """Return the ends of the part, infinite where it has none."""
        counted = next((each for each in self.columns.values() if each.total == 0), None)
        shown = None if counted is None else shown_of(record, counted, level)
        miss = np.full(base.num_rows, 1 - level) if shown is None else shown.miss
        above, below = (self._sum(form, base) for form in (self.ratio.numerator, self.ratio.denominator))
        terms = [self._term(record, kind) for kind in self._kinds()]
        if self.ratio.denominator.weights:
            found = ratio_interval(above, below, terms, miss, self._bounds(record))
        else:
            found = sum_interval(above, terms, miss)
        if shown is None or not shown.small.any():
            return found
        low, high = self._of_few(record, base, shown)
        if self.ratio.denominator.weights:
            low, high = (np.clip(end, *self._bounds(record)) for end in (low, high))
        return hull(found, (low, high), shown.small)

    def possible(self, record: ReleaseRecord) -> tuple[float, float]:
        """Return what the part cannot leave, where that is zero: by the signs of its columns and weights."""
        bounds = {name: possible(record, each) for name, each in self.columns.items()}
        above, below = (_signs(form, bounds) for form in (self.ratio.numerator, self.ratio.denominator))
        if below[0] == 0:
            return above
        return (-above[1], -above[0]) if below[1] == 0 else below

    def _of_few(self, record: ReleaseRecord, base: pa.Table, shown: ShownCounts) -> Ends:
        """Return the ends for counts below the threshold, by interval arithmetic."""
        others = [each for each in self.columns.values() if each.total != 0]
        each_level = 1 - (1 - shown.level) / max(1, len({each.total for each in others}))
        intervals: dict[str, Ends] = {each.name: interval(record, each, each_level) for each in others}
        few = shown.low.astype(np.float64), shown.high.astype(np.float64)
        intervals |= {name: few for name, each in self.columns.items() if each.total == 0}
        made = _arithmetic(base, Expression(self.tree, ColumnType.FLOAT), intervals)
        ends_ = made or (pa.nulls(base.num_rows, pa.float64()),) * 2
        low, high = (
            pc.fill_null(end, infinite).to_numpy(zero_copy_only=False)
            for end, infinite in zip(ends_, (-math.inf, math.inf), strict=True)
        )
        return low, high

    @staticmethod
    def _sum(form: LinearForm, base: pa.Table) -> Floats:
        total = np.full(base.num_rows, form.constant)
        for name, weight in form.weights.items():
            total += weight * base[name].to_numpy().astype(np.float64)
        return total

    @staticmethod
    def _term(record: ReleaseRecord, kind: Sequence[tuple[int, float, float]]) -> NoiseTerm:
        """Return measures whose weights are in proportion as one noise."""
        steps = [2.0 ** record.measures[index].exponent for index, _, _ in kind]
        noises = [record.measures[index].noise for index, _, _ in kind]
        first = kind[0]
        if len(kind) == 1:
            return NoiseTerm(noise_tail(noises[0]), first[1] * steps[0], first[2] * steps[0])
        side = 1 if abs(first[1]) > abs(first[2]) else 2
        factors = [each[side] / first[side] * step for each, step in zip(kind, steps, strict=True)]
        return NoiseTerm(sum_tail(noises, factors), first[1], first[2])

    def _bounds(self, record: ReleaseRecord) -> tuple[float, float]:
        """Return the bounds of a sum over the number of units, which lies within those of a unit."""
        above, below = self.ratio.numerator, self.ratio.denominator
        (name, weight), *others = below.weights.items()
        counted = self.columns[name]
        per_unit = counted.kind in _COUNTS and record.measures[counted.total].upper == 1
        if others or below.constant or above.constant or weight <= 0 or not per_unit:
            return -math.inf, math.inf
        low = high = 0.0
        for each, factor in above.weights.items():
            measure = record.measures[self.columns[each].total]
            ends_ = [factor * 2.0**measure.exponent * end for end in (measure.lower, measure.upper)]
            low, high = low + min(0.0, *ends_), high + max(0.0, *ends_)
        return low / weight, high / weight


def _signs(form: LinearForm, bounds: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    """Return the bounds of a weighted sum, as far as these are zero."""
    lows, highs = [form.constant], [form.constant]
    for name, weight in form.weights.items():
        low, high = bounds[name]
        lows.append(low if weight > 0 else -high)
        highs.append(high if weight > 0 else -low)
    return 0.0 if min(lows) >= 0 else -math.inf, 0.0 if max(highs) <= 0 else math.inf


_COUNTS: Final = frozenset({AggregateKind.COUNT_UNITS, AggregateKind.COUNT_ROWS})
