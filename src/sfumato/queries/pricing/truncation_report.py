"""The truncation report: noisy counts of what the limits of a query cut off, beside its answer.

For each limit two numbers are released: how much of the units' groups, rows or values it cuts off, and how
much it leaves. Their ratio is the share that the answer does not count. Every unit has one row with both, so
that an engine computes all of them in one job.

Notes
-----
Guarantee: the report is ``truncation_epsilon``-DP under adding or removing one privacy unit. The job leaves
one row to a unit, a function of that unit's rows, and clamps both numbers of it from zero to the cap. They
are a part, and a total of at most the cap less that part. So they sum to at most the cap: were the part out
of its range, one of them would be zero. Discrete Laplace noise of scale ``cap / epsilon`` on both sums makes
them epsilon-DP (Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis",
2006, Proposition 1, whose proof holds for the discrete distribution too). The limits have equal parts of
``truncation_epsilon``, which add up. The noise is independent of the answer's, so the loss of both is the
composition of their losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from sqlglot import exp

from sfumato.errors import OptionError
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.numerics.decimals import decimal_of
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.queries.plan.measure import GridColumn, Measure, RowSum
from sfumato.queries.plan.nodes import Relation
from sfumato.queries.plan.query import AggregationJob, Expression, Named, Query
from sfumato.queries.plan.stated_limits import CutCount, CutOff, cut_counts
from sfumato.queries.pricing.bound_search import ColumnNames, column_names, projected
from sfumato.queries.pricing.truncated_rows import (
    either,
    expression,
    floored,
    integer,
    units_with_losses,
    whole,
)

__all__ = ["PricedCut", "PricedTruncation", "price_truncation"]

_STEPS: Final = 1 << 10
"""Parts of one group, row or value in which a unit's proportion is counted."""

_SCALE_GRID: Final = 1 << 24
_SLACK: Final = 1 + Fraction(1, 1 << 30)  # outweighs every outward rounding in the loss that is read back
_MAX_SCALE: Final = 1 << 40


@final
@dataclass(frozen=True, slots=True)
class PricedCut:
    """The two counts of one limit, and the noise on them.

    Parameters
    ----------
    count : CutCount
    mechanism : Laplace
        Its noise is in parts of ``steps``.
    steps : int
        Parts that one is counted in.
    """

    count: CutCount
    mechanism: Laplace
    steps: int

    @property
    def reach(self) -> int:
        """The most that one unit moves both numbers by together."""
        return self.count.cap * self.steps


@final
@dataclass(frozen=True, slots=True)
class PricedTruncation:
    """The report on a query's limits, with its noise.

    Parameters
    ----------
    cuts : tuple of PricedCut
        One for each limit that can cut something off.
    epsilon : float
        What they cost together, at delta 0.
    """

    cuts: tuple[PricedCut, ...]
    epsilon: float

    @property
    def loss(self) -> PrivacyLoss:
        """What is charged for the report."""
        return compose([each.mechanism.privacy_loss for each in self.cuts])

    def job(self, query: Query) -> AggregationJob:
        """Return what the engine computes: for each limit what is cut off, then what is left.

        Parameters
        ----------
        query : Query
        """
        names = column_names(query)
        measures = [
            Measure(
                RowSum((GridColumn(expression(integer(names(name))), 0, 0, each.reach),)), upper=each.reach
            )
            for index, each in enumerate(self.cuts)
            for name in (f"cut_{index}", f"left_{index}")
        ]
        return AggregationJob(
            relation=self._relation(query, names),
            keys=(),
            measures=tuple(measures),
            max_groups=None,
            max_rows=None if query.relation.unit is None else 1,
            public_groups=None,
        )

    def _relation(self, query: Query, names: ColumnNames) -> Relation:
        """Return a row for each unit, with both numbers of each limit."""
        units = units_with_losses(query, [each.count for each in self.cuts], names)
        several = range(len(self.cuts))
        within = projected(
            units,
            *(Named(names(f"whole_{index}"), self._total(names, index)) for index in several),
            *(Named(names(f"cut_{index}"), self._cut(names, index)) for index in several),
        )
        cuts = (Named(names(f"cut_{index}"), expression(integer(names(f"cut_{index}")))) for index in several)
        lefts = (
            Named(
                names(f"left_{index}"),
                expression(
                    exp.Sub(this=integer(names(f"whole_{index}")), expression=integer(names(f"cut_{index}")))
                ),
            )
            for index in several
        )
        return projected(within, *cuts, *lefts)

    def _total(self, names: ColumnNames, index: int) -> Expression:
        """Return a unit's total, brought down to the cap, in steps."""
        total, cap = names(f"all_{index}"), self.cuts[index].count.cap
        steps = self.cuts[index].steps
        return expression(
            either(
                exp.LTE(this=integer(total), expression=whole(cap)),
                exp.Mul(this=integer(total), expression=whole(steps)),
                whole(cap * steps),
            )
        )

    def _cut(self, names: ColumnNames, index: int) -> Expression:
        """Return the part of it that is cut off: of a larger total in proportion."""
        total, lost, cap = names(f"all_{index}"), names(f"lost_{index}"), self.cuts[index].count.cap
        steps = self.cuts[index].steps
        return expression(
            either(
                exp.LTE(this=integer(total), expression=whole(cap)),
                exp.Mul(this=integer(lost), expression=whole(steps)),
                floored(integer(lost), integer(total), cap * steps),
            )
        )


def price_truncation(query: Query) -> PricedTruncation | None:
    """Choose the noise of the report that a query asks for; None where it asks for none.

    Parameters
    ----------
    query : Query

    Returns
    -------
    PricedTruncation or None
        Its limits have equal parts of ``truncation_epsilon``.

    Raises
    ------
    OptionError
        If nothing of the query's units can be cut off, or the epsilon is so small that the noise would leave
        the samplers' range.
    """
    epsilon = query.options.truncation_epsilon
    if epsilon is None:
        return None
    counts = cut_counts(query)
    if not counts:
        raise OptionError(
            f"truncation_epsilon must be left out where no stated limit or bound can cut anything off, got "
            f"{epsilon!r}; leave it out"
        )
    part = decimal_of(epsilon) / len(counts)
    return PricedTruncation(tuple(_priced(each, part, query) for each in counts), epsilon)


def _priced(count: CutCount, epsilon: Fraction, query: Query) -> PricedCut:
    single = count.kind is CutOff.UNITS or query.relation.unit is None
    steps = 1 if single else _STEPS
    reach = count.cap * steps
    scale = Fraction(math.ceil(reach / epsilon * _SLACK * _SCALE_GRID), _SCALE_GRID)
    if scale > _MAX_SCALE:
        raise OptionError(
            f"truncation_epsilon must leave the noise within 2**40 steps, got "
            f"{query.options.truncation_epsilon!r}; use a larger one, or lower limits"
        )
    if single:  # a unit is in one of the two numbers, once
        return PricedCut(count, Laplace(sensitivity=1, scale=scale, l0=1), steps)
    return PricedCut(count, Laplace(l1=reach, scale=scale, l0=2), steps)
