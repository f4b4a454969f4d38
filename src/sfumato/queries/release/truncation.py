"""Truncation: what share of units, groups, rows and values the limits of a query cut off, with intervals.

Each share is read off two noisy counts that were released beside the answer: of what is cut off, and of what
is left. The interval of their ratio is Fieller's, by the exact distribution of the noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
import pyarrow as pa

from sfumato.mechanisms.base.release_table import Rows, drawn
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.numerics.interval import Interval
from sfumato.queries.plan.stated_limits import CutOff
from sfumato.queries.release.display import printable
from sfumato.queries.release.ratio_intervals import NoiseTerm, ratio_interval
from sfumato.queries.release.record import NoisyCut
from sfumato.queries.release.tails.noise_tails import noise_tail

__all__ = ["TruncatedShare", "Truncation"]

_WORDS: Final = {
    CutOff.UNITS: "of units lose a group",
    CutOff.GROUPS: "of units' groups are dropped",
    CutOff.ROWS: "of rows are dropped",
    CutOff.VALUES: "of values are clamped",
}
_SCHEMA: Final = pa.schema(
    [
        ("cut_off", pa.string()),
        ("aggregate", pa.string()),
        ("share", pa.float64()),
        ("share_lower", pa.float64()),
        ("share_upper", pa.float64()),
        ("cap", pa.int64()),
    ]
)


@final
@dataclass(frozen=True, slots=True)
class TruncatedShare:
    """The share that a limit cuts off.

    Parameters
    ----------
    estimate : float
        From 0 to 1.
    lower, upper : float
        The interval; from 0 to 1 where the noise leaves it open.
    cap : int
        What one unit weighs at most. One that has more of it weighs as if it had just so much, of which the
        same part is cut off; so where units have more, the share of all of it is larger.
    """

    estimate: float
    lower: float
    upper: float
    cap: int

    def __str__(self) -> str:
        shown = (f"{100 * number:.3g}" for number in (self.estimate, self.lower, self.upper))
        return "{} % [{}, {}]".format(*shown)


@final
@dataclass(frozen=True, slots=True)
class Truncation:
    """What the limits of a query cut off, as ``OPTIONS(truncation_epsilon=...)`` asks beside the answer.

    Parameters
    ----------
    units : TruncatedShare or None
        The share of units that lose a group by ``max_groups_contributed``; None without such a limit.
    groups : TruncatedShare or None
        The share of all groups of all units, each once for each unit, that are dropped by it.
    rows : TruncatedShare or None
        The share of rows that do not count, for their group was dropped or for a limit on rows; None where
        no aggregate is of rows, or nothing limits them.
    values : mapping of str to TruncatedShare
        For each aggregate with stated bounds the share of values that these clamp: of rows, or of units'
        totals or means in a group, whichever is bounded; for COUNT(DISTINCT x) the share of each unit's
        distinct values that are dropped.
    level : float
        Coverage of each interval on its own.

    Notes
    -----
    Guarantee: post-processing of noisy counts that are a part of the release
    (`sfumato.queries.pricing.truncation_report`); each interval holds the ratio of the exact counts with at
    least the probability ``level`` (`sfumato.queries.release.ratio_intervals`).

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> rides = {"rider": [i % 4000 for i in range(40000)], "month": [i // 4000 for i in range(40000)]}
    >>> with sf.connect(pa.table(rides), privacy_unit="rider", epsilon=2, delta=1e-6, rng=7) as session:
    ...     release = session.sql(
    ...         "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7, truncation_epsilon=0.2, "
    ...         "max_groups_contributed=5) month, COUNT(DISTINCT rider) AS n FROM data GROUP BY month"
    ...     )
    >>> share = release.truncation.groups
    >>> share.lower < 0.5 < share.upper, share.upper - share.lower < 0.1
    (True, True)
    """

    units: TruncatedShare | None = None
    groups: TruncatedShare | None = None
    rows: TruncatedShare | None = None
    values: Mapping[str, TruncatedShare] = field(default_factory=dict)
    level: float = 0.95

    @classmethod
    def of(cls, cuts: Sequence[NoisyCut], level: float) -> Truncation:
        """Read the shares off noisy counts.

        Parameters
        ----------
        cuts : sequence of NoisyCut
        level : float
            Coverage of the intervals, strictly between 0 and 1.

        Returns
        -------
        Truncation
        """
        shares = [(cut, _share(cut, level)) for cut in cuts]
        limits = {cut.kind: share for cut, share in shares if cut.aggregate is None}
        return cls(
            units=limits.get(CutOff.UNITS),
            groups=limits.get(CutOff.GROUPS),
            rows=limits.get(CutOff.ROWS),
            values={cut.aggregate: share for cut, share in shares if cut.aggregate is not None},
            level=level,
        )

    def __str__(self) -> str:
        return "; ".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Say what is cut off, a line for each limit.

        Yields
        ------
        str
        """
        for kind, name, share in self._shares():
            of_values = "" if name is None else f" for {printable(name)}"
            yield f"{share} {_WORDS[kind]}{of_values}"

    def to_arrow(self) -> pa.Table:
        """Return the shares as a table, a row for each limit.

        Returns
        -------
        pyarrow.Table
            The columns ``cut_off``, ``aggregate``, ``share``, ``share_lower``, ``share_upper`` and ``cap``.
        """
        rows = [
            (kind.value, name, share.estimate, share.lower, share.upper, share.cap)
            for kind, name, share in self._shares()
        ]
        return pa.Table.from_pylist([dict(zip(_SCHEMA.names, row, strict=True)) for row in rows], _SCHEMA)

    def plot(self, ax: Any = None) -> Any:
        """Draw the share that each limit cuts off, with its interval; return the axes, and show nothing.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.

        Returns
        -------
        matplotlib.axes.Axes
            From 0 to 1.

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        names, shares = [], []
        for kind, name, share in self._shares():
            names.append(kind.value if name is None else f"{kind.value} of {printable(name)}")
            shares.append((share.estimate, share.lower, share.upper))
        value, lower, upper = np.array(shares, np.float64).reshape(-1, 3).T
        ax = drawn(Rows({"cut off": names}, value, Interval(lower, upper)), ax)
        ax.set_ylabel("share that is cut off")
        ax.set_ylim(0.0, 1.0)
        return ax

    def _shares(self) -> Iterator[tuple[CutOff, str | None, TruncatedShare]]:
        for kind, share in (
            (CutOff.UNITS, self.units),
            (CutOff.GROUPS, self.groups),
            (CutOff.ROWS, self.rows),
        ):
            if share is not None:
                yield kind, None, share
        for name, share in self.values.items():
            yield CutOff.VALUES, name, share


def _share(cut: NoisyCut, level: float) -> TruncatedShare:
    """Return the share that is cut off: of independent noises, the numerator's is in the denominator too."""
    tail = noise_tail(DiscreteLaplaceDistribution(cut.scale))
    noise = [NoiseTerm(tail, 1.0, 1.0), NoiseTerm(tail, 0.0, 1.0)]
    part, total = float(cut.cut), float(cut.cut + cut.left)
    ends = ratio_interval(np.array([part]), np.array([total]), noise, np.array([1 - level]), (0.0, 1.0))
    lower, upper = (float(end[0]) for end in ends)
    estimate = part / total if total > 0 else float(part > 0)
    return TruncatedShare(min(max(estimate, lower), upper), lower, upper, cut.cap)
