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
from scipy.special import ndtr

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
        The smallest estimated share, in standard deviations of a share of 0.
    p_value : float
        Of both together: how likely honest reports are as far off, at most.

    Notes
    -----
    The p-value is twice the smaller one of two (Bonferroni): of the sum, two-sided, and of the lowest share,
    times the number of categories. Both are those of the normal distribution, which the sums of independent
    reports approach; it is no bound for few reports.

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
            How often honest reports may be rejected, for many reports.

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
    variance = error_model.sum_variance(len(raw))
    if not reports or variance is None or not np.isfinite(raw).all():
        return None
    found = error_model.total(raw)
    stddev = math.sqrt(max(variance, 0.0) / reports)
    if stddev < _FIXED:
        stddev, of_sum = 0.0, 1.0
    else:
        of_sum = 2 * float(ndtr(-abs(found - 1) / stddev))
    nothing = np.sqrt(error_model.variance(np.zeros(len(raw))) / reports)
    lowest = float((raw / nothing).min())
    of_lowest = len(raw) * float(ndtr(lowest))
    return FitTest(total=found, stddev=stddev, lowest=lowest, p_value=min(1.0, 2 * min(of_sum, of_lowest)))
