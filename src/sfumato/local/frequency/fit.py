r"""Whether reports can come of a protocol at all, whatever is true: a test that forged ones may fail.

A device that lies sends whatever well-formed bytes it likes. Some of that shows. The shares of all categories
sum to 1, and for most protocols the number of values that a report supports (the bits that are set) has a
known mean and variance, the same whatever is true: the sum of the estimated shares is that number, in other
units. And no share is below 0 by more than chance. Nothing is learned about a person by such a test: it reads
the estimate alone.

A forger who draws reports as an honest device would for an answer of its choice passes every test. What that
can do is `sfumato.local.Estimate.forged_bias`.

Cao, Jia, Gong (2021), "Data poisoning attacks to local differential privacy protocols", describe such
forgers; their "maximal gain" is the upper end of that bias, for one share.

>>> from sfumato import local
>>> oracle = local.OptimizedUnaryEncoding(epsilon=1.0, domain=local.Domain(range(100)))
>>> aggregator = oracle.aggregator()
>>> aggregator.add_batch(oracle.randomize_batch([7] * 9500, rng=1))
9500
>>> aggregator.estimate().fit.rejected()
False

Five hundred reports with all bits set are well-formed, and move every share by 0.16. They show:

>>> forged = np.full((500, oracle.device.width), 255, np.uint8)
>>> oracle.device.layout.stamp(forged)
>>> aggregator.add_batch(forged)
500
>>> aggregator.estimate().fit.rejected(), round(aggregator.estimate().fit.total)
(True, 17)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from sfumato import _check
from sfumato.local.frequency.variance import Array, ErrorModel

__all__ = ["FitTest", "fit_of"]

_FIXED: Final = 1e-9
"""A sum whose standard deviation is less is the same for all well-formed reports."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FitTest:
    r"""How far an estimate is from what the protocol allows, whatever is true.

    Parameters
    ----------
    total : float
        The sum of the estimated shares; 1 on average.
    stddev : float
        Its standard deviation for honest reports, or more; 0 where all well-formed reports have the same sum,
        so that nothing is tested by it.
    lowest : float
        The smallest estimated share, in standard deviations of a share of 0, the greatest that it can have.
    p_value : float
        Of both together: how likely honest reports are as far off, at most.

    Notes
    -----
    The p-value is twice the smaller one of two (Bonferroni): of the sum, two-sided, and of the lowest share,
    times the number of categories. It is a bound for any number of reports and whatever is true, by
    Bernstein's inequality: n independent parts of variance at most v, none more than m below (or above) its
    mean, have a mean that is t below (or above) its own with a probability of at most
    :math:`\exp(-n t^2 / (2 (v + m t / 3)))`. The lowest share is compared with one of 0: a respondent of a
    category adds no less to it, in distribution, than one of another category. So the p-value of honest
    reports is larger than a uniform one: at 1 % fewer than 1 % of collections are rejected.

    References
    ----------
    Boucheron, Lugosi, Massart (2013), "Concentration inequalities", corollary 2.11.

    Examples
    --------
    >>> from sfumato import local
    >>> oracle = local.OptimizedUnaryEncoding(epsilon=1.0, domain=local.Domain(range(100)))
    >>> fit = oracle.simulate([100] * 100, rng=1).fit
    >>> fit.rejected(), round(fit.stddev, 2)
    (False, 0.19)
    """

    total: float
    stddev: float
    lowest: float
    p_value: float

    def rejected(self, false_positive_rate: float = 1e-3) -> bool:
        """Return whether the reports do not fit the protocol.

        Parameters
        ----------
        false_positive_rate : float
            How often honest reports may be rejected, at most.

        Returns
        -------
        bool
            False also where no forgery could show.
        """
        return self.p_value < _check.unit_interval("false_positive_rate", false_positive_rate)

    def __str__(self) -> str:
        found = "do not fit" if self.rejected() else "fit"
        summed = f"the shares sum to {self.total:.4g}"
        expected = f"1 with standard deviation {self.stddev:.2g}" if self.stddev else "always 1"
        low = f"the lowest is {self.lowest:.3g} standard deviations from 0"
        return f"reports {found} the protocol: {summed} ({expected}), {low}; p = {self.p_value:.2g}"


def fit_of(raw: Array, reports: int, error_model: ErrorModel) -> FitTest | None:
    """Return the test of an estimate; None without reports, or where its sum has no known distribution.

    Parameters
    ----------
    raw : array
        Unbiased estimates of all shares.
    reports : int
        How many there were.
    error_model : ErrorModel
        Its `sum_variance` is that of one report's part in its `total`.

    Returns
    -------
    FitTest or None
    """
    variance, reach = error_model.sum_variance(len(raw)), error_model.total_reach(len(raw))
    if not reports or variance is None or reach is None or not np.isfinite(raw).all():
        return None
    found = error_model.total(raw)
    stddev = math.sqrt(max(variance, 0.0) / reports)
    if stddev < _FIXED:
        stddev, of_sum = 0.0, 1.0
    else:
        ends = ((found - 1, reach[1] - 1), (1 - found, 1 - reach[0]))
        of_sum = 2 * min(_tail(off, variance, most, reports) for off, most in ends)
    nothing = float(error_model.variance(np.zeros(1))[0])  # of one share alone: the greatest
    lowest = float(raw.min())
    of_lowest = len(raw) * _tail(-lowest, nothing, -(error_model.reach or reach)[0], reports)
    return FitTest(
        total=found,
        stddev=stddev,
        lowest=lowest / math.sqrt(nothing / reports),
        p_value=min(1.0, 2 * min(of_sum, of_lowest)),
    )


def _tail(off: float, variance: float, most: float, reports: int) -> float:
    """Return Bernstein's bound on the probability that a mean is so far from its own."""
    if off <= 0:
        return 1.0
    return math.exp(-reports * off * off / (2 * (variance + most * off / 3)))
