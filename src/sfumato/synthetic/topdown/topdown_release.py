"""Released counts of all places of a hierarchy, which add up; and intervals from the noisy counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato._display import named
from sfumato._wire import BOOLEAN, INTEGER, TEXT, Codec, Format, Record, canonical, parse, sequence
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.base.release_table import Rows, draw_whiskers, drawn_few
from sfumato.numerics.interval import Interval
from sfumato.privacy.catalog import LOSS
from sfumato.privacy.interpretation.plotting import drawable
from sfumato.privacy.neighboring import RELATION
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.domain.structural_zeros import possible_cells
from sfumato.synthetic.marginals.marginal_table import MarginalTable
from sfumato.synthetic.marginals.residual_plan import share_of
from sfumato.synthetic.marginals.workload import subsets
from sfumato.synthetic.topdown.cell_query import cell_query
from sfumato.synthetic.topdown.hierarchy import Hierarchy
from sfumato.synthetic.topdown.release_document import (
    HIERARCHY,
    read_counts,
    read_measured,
    written_counts,
    written_measured,
)
from sfumato.synthetic.topdown.tree_least_squares import MeasuredTable, residual_sum
from sfumato.synthetic.topdown.unit_counts import LevelCounts

__all__ = ["TopDownRelease"]

_FORMAT: Final = Format("sfumato.topdown", 1)
_ANY: Final[Codec[Any]] = Codec(lambda value: value, lambda _, written: written)
_DOCUMENT: Final[Record[Any]] = Record(
    "released counts of places",
    dict,
    {
        "counts": _ANY,
        "domain": TEXT,
        "hierarchy": HIERARCHY,
        "loss": LOSS,
        "measured": _ANY,
        "neighboring": RELATION,
        "outside_guarantee": sequence(TEXT),
        "simulated": BOOLEAN,
        "unfinished": INTEGER,
    },
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopDownRelease(Release):
    """Whole non-negative counts of every place of every level, where children add up to their parent.

    Parameters
    ----------
    value : tuple of LevelCounts
        By level from the root.
    hierarchy : Hierarchy
    domain : TableDomain
    outside_guarantee : tuple of str
        What was released exactly: the guarantee does not cover it, nor what follows from it.
    measured : mapping of int to sequence of MeasuredTable, or None
        Noisy and exact counts by depth, where the release was made with intervals.
    unfinished : int
        How many families were fitted with the most steps that a fit may take, and not to its tolerance.
    loss, neighboring, receipt, simulated
        As in `Release`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.synthetic import Hierarchy, TableDomain, TopDown
    >>> places = Hierarchy.from_table(pa.table({"state": ["A", "A", "B"], "town": ["x", "y", "z"]}),
    ...     ["state", "town"], root="country")
    >>> people = pa.table({"town": ["x"] * 60 + ["y"] * 30 + ["z"] * 50, "sex": ["f", "m"] * 70})
    >>> mechanism = TopDown(
    ...     hierarchy=places, domain=TableDomain(sex=["f", "m"]), queries=[(), ("sex",)], rho=2)
    >>> released = mechanism.release(people, rng=1)
    >>> released.counts("state", "sex").tolist()
    [[45, 45], [26, 25]]
    >>> released.estimate("sex", places={"town": ["x", "z"]})
    <MarginalTable of sex, 2, stddev 0.9199>
    """

    hierarchy: Hierarchy
    domain: TableDomain
    outside_guarantee: tuple[str, ...] = ()
    measured: Mapping[int, Sequence[MeasuredTable]] | None = None
    unfinished: int = 0

    def __repr__(self) -> str:
        simulated = ", simulated" if self.simulated else ""
        exact = f", exact: {'; '.join(self.outside_guarantee)}" if self.outside_guarantee else ""
        return f"<TopDownRelease of {self.hierarchy!r} by {', '.join(self.domain)}{exact}{simulated}>"

    def counts(self, level: str, *columns: str) -> NDArray[np.int64]:
        """Return the counts of all places of a level by some columns.

        Parameters
        ----------
        level : str
        *columns : str
            In the order of the axes; none for the totals.

        Returns
        -------
        int64 array of shape (places, cells of the first column, ...)
            Places are in the order of ``hierarchy.places(level)``.

        Raises
        ------
        ParameterError
            If there is no such level or column, or a column is twice there.
        """
        depth, query = self.hierarchy.depth(level), cell_query(self.domain, columns)
        table = self.value[depth].grouped(0, self.hierarchy.size(depth), query.group_of, query.groups)
        order = [1 + query.columns.index(self.domain.index(name)) for name in columns]
        return np.ascontiguousarray(np.transpose(table.reshape(-1, *query.shape), (0, *order)))

    def to_arrow(self, level: str | None = None) -> pa.Table:
        """Return a row for each cell of each place of a level that has people in it.

        Parameters
        ----------
        level : str, optional
            The lowest one unless given.

        Returns
        -------
        pyarrow.Table
            With the place, the label of each column, and the count.

        Raises
        ------
        ParameterError
            If there is no such level.
        """
        level = self.hierarchy.levels[-1] if level is None else level
        entries, places = self.value[self.hierarchy.depth(level)], self.hierarchy.places(level)
        index = np.repeat(np.arange(len(places)), np.diff(entries.starts))
        codes = np.stack(np.unravel_index(entries.cells, self.domain.sizes), axis=1)
        labels = self.domain.decode(codes)
        names, taken = [level, "count"], set(labels.column_names)
        for i, name in enumerate(names):
            while names[i] in taken:
                names[i] = names[i] + "_"
            taken |= {name, names[i]}
        columns = [places.take(pa.array(index)), *labels.columns, pa.array(entries.counts)]
        return pa.table(columns, names=[names[0], *labels.column_names, names[1]])

    def plot(
        self,
        ax: Any = None,
        *,
        level: float | None = None,
        by: str | None = None,
        columns: Sequence[str] = (),
        most: int = 30,
    ) -> Any:
        """Draw the counts of the places of a level, with the estimates and their intervals; return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        level : float, optional
            Coverage of each interval; 0.95 if left out.
        by : str, optional
            Of the hierarchy: the level whose places are drawn; the one below the root if left out.
        columns : sequence of str
            Whose cells are drawn of each place; none for its total.
        most : int
            How many cells are drawn at most, at least 1.

        Returns
        -------
        matplotlib.axes.Axes
            Bars are the released counts; points with whiskers what `estimate` has of the same cells, if the
            release was made with intervals. Small counts are too large, so a bar may end beyond its whiskers.

        Raises
        ------
        ParameterError
            If there is no such level or column, or nothing measured the columns together.
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        level = 0.95 if level is None else _check.unit_interval("level", level)
        by = self.hierarchy.levels[min(1, len(self.hierarchy.levels) - 1)] if by is None else by
        counts, places = self.counts(by, *columns), self.hierarchy.places(by).to_pylist()
        cells = list(product(*(self.domain[name].labels for name in columns)))
        each = [tuple(map(named, (place, *cell))) for place in places for cell in cells]
        labels = dict(zip((by, *columns), map(list, zip(*each, strict=True)), strict=True))
        ax = drawn_few(Rows(labels, np.ravel(counts), None), most, ax)
        ax.set_ylabel("count")
        if self.measured is not None:
            few = places[: -(-most // len(cells))]
            tables = [self.estimate(*columns, places={by: [place]}) for place in few]
            found = np.concatenate([np.ravel(table.counts) for table in tables])[:most]
            ends = [table.interval(level) for table in tables]
            lower, upper = (np.concatenate([np.ravel(end[side]) for end in ends])[:most] for side in (0, 1))
            ax.plot(range(len(found)), drawable(found), "o", color="black")
            draw_whiskers(range(len(found)), found, Interval(lower, upper), ax=ax)
        return ax

    def estimate(self, *columns: str, places: Mapping[str, Sequence[Any]] | None = None) -> MarginalTable:
        """Return unbiased counts of the people of some places together, with intervals.

        Parameters
        ----------
        *columns : str
            Whose table is wanted; none for the total. They are those of one measured query, or some of them.
        places : mapping of str to sequence, optional
            Labels by level, of places that are summed, none within another; the root unless given.

        Returns
        -------
        MarginalTable
            Of the generalised least-squares estimates from the noisy counts on all levels, invariants taken
            as exact. They may be negative, and differ from `counts`, whose small ones are too large.

        Raises
        ------
        ParameterError
            If the release was made without intervals, a place lies within another, or nothing measured the
            columns together on the places or below them. What recoded queries measured is not used.
        """
        if self.measured is None:
            remedy = "release with intervals=True"
            _check.refuse_state("release", "be made with intervals", "no noisy counts are in it", remedy)
        chosen = _chosen(self.hierarchy, places)
        query = cell_query(self.domain, columns)
        sizes, clique = self.domain.sizes, query.columns
        inner = tuple(place for place in clique if sizes[place] > 1)
        counts, variance, total = np.zeros(query.shape), 0.0, 0.0
        for part in subsets([inner]):
            found = residual_sum(self.hierarchy, sizes, part, self.measured, chosen)
            variance += share_of(clique, part, sizes) * found.variance
            rest = math.prod(sizes[place] for place in clique if place not in part)
            counts = counts + found.values.reshape([sizes[i] if i in part else 1 for i in clique]) / rest
            if not part:
                total = float(found.values)
        if not math.isfinite(variance):
            rule = "be measured together on the places or below them"
            _check.refuse_state("columns", rule, "they were not", "ask for fewer, or for larger places")
        zeros = self.domain.structural_zeros
        stddev, order = math.sqrt(max(0.0, variance)), [clique.index(self.domain.index(n)) for n in columns]
        return MarginalTable(
            columns=columns,
            labels=tuple(self.domain[name].labels for name in columns),
            counts=np.transpose(counts, order),
            stddev=stddev,
            proxy=stddev,
            half_step=0.5 if stddev else 0.0,
            total=total,
            possible=np.transpose(possible_cells(clique, sizes, zeros), order) if zeros else None,
        )

    def to_json(self) -> str:
        """Return the release as a document of the format ``sfumato.topdown``, without its receipt.

        Returns
        -------
        str
            With the noisy counts, where there are any: what is read back has the same intervals.
        """
        fields = {
            "counts": written_counts(self.value[-1]),
            "domain": self.domain.to_json(),
            "hierarchy": HIERARCHY.encode(self.hierarchy),
            "loss": LOSS.encode(self.loss),
            "measured": written_measured(self.measured),
            "neighboring": RELATION.encode(self.neighboring),
            "outside_guarantee": list(self.outside_guarantee),
            "simulated": self.simulated,
            "unfinished": self.unfinished,
        }
        return canonical(_FORMAT.wrap(fields))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the release that `to_json` wrote.

        Parameters
        ----------
        text : str or bytes

        Returns
        -------
        TopDownRelease

        Raises
        ------
        ParameterError
            If it is no such document.
        """
        read = _DOCUMENT.decode("text", _FORMAT.unwrap("text", parse("text", text))[1])
        hierarchy, domain = read["hierarchy"], TableDomain.from_json(read["domain"])
        return cls(
            value=all_levels(hierarchy, read_counts(read["counts"], hierarchy, domain), domain.cells),
            hierarchy=hierarchy,
            domain=domain,
            measured=read_measured(read["measured"], hierarchy, domain),
            loss=read["loss"],
            neighboring=read["neighboring"],
            outside_guarantee=read["outside_guarantee"],
            simulated=read["simulated"],
            unfinished=read["unfinished"],
        )


def all_levels(hierarchy: Hierarchy, lowest: LevelCounts, cells: int) -> tuple[LevelCounts, ...]:
    """Return the counts of all levels, from the root, that those of the lowest one add up to."""
    levels = [lowest]
    for depth in reversed(range(len(hierarchy.names))):
        levels.append(levels[-1].summed(hierarchy.parents[depth], hierarchy.size(depth), cells))
    return tuple(levels[::-1])


def _chosen(hierarchy: Hierarchy, places: Mapping[str, Sequence[Any]] | None) -> dict[int, NDArray[np.bool_]]:
    """Return which places of each level are summed."""
    wanted: Any = {hierarchy.root: [hierarchy.root]} if places is None else places
    if not isinstance(wanted, Mapping) or not wanted:
        _check.refuse_type("places", "be a mapping of levels to labels", places, "write {'state': ['A']}")
    chosen = {}
    for level, labels in wanted.items():
        index, depth = hierarchy.index(level, labels), hierarchy.depth(level)
        chosen[depth] = np.zeros(hierarchy.size(depth), np.bool_)
        chosen[depth][index] = True
        if not len(index) or np.count_nonzero(chosen[depth]) != len(index):
            _check.refuse_state("places", "be there once", f"those of {level!r} are not", "name each once")
    above = np.zeros(1, np.bool_)
    for depth in range(len(hierarchy.levels)):
        inside = above[hierarchy.parents[depth - 1]] if depth else above
        if depth in chosen and (inside & chosen[depth]).any():
            found = f"one of {hierarchy.levels[depth]!r} lies in another one"
            _check.refuse_state("places", "not lie in each other", found, "leave it out")
        above = inside | chosen[depth] if depth in chosen else inside
    return chosen
