"""The estimate from noisy sums: a number, its variance, and intervals by the distribution of the noise."""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass, field
from typing import ClassVar, final

from sfumato import _check
from sfumato._display import html_facts
from sfumato.local.base.report_facts import report_facts
from sfumato.local.shuffle.noise import SharedNoise
from sfumato.numerics.interval import Interval
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["NoisyNumber", "ShuffledMeanEstimate", "ShuffledSumEstimate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyNumber(ABC):
    """A number with noise of a known distribution.

    Parameters
    ----------
    reports : int
        How many clients were counted; 0 where messages were missing, or too many.
    value : float
        Unbiased, and perhaps beyond the limits; NaN without reports.
    unit : float
        What a step of the noise is worth.
    noise : SharedNoise
        In steps, as if all who reported were honest.
    limits : tuple of float
        Between which the true number lies; infinite if they are unknown.
    loss : PrivacyLoss
        Of each respondent, once the messages are mixed.
    simulated : bool
        Whether a report's randomness followed from a seed.

    Notes
    -----
    The target is the sum or the mean of the respondents' own numbers. The error is the noise, whose
    distribution is known exactly, and the rounding of numbers to the grid, which is taken at its maximum.

    Examples
    --------
    Sums and means of the shuffle model are such numbers:

    >>> from sfumato.local import shuffle
    >>> protocol = shuffle.ShuffledMean(epsilon=1.0, delta=1e-6, clients=100, bounds=(0.0, 1.0))
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([0.25] * 100, rng=1)) == 100 * protocol.messages
    True
    >>> estimate = aggregator.estimate()
    >>> isinstance(estimate, NoisyNumber), estimate.interval(0.9999).lower < 0.25
    (True, True)
    """

    _QUANTITY: ClassVar[str] = "number"

    reports: int
    value: float
    unit: float
    noise: SharedNoise = field(repr=False)
    limits: tuple[float, float]
    loss: PrivacyLoss = field(repr=False)
    simulated: bool = False

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        facts = {self._QUANTITY: f"{self.value:.6g}", "95 % interval": f"{lower:.6g} to {upper:.6g}"}
        facts |= report_facts(self.loss, simulated=self.simulated)
        return html_facts(f"Estimated {self._QUANTITY}, of {self.reports:,} reports that were mixed", facts)

    @property
    def variance(self) -> float:
        """Variance of the value, with rounding at its maximum; infinite without reports."""
        return self.unit**2 * self.noise.variance if self.reports else math.inf

    @property
    def stddev(self) -> float:
        """Standard deviation of the value."""
        return math.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> Interval[float]:
        """Return an interval which holds the true number with the stated probability.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.

        Returns
        -------
        Interval
            Within the limits; all of them without reports.
        """
        level = _check.unit_interval("level", level)
        if not self.reports:
            return Interval(*self.limits)
        half = self.unit * self.noise.half_width(level)
        low, high = (min(max(self.value + end, self.limits[0]), self.limits[1]) for end in (-half, half))
        return Interval(low, high)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledSumEstimate(NoisyNumber):
    """The sum of the respondents' numbers; see `NoisyNumber`.

    Examples
    --------
    >>> from sfumato.local import shuffle
    >>> protocol = shuffle.ShuffledSum(epsilon=1.0, delta=1e-6, clients=100, bounds=(0.0, 1.0))
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([0.25] * 100, rng=1)) == 100 * protocol.messages
    True
    >>> estimate = aggregator.estimate()
    >>> lower, upper, _ = estimate.interval(0.9999)
    >>> lower < 25 < upper, estimate.total == estimate.value
    (True, True)
    """

    _QUANTITY: ClassVar[str] = "sum"

    @property
    def total(self) -> float:
        """The estimated sum; unbiased."""
        return self.value


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledMeanEstimate(NoisyNumber):
    """The mean of the respondents' numbers; see `NoisyNumber`.

    Examples
    --------
    >>> from sfumato.local import shuffle
    >>> protocol = shuffle.ShuffledMean(epsilon=1.0, delta=1e-6, clients=100, bounds=(0.0, 1.0))
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([0.25] * 100, rng=1)) == 100 * protocol.messages
    True
    >>> estimate = aggregator.estimate()
    >>> lower, upper, _ = estimate.interval(0.9999)
    >>> lower < 0.25 < upper, estimate.mean == estimate.value
    (True, True)
    """

    _QUANTITY: ClassVar[str] = "mean"

    @property
    def mean(self) -> float:
        """The estimated mean; unbiased."""
        return self.value
