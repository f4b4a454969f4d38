"""The price of the histograms that limits are suggested by: their noise, and one loss for all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
import pyarrow as pa

from sfumato import _check
from sfumato._wire import NUMBER, Format, canonical
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.queries.plan.query import AggregationJob, PublicValues, Query
from sfumato.queries.plan.query_key import query_document
from sfumato.queries.planner.contribution_histograms import Counted, Histogram, histograms_of
from sfumato.queries.planner.limit_record import CellCounts, LimitsRecord

__all__ = ["PricedHistograms", "price_histograms"]

_FORMAT: Final = Format("sfumato.limits-query", 1)
_SCALE_GRID: Final = 1 << 24
_SLACK: Final = 1 + Fraction(1, 1 << 30)  # outweighs every outward rounding in the loss that is read back
_MAX_SCALE: Final = 1 << 40


@final
@dataclass(frozen=True, slots=True)
class PricedHistograms:
    """Histograms with their noise, and what they cost together.

    Parameters
    ----------
    query : Query
        Whose limits are asked for.
    epsilon : float
        The guarantee of all histograms together, at delta 0.
    histograms : tuple of Histogram
    mechanisms : tuple of Laplace
        One for each.
    loss : PrivacyLoss
    """

    query: Query
    epsilon: float
    histograms: tuple[Histogram, ...]
    mechanisms: tuple[Laplace, ...]
    loss: PrivacyLoss

    @property
    def jobs(self) -> tuple[AggregationJob, ...]:
        """What the engine computes, one for each histogram."""
        return tuple(histogram.job(self.query) for histogram in self.histograms)

    @property
    def request(self) -> str:
        """The key of what is asked: equal for equal questions, however they are spelled."""
        asked = [[each.counted.name.lower(), each.cap] for each in self.histograms]
        return canonical(
            _FORMAT.wrap(
                {
                    "query": query_document(self.query),
                    "epsilon": NUMBER.encode(self.epsilon),
                    "histograms": asked,
                }
            )
        )

    def with_noise(self, exact: list[pa.Table], source: RandomSource, *, privacy_unit: str) -> LimitsRecord:
        """Add the noise to the engine's answers.

        Parameters
        ----------
        exact : list of pyarrow.Table
            One answer for each of `jobs`.
        source : RandomSource
            Where the noise comes from.
        privacy_unit : str
        """
        cells = tuple(
            CellCounts(
                histogram.words,
                histogram.cap,
                Fraction(mechanism.scale),
                tuple(
                    int(count)
                    for count in np.asarray(mechanism.release(histogram.exact(answer), source).value).ravel()
                ),
            )
            for histogram, mechanism, answer in zip(self.histograms, self.mechanisms, exact, strict=True)
        )
        return LimitsRecord(cells, self.epsilon, self.loss, privacy_unit, simulated=source.simulated)


def price_histograms(query: Query, epsilon: float, *, groups: float | None) -> PricedHistograms:
    """Choose the noise of the histograms for a query's limits: equal parts of epsilon.

    Parameters
    ----------
    query : Query
    epsilon : float
    groups : float or None
        How many groups the answer has, where that is known.

    Raises
    ------
    ParameterError
        If epsilon is out of range, the query has no limit, or its number of groups is unknown and it has
        several keys.
    """
    epsilon = _check.positive("epsilon", epsilon, "pass 0.1, say")
    known = groups is not None or not query.keys or isinstance(query.public_groups, PublicValues)
    histograms = histograms_of(query, groups_known=known)
    if not histograms:
        found = "nothing of its units is cut off"
        _check.refuse_state("query", "have something that a limit bounds", found, "ask it as it is")
    if not known and len(query.keys) > 1:
        remedy = "pass groups=50, say: a public figure, or the rows of an earlier answer"
        _check.refuse("groups", "be given where groups of several keys are not listed", None, remedy)
    mechanisms = tuple(_mechanism(each, epsilon / len(histograms)) for each in histograms)
    loss = compose([each.privacy_loss for each in mechanisms])
    return PricedHistograms(query, epsilon, histograms, mechanisms, loss)


def _mechanism(histogram: Histogram, epsilon: float) -> Laplace:
    """Return the noise of a histogram, of which one unit moves the cells by at most its cap together."""
    scale = Fraction(math.ceil(histogram.cap / Fraction(epsilon) * _SLACK * _SCALE_GRID), _SCALE_GRID)
    if scale > _MAX_SCALE:
        found = f"it is {float(scale):.3g} for {histogram.words}"
        remedy = "pass a larger epsilon, or state lower limits in the query"
        _check.refuse_state("the scale of the noise", "be at most 2**40", found, remedy)
    if histogram.cap == 1 or histogram.counted is Counted.NUMBER_OF_GROUPS:
        return Laplace(sensitivity=histogram.cap, scale=scale, l0=1)
    return Laplace(l1=histogram.cap, scale=scale, l0=min(histogram.cap, histogram.cells))
