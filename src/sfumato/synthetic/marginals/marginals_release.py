"""Released residuals, and the marginals that they add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from types import MappingProxyType
from typing import Any, Final, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import BOOLEAN, BYTES, INTEGER, RATIONAL, TEXT, Format, Record, canonical, parse, sequence
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.privacy.catalog import LOSS
from sfumato.privacy.neighboring import RELATION
from sfumato.synthetic.domain.attributes import Label
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.domain.structural_zeros import possible_cells
from sfumato.synthetic.marginals.cell_rows import cell_rows
from sfumato.synthetic.marginals.column_strategy import CellStrategy, RangeStrategy, along
from sfumato.synthetic.marginals.marginal_table import MarginalTable
from sfumato.synthetic.marginals.ordered_queries import (
    CellRange,
    OrderedQueries,
    asked_ranges,
    check_ordered,
)
from sfumato.synthetic.marginals.range_table import RangeTable
from sfumato.synthetic.marginals.residual_noise import AnsweredColumn, answer_noise, clique_of
from sfumato.synthetic.marginals.workload import Clique, maximal, subsets

__all__ = ["MarginalsRelease"]

_FORMAT: Final = Format("sfumato.marginals", 2)
_OF_CELLS: Final = Format("sfumato.marginals", 1)
_RESIDUAL: Final[Record[Any]] = Record(
    "a residual", dict, {"columns": sequence(INTEGER), "sigma": RATIONAL, "values": BYTES}
)
_STRATEGY: Final[Record[Any]] = Record("a strategy", dict, {"column": INTEGER, "values": BYTES})
_DOCUMENT: Final[Record[Any]] = Record(
    "released marginals",
    dict,
    {
        "domain": TEXT,
        "loss": LOSS,
        "neighboring": RELATION,
        "residuals": sequence(_RESIDUAL),
        "simulated": BOOLEAN,
    },
)
_STRATEGIES: Final = "strategies"
_ANSWERS: Final = 1 << 24


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalsRelease(Release):
    """Noisy marginals: those of the workload, and of any columns of them.

    Parameters
    ----------
    value : mapping of tuple of int to float64 array
        Residuals by the numbers of their columns, which add up to 0 along each.
    domain : TableDomain
    distributions : mapping of tuple of int to DiscreteGaussianDistribution
        Of each residual's noise, in steps of one over the product of its columns' units: their cells, or
        those of their strategies.
    strategies : mapping of int to RangeStrategy
        How columns that were asked by prefixes or ranges were measured.
    loss, neighboring, receipt, simulated
        As in `Release`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.synthetic import Marginals, ResidualMechanism
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"])
    >>> mechanism = ResidualMechanism.calibrated(domain, Marginals.every(2), epsilon=1.0, delta=1e-6)
    >>> released = mechanism.release(pa.table({"age": ["young"] * 900, "sex": ["f", "m"] * 450}), rng=1)
    >>> released.marginal("age", "sex")
    <MarginalTable of age, sex, 2 x 2, stddev 4.226>
    >>> round(abs(released.total - float(released.marginal("sex").counts.sum())), 6)
    0.0
    """

    domain: TableDomain
    distributions: Mapping[Clique, DiscreteGaussianDistribution]
    strategies: Mapping[int, RangeStrategy] = field(default_factory=dict)

    def __repr__(self) -> str:
        simulated = ", simulated" if self.simulated else ""
        return f"<MarginalsRelease of {len(self.value)} residuals over {list(self.domain)}{simulated}>"

    def to_json(self) -> str:
        """Return the release as a document of the format ``sfumato.marginals``, without its receipt.

        Returns
        -------
        str
        """
        residuals = [
            {
                "columns": list(part),
                "sigma": RATIONAL.encode(Fraction(self.distributions[part].sigma)),
                "values": BYTES.encode(np.ascontiguousarray(values, "<f8").tobytes()),
            }
            for part, values in self.value.items()
        ]
        fields = {
            "domain": self.domain.to_json(),
            "loss": LOSS.encode(self.loss),
            "neighboring": RELATION.encode(self.neighboring),
            "residuals": residuals,
            "simulated": self.simulated,
        }
        if not self.strategies:
            return canonical(_OF_CELLS.wrap(fields))
        fields[_STRATEGIES] = [
            {"column": place, "values": BYTES.encode(np.ascontiguousarray(each.matrix, "<i4").tobytes())}
            for place, each in self.strategies.items()
        ]
        return canonical(_FORMAT.wrap(fields))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the release that `to_json` wrote.

        Parameters
        ----------
        text : str or bytes

        Returns
        -------
        MarginalsRelease

        Raises
        ------
        ParameterError
            If it is no such document.
        """
        fields = _FORMAT.unwrap("text", parse("text", text))[1]
        written = sequence(_STRATEGY).decode("text", fields.pop(_STRATEGIES, []))
        read = _DOCUMENT.decode("text", fields)
        domain = TableDomain.from_json(read["domain"])
        strategies = {each["column"]: _read_strategy(domain, **each) for each in written}
        values: dict[Clique, NDArray[np.float64]] = {}
        noise: dict[Clique, DiscreteGaussianDistribution] = {}
        for residual in read["residuals"]:
            part = residual["columns"]
            shape = [domain.sizes[place] for place in part if 0 <= place < len(domain)]
            if len(shape) != len(part) or len(residual["values"]) != 8 * prod(shape):
                rule, remedy = "have a value for each cell of a residual", "pass what to_json returned"
                _check.refuse_state("text", rule, "it has not", remedy)
            values[part] = np.frombuffer(residual["values"], "<f8").reshape(shape)
            noise[part] = DiscreteGaussianDistribution(residual["sigma"])
        fewer = {part[:place] + part[place + 1 :] for part in values for place in range(len(part))}
        if not {(), *fewer} <= values.keys():
            _check.refuse_state("text", "have the residuals of fewer columns", "it has not", "pass all of it")
        return cls(
            value=MappingProxyType(values),
            domain=domain,
            distributions=MappingProxyType(noise),
            strategies=MappingProxyType(strategies),
            loss=read["loss"],
            neighboring=read["neighboring"],
            simulated=read["simulated"],
        )

    def to_arrow(self) -> pa.Table:
        """Return the cells of all tables that are in no other one, a row for each.

        Returns
        -------
        pyarrow.Table
            ``columns`` and ``cell``, lists of the table's columns and of the cell's labels as texts,
            ``count`` and ``stddev``.
        """
        names = list(self.domain)
        tables = (self.marginal(*(names[place] for place in part)) for part in maximal(self.value))
        return cell_rows((each.columns, each.labels, each.counts, each.stddev) for each in tables)

    @property
    def total(self) -> float:
        """The noisy number of rows that were counted."""
        return float(self.value[()])

    def marginal(self, *columns: str) -> MarginalTable:
        """Return the table of some columns.

        Parameters
        ----------
        *columns : str
            In the order of the table's axes; all in one table of the workload. None for the number of rows.

        Returns
        -------
        MarginalTable

        Raises
        ------
        ParameterError
            If they are not, or one is twice there.
        """
        return MarginalTable(**self._answers(columns, {}))

    def plot(self, ax: Any = None, *, level: float | None = None, columns: Sequence[str] = ()) -> Any:
        """Draw the table of some columns with its intervals; return the axes, and show nothing.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        level : float, optional
            Of each interval; 0.95 if left out.
        columns : sequence of str
            As for `marginal`, which has more cells drawn too.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ParameterError
            If no columns are named, or they were not measured together.
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        if not columns:
            remedy = f"such as columns=[{next(iter(self.domain))!r}]"
            _check.refuse_state("columns", "be named for a plot", "there is none", remedy)
        return self.marginal(*columns).plot(ax, level=0.95 if level is None else level)

    def prefixes(self, *columns: str, by: Sequence[str] = ()) -> RangeTable:
        """Return the table of all prefixes of ordered columns: how many rows there are up to each bin's end.

        Parameters
        ----------
        *columns : str
            Ordered ones; the first axes.
        by : sequence of str
            Columns whose cells they are crossed with; the last axes.

        Returns
        -------
        RangeTable
            Right for any columns of a table of the workload; with the least error where the workload asks
            for their prefixes.

        Raises
        ------
        ParameterError
            If a column is not ordered or was not measured with the others.
        """
        return self._ranges(columns, by, dict.fromkeys(columns, OrderedQueries.PREFIXES))

    def ranges(
        self,
        *columns: str,
        by: Sequence[str] = (),
        between: Mapping[str, Sequence[tuple[Any, Any]]] | None = None,
    ) -> RangeTable:
        """Return the table of ranges of ordered columns: how many rows there are from one bin to another.

        Parameters
        ----------
        *columns : str
            Ordered ones; the first axes.
        by : sequence of str
            Columns whose cells they are crossed with; the last axes.
        between : mapping of str to sequence of pairs, optional
            The ranges of a column: of whole numbers the first and the last, else from edge to edge. All of
            them unless given.

        Returns
        -------
        RangeTable
            Right for any columns of a table of the workload; with the least error where the workload asks
            for their ranges.

        Raises
        ------
        ParameterError
            If a column is not ordered or was not measured with the others, an end of a range is no edge of a
            bin, or the table is too large.
        """
        wanted: dict[str, Any] = dict.fromkeys(columns, OrderedQueries.RANGES)
        for name, pairs in (between or {}).items():
            if name not in wanted:
                _check.refuse("between", f"be of columns among {list(columns)}", name, "name the column too")
            wanted[name] = pairs
        return self._ranges(columns, by, wanted)

    def _ranges(self, columns: tuple[str, ...], by: Sequence[str], wanted: Mapping[str, Any]) -> RangeTable:
        if not columns:
            _check.refuse_state("columns", "be given", "there is none", "name an ordered column")
        clique_of(self.domain, (*columns, *by), self.value)
        asked = {}
        for name, queries in wanted.items():
            attribute = self.domain[name]
            if isinstance(queries, OrderedQueries):
                ordered = check_ordered(name, attribute)
                if queries.count(ordered) * ordered.size > _ANSWERS:
                    rule, remedy = f"have at most {_ANSWERS} ends", "pass between= with the ranges wanted"
                    _check.refuse_state(f"ranges of {name!r}", rule, "they have more", remedy)
                asked[name] = queries.cells(name, attribute)
            else:
                asked[name] = asked_ranges(name, attribute, queries)
        return RangeTable(**self._answers((*columns, *by), asked))

    def _answers(self, columns: Sequence[str], asked: Mapping[str, Sequence[CellRange]]) -> dict[str, Any]:
        """Return the fields of a table: of its cells, or of ranges of some columns."""
        clique, inner = clique_of(self.domain, columns, self.value)
        sizes, zeros, parts = self.domain.sizes, self.domain.structural_zeros, subsets([inner])
        strategies = {place: self.strategies.get(place) or CellStrategy(sizes[place]) for place in clique}
        counts = np.zeros([sizes[place] for place in clique])
        for part in parts:
            shared: Any = self.value[part].reshape([sizes[i] if i in part else 1 for i in clique])
            plain = [i for i in clique if i not in part and i not in self.strategies]
            for place in (i for i in clique if i in self.strategies and i not in part):
                shape = [sizes[place] if i == place else 1 for i in clique]
                shared = shared * strategies[place].base.reshape(shape)
            counts = counts + shared / prod(sizes[place] for place in plain)
        order = [clique.index(self.domain.index(name)) for name in columns]
        counts = np.transpose(counts, order)
        possible = np.transpose(possible_cells(clique, sizes, zeros), order) if zeros else None
        answered, labels = {}, list[tuple[Label, ...]]()
        cells = prod(len(asked[name]) if name in asked else self.domain[name].size for name in columns)
        if cells > _ANSWERS:
            remedy = "pass between= with the ranges wanted"
            _check.refuse_state("ranges", f"be at most {_ANSWERS} in a table", f"they are {cells}", remedy)
        for axis, name in enumerate(columns):
            place, ranges = self.domain.index(name), asked.get(name)
            weights = None if ranges is None else _indicators(ranges, sizes[place])
            answered[place] = AnsweredColumn(strategies[place], weights)
            labels.append(self.domain[name].labels if ranges is None else tuple(r.label for r in ranges))
            if weights is not None:
                counts = along(weights, counts, axis)
                possible = None if possible is None else along(weights, possible.astype(np.float64), axis) > 0
        noise = answer_noise(answered, {part: self.distributions[part] for part in parts})
        return {
            "columns": tuple(columns),
            "labels": tuple(labels),
            "counts": counts,
            **{
                name: np.broadcast_to(value, counts.shape) if isinstance(value, np.ndarray) else value
                for name, value in noise._asdict().items()
            },
            "total": self.total,
            "possible": possible,
        }


def _indicators(ranges: Sequence[CellRange], cells: int) -> NDArray[np.float64]:
    """Return for each range which cells are in it."""
    at = np.arange(cells)
    first, last = (np.array(ends)[:, None] for ends in ([r.first for r in ranges], [r.last for r in ranges]))
    return ((first <= at) & (at <= last)).astype(np.float64)


def _read_strategy(domain: TableDomain, column: int, values: bytes) -> RangeStrategy:
    """Return a strategy that was written."""
    cells = domain.sizes[column] if 0 <= column < len(domain) else 0
    if cells < 2 or len(values) != 4 * cells * (cells - 1):
        rule, remedy = "have strategies of columns with several cells", "pass what to_json returned"
        _check.refuse_state("text", rule, "it has others", remedy)
    matrix = np.frombuffer(values, "<i4").reshape(cells - 1, cells)
    return RangeStrategy(matrix.astype(np.int64))
