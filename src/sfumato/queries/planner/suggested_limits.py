"""Suggested limits: what each limit of a query cuts off, what error that makes, and which to take.

The histograms are a release, paid for once; all else is post-processing of them and of public parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa

from sfumato import _check
from sfumato.numerics.interval import Interval
from sfumato.privacy.interpretation.plotting import axes, draw_line, label_text
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.receipt import Receipt
from sfumato.queries.plan.query import AggregateKind, PublicValues
from sfumato.queries.planner.contribution_histograms import Counted
from sfumato.queries.planner.limit_candidates import Candidate, Limit, LimitChoice, limits_of
from sfumato.queries.planner.limit_estimates import Distribution, Estimate, NoisyHistogram, tail_bound
from sfumato.queries.planner.limit_pricing import PricedHistograms
from sfumato.queries.planner.limit_record import LimitsRecord
from sfumato.queries.release.data_frames import as_pandas
from sfumato.queries.release.display import as_html, as_text, printable, promise

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SuggestedLimits"]

_OPTIONS: Final = MappingProxyType(
    {
        Counted.GROUPS: "max_groups_contributed",
        Counted.ALL_ROWS: "max_rows_contributed",
        Counted.ROWS: "max_rows_per_group",
    }
)
_BOUNDS: Final = MappingProxyType(
    {Counted.VALUES: "contribution_bounds_per_row", Counted.TOTALS: "contribution_bounds_per_group"}
)
_WORDS: Final = MappingProxyType(
    {
        Counted.GROUPS: ("units", "their groups"),
        Counted.ALL_ROWS: ("units", "their rows"),
        Counted.ROWS: ("units' groups", "their rows"),
        Counted.VALUES: ("values", "their mass"),
        Counted.TOTALS: ("units' totals", "their mass"),
    }
)
_ONE: Final = np.ones(1)
_SCHEMA: Final = pa.schema(
    [
        ("limit", pa.string()),
        ("aggregate", pa.string()),
        ("value", pa.float64()),
        *((f"{name}{end}", pa.float64()) for name in ("above", "cut") for end in ("", "_lower", "_upper")),
        ("noise", pa.float64()),
        *((f"error{end}", pa.float64()) for end in ("", "_lower", "_upper")),
        ("stated", pa.bool_()),
        ("recommended", pa.bool_()),
    ]
)


@final
@dataclass(frozen=True)
class SuggestedLimits:
    """What each limit of a query would cut off, with the error to expect; made by ``session.suggest_limits``.

    Parameters
    ----------
    record : LimitsRecord
        The noisy histograms: what was released, and paid for.
    receipt : Receipt or None
        The ledger's receipt of the charge; None where a committed release was read back.
    priced : PricedHistograms
        What was asked.
    replayed : bool
        True if this very question had been answered before: the same numbers, free of charge.
    groups : float or None
        How many groups the answer has, where that is known.
    groups_stated : bool
        Whether the query states in how many groups a unit counts.
    level : float
        Coverage of each interval.

    Notes
    -----
    Guarantee: ``epsilon``-DP of the histograms under adding or removing one privacy unit (see
    :mod:`sfumato.queries.planner.contribution_histograms`); the table and what is recommended are computed
    from them and from public parameters, which costs nothing more.

    An error is a share of what the aggregate is in an average group without any limit. What one limit cuts
    off is taken to be the same share of what the others leave: groups that are large because their
    units are in many groups are not set apart.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> rides = {"rider": [i % 2000 for i in range(12000)], "month": [i // 2000 for i in range(12000)]}
    >>> with sf.connect(pa.table(rides), privacy_unit="rider", epsilon=2, delta=1e-6, rng=7) as session:
    ...     suggested = session.suggest_limits(
    ...         "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7) month, "
    ...         "COUNT(DISTINCT rider) AS riders FROM data GROUP BY month",
    ...         epsilon=0.5,
    ...         groups=6,
    ...     )
    >>> suggested.recommended
    {'max_groups_contributed': 6}
    """

    record: LimitsRecord
    receipt: Receipt | None
    priced: PricedHistograms = field(repr=False)
    replayed: bool = False
    groups: float | None = None
    groups_stated: bool = True
    level: float = 0.95

    @property
    def epsilon(self) -> float:
        """Epsilon of the histograms alone, at delta 0."""
        return self.record.epsilon

    @property
    def loss(self) -> PrivacyLoss:
        """What was run: the loss that the ledger was charged."""
        return self.record.loss

    @property
    def neighboring(self) -> Neighboring:
        """The relation that is protected: one unit added or removed."""
        return Neighboring.ADD_REMOVE

    @property
    def privacy_unit(self) -> str:
        """Who is protected."""
        return self.record.privacy_unit

    @property
    def simulated(self) -> bool:
        """True if the noise came from a seed, so that nothing is protected."""
        return self.record.simulated

    @property
    def recommended(self) -> dict[str, int | tuple[float, float]]:
        """The limit of least error of each kind that stands out, by the option or argument that states it."""
        choice = self._choice
        made: dict[str, int | tuple[float, float]] = {}
        for limit in (limit for limit, known in choice.known.items() if known.limits):
            value = choice.best(limit)
            if limit.counted in _OPTIONS:
                made[self._name(limit)] = int(value)
            else:
                made[self._name(limit)] = (-value if choice.known[limit].negative else 0.0, value)
        return made

    def to_arrow(self) -> pa.Table:
        """Return a row for each value that a limit may have, and each aggregate that it matters to.

        Returns
        -------
        pyarrow.Table
            ``limit``, ``aggregate`` and ``value``; ``above``, the share of units (of units' groups, of
            values) beyond the limit; ``cut``, the share of groups (rows, value mass) that does not count;
            ``noise``, the standard deviation of the noise, and ``error``, that of noise and of what is cut
            off together, as shares of the aggregate in an average group, NULL where they are not known;
            each with ``_lower`` and ``_upper`` of its interval; whether the query states the value, and
            whether it is recommended.
        """
        choice = self._choice
        rows = [
            self._row(limit, candidate, best)
            for limit in choice.known
            for best in [choice.best(limit)]
            for candidate in choice.candidates(limit)
        ]
        return pa.Table.from_pylist(rows, _SCHEMA)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame; needs the extra ``sfumato[pandas]``.

        Returns
        -------
        pandas.DataFrame
        """
        return as_pandas(self.to_arrow())

    def plot(self, ax: Any = None, *, limit: str | None = None) -> Any:
        """Draw what each value of a limit cuts off and the error with it; return the axes, and show nothing.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        limit : str, optional
            One of the table's; the first one if left out.

        Returns
        -------
        matplotlib.axes.Axes
            A line for the share that is cut off and one for each aggregate's error, where it is known, within
            their intervals; an upright line at the recommended value, and a dotted one at the stated one.

        Raises
        ------
        ParameterError
            If the table has no such limit.
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        every = self.to_arrow().to_pylist()
        names = list(dict.fromkeys(row["limit"] for row in every))
        if not names:
            rule, found = "show some limit, for a plot", "nothing stands out of the noise"
            _check.refuse_state("the histograms", rule, found, "pass a larger epsilon")
        name = names[0] if limit is None else limit
        if name not in names:
            _check.refuse("limit", f"be one of {', '.join(names)}", limit, "name one of the table's limits")
        rows = [row for row in every if row["limit"] == name]
        aggregates = list(dict.fromkeys(row["aggregate"] for row in rows))
        ax = axes(ax)
        for aggregate in aggregates:
            own = [row for row in rows if row["aggregate"] == aggregate]
            if aggregate == aggregates[0]:
                _draw_share(own, "cut", f"{name} cuts off", ax)
            if all(row["error"] is not None for row in own):
                _draw_share(own, "error", f"error of {aggregate}", ax)
        for mark, style in (("recommended", "-"), ("stated", ":")):
            for value in dict.fromkeys(row["value"] for row in rows if row[mark]):
                ax.axvline(value, color="gray", linestyle=style, label=f"{mark}: {value:g}")
        ax.set_xscale("symlog")
        ax.set_xlabel(label_text(name))
        ax.set_ylabel("share")
        ax.legend()
        return ax

    def explain(self) -> str:
        """Say what was counted, with which noise, and what is recommended.

        Returns
        -------
        str
            Some lines for people.
        """
        return "\n".join(self._lines())

    def __str__(self) -> str:
        return as_text(self._short(), self._footer)

    def _repr_html_(self) -> str:
        return as_html(self._short(), self._footer)

    @property
    def _footer(self) -> str:
        named = ", ".join(f"{name} = {_shown(value)}" for name, value in self.recommended.items())
        made = promise(f"{self.epsilon:g}", printable(self.privacy_unit), simulated=self.simulated)
        return f"recommended: {named or 'nothing, for nothing stands out of the noise'}; {made}"

    def _short(self) -> pa.Table:
        """Return the columns that people look at first, of what is stated or recommended and around it."""
        table = self.to_arrow()
        stated, best = table["stated"].to_pylist(), table["recommended"].to_pylist()
        marked = [one or other for one, other in zip(stated, best, strict=True)]
        near = [any(marked[max(0, row - 2) : row + 3]) for row in range(len(marked))]
        columns = ["limit", "aggregate", "value", "above", "cut", "noise", "error", "recommended"]
        return table.filter(pa.array(near)).select(columns)

    def _lines(self) -> Iterator[str]:
        yield (
            f"Guarantee: ({self.epsilon:g}, 0)-differential privacy for these histograms together, when one "
            f"{self.privacy_unit} is added or removed."
        )
        for cells in self.record.histograms:
            times = "once" if cells.cap == 1 else f"at most {cells.cap} times"
            yield (
                f"Counted: {cells.words}; a unit counts {times}. Noise on each of {len(cells.counts)} "
                f"numbers: discrete Laplace, scale {float(cells.scale):.6g}."
            )
        choice = self._choice
        for limit, known in choice.known.items():
            if known.top is None:
                yield f"{self._name(limit)}: nothing stands out of the noise; pass a larger epsilon"
                continue
            value = choice.best(limit)
            found = known.beyond(value)
            stated = choice.stated.get(limit)
            who, what = _WORDS[limit.counted]
            yield (
                f"{self._name(limit)} = {value:g}: {_percent(found.above)} of {who} are beyond it; "
                f"{_percent(found.cut)} of {what} do not count"
            )
            if stated is not None and stated != value:
                cut = known.beyond(stated).cut
                yield f"  the query states {stated:g}: then {_percent(cut)} of {what} do not count"
            yield f"  seen up to {known.upper[known.top]:g}: beyond it no bin stands out of the noise"

    def _name(self, limit: Limit) -> str:
        if limit.aggregate is None:
            return _OPTIONS[limit.counted]
        aggregate = self.priced.query.aggregates[limit.aggregate]
        mean = aggregate.kind is AggregateKind.AVG
        return f"{_BOUNDS[Counted.TOTALS if mean else limit.counted]} of {aggregate.name}"

    def _row(self, limit: Limit, candidate: Candidate, best: float) -> dict[str, Any]:
        error, share = candidate.error, candidate.share
        return {
            "limit": self._name(limit),
            "aggregate": candidate.aggregate,
            "value": candidate.value,
            **_ends("above", share.above),
            **_ends("cut", share.cut),
            "noise": None if math.isnan(candidate.noise) else candidate.noise,
            **({} if error is None else _ends("error", error)),
            "stated": self._choice.stated.get(limit) == candidate.value,
            "recommended": candidate.value == best,
        }

    @cached_property
    def _choice(self) -> LimitChoice:
        """The limits, chosen from what was released."""
        query, parts = self.priced.query, 2 * len(self.priced.histograms)
        level = 1 - (1 - self.level) / parts
        noisy = [
            NoisyHistogram(histogram, cells.counts, cells.scale)
            for histogram, cells in zip(self.priced.histograms, self.record.histograms, strict=True)
        ]
        known: dict[Limit, Distribution] = {}
        groups = self._groups_known
        for each in noisy:
            if each.histogram.counted is Counted.NUMBER_OF_GROUPS:
                reach = tail_bound(_ONE, float(each.scale), (1 - level) / 2)
                ends = (max(1.0, each.counts[0] + sign * reach) for sign in (0, -1, 1))
                groups = Estimate(*ends)
            else:
                for limit in self._limits(each):
                    known[limit] = Distribution.of(each, level)
        stated = limits_of(query, known, groups_stated=self.groups_stated)
        choice = LimitChoice(query, known, groups, stated)
        choice.choose()
        return choice

    def _limits(self, noisy: NoisyHistogram) -> Iterator[Limit]:
        """Yield the limits that a histogram is for."""
        histogram = noisy.histogram
        if histogram.expression is None:
            yield Limit(histogram.counted)
            return
        for position, aggregate in enumerate(self.priced.query.aggregates):
            totals = aggregate.kind is AggregateKind.SUM and aggregate.group_bounds is not None
            same = totals == (histogram.counted is Counted.TOTALS)
            counted = aggregate.kind.name.startswith("COUNT")
            if aggregate.expression == histogram.expression and same and not counted:
                yield Limit(histogram.counted, position)

    @property
    def _groups_known(self) -> Estimate:
        listed = self.priced.query.public_groups
        many = float(len(listed.rows)) if isinstance(listed, PublicValues) else (self.groups or 1.0)
        return Estimate(many, many, many)


def _draw_share(rows: list[dict[str, Any]], column: str, label: str, ax: Any) -> None:
    """Draw a column of the table within its interval, over the values of the limit."""
    value, lower, upper = ([row[f"{column}{end}"] for row in rows] for end in ("", "_lower", "_upper"))
    ends = Interval(np.array(lower, np.float64), np.array(upper, np.float64))
    draw_line([row["value"] for row in rows], value, ends, ax=ax, label=label)


def _ends(name: str, estimate: Estimate) -> dict[str, float]:
    return {name: estimate.value, f"{name}_lower": estimate.lower, f"{name}_upper": estimate.upper}


def _percent(share: Estimate) -> str:
    return f"{share.value:.1%} [{share.lower:.1%}, {share.upper:.1%}]"


def _shown(value: int | tuple[float, float]) -> str:
    return f"{value}" if isinstance(value, int) else f"({value[0]:g}, {value[1]:g})"
