"""Noise that every aggregator adds, in full, to its share before the share leaves it.

>>> from sfumato.federated import AggregatorNoise, prio3_histogram
>>> prio3 = prio3_histogram(length=4, chunk_length=2)
>>> noise = AggregatorNoise.calibrated(prio3, epsilon=1.0)
>>> noise.privacy_loss.epsilon(), noise.mechanism.scale
(1.0, 2)

Guarantee: whoever sees the sum, all other aggregators' shares and their noise still does not see the noise
of one aggregator that follows the protocol, and that alone gives the privacy loss. It is stated under
replace-one: one client's valid measurement is another valid one. The sum has the noise of all aggregators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.federated.vdaf.prio3 import Prio3
from sfumato.mechanisms.base.rational import sqrt_up
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.randomness.source import Rng
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["AggregatorNoise"]

_STEPS: Final = 32
_RANGE: Final = 24 * _STEPS
_NEVER: Final = 1e-16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatorNoise:
    """Integer noise on an aggregate share, the same distribution at each aggregator.

    Parameters
    ----------
    mechanism : Laplace or Gaussian
        On whole numbers, under replace-one.
    shift : Shift
        The most that the sums differ when one valid measurement is replaced by another.
    shares : int, optional
        How many aggregators there are, each of whom adds such noise.

    Raises
    ------
    ParameterError
        If the mechanism's sensitivity is below the shift, or it is for other values or another relation.

    Notes
    -----
    Guarantee: ``privacy_loss``, under replace-one, of each aggregator's noise alone; conditions: at least one
    aggregator draws it and keeps it to itself, all follow the protocol otherwise, and the client's two
    possible measurements are both valid. Secret sharing makes it computational against an aggregator.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> from sfumato.privacy import Neighboring
    >>> one = Laplace(sensitivity=1, scale=3, l0=2, neighboring=Neighboring.REPLACE_ONE)
    >>> noise = AggregatorNoise(mechanism=one, shift=Shift.entries(2, 1))
    >>> len(noise.draw(5, rng=1)), round(noise.stddev, 2), noise.margin(0.95)
    (5, 5.97, 13)
    """

    mechanism: Laplace | Gaussian
    shift: Shift
    shares: int = 2

    def __post_init__(self) -> None:
        mechanism: object = self.mechanism
        if not isinstance(mechanism, Laplace | Gaussian) or not mechanism.integral:
            rule, remedy = "be Laplace or Gaussian noise on whole numbers", "pass an int sensitivity"
            _check.refuse_type("mechanism", rule, self.mechanism, remedy)
        if self.mechanism.neighboring is not Neighboring.REPLACE_ONE:
            rule, remedy = "be stated under replace-one", "pass neighboring=Neighboring.REPLACE_ONE"
            _check.refuse("mechanism", rule, self.mechanism, remedy)
        _check.instance("shift", self.shift, Shift)
        if not self.mechanism.covers(self.shift):
            _check.refuse("mechanism", f"cover {self.shift}", self.mechanism, "use calibrated")
        _check.integer("shares", self.shares, minimum=2)

    @classmethod
    def calibrated(cls, prio3: Prio3, *, epsilon: float, delta: float = 0.0) -> AggregatorNoise:
        """Return the noise with the smallest standard deviation that meets (epsilon, delta) for a function.

        Parameters
        ----------
        prio3 : Prio3
            Whose circuit states how far one measurement moves its sums.
        epsilon, delta : float
            The guarantee; Laplace noise, or with a positive delta Gaussian noise where that is less.

        Returns
        -------
        AggregatorNoise
        """
        _check.instance("prio3", prio3, Prio3)
        return cls._for_shift(prio3.circuit.shift, prio3.shares, epsilon, delta)

    @classmethod
    def _for_shift(cls, shift: Shift, shares: int, epsilon: float, delta: float) -> AggregatorNoise:
        relation = Neighboring.REPLACE_ONE
        each, both = {"sensitivity": shift.linf, "l0": shift.l0}, {"integral": True, "neighboring": relation}
        norm = each if shift.l0 * shift.linf <= shift.l1 else {"l1": shift.l1}
        found: list[Laplace | Gaussian] = [
            Laplace.calibrated(epsilon=epsilon, delta=delta, **norm, **both)  # type: ignore[arg-type]
        ]
        if delta > 0:
            root = {"l2": sqrt_up(Fraction(shift.l2_squared))}
            norm = each if shift.l0 * shift.linf**2 <= shift.l2_squared else root  # type: ignore[assignment]
            found.append(Gaussian.calibrated(epsilon=epsilon, delta=delta, **norm, **both))  # type: ignore[arg-type]
        return cls(mechanism=min(found, key=lambda each: each.stddev), shift=shift, shares=shares)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release, from one aggregator's noise alone."""
        return self.mechanism.privacy_loss

    @property
    def stddev(self) -> float:
        """Standard deviation of the whole noise on each sum, which all aggregators add together."""
        return math.sqrt(self.shares) * self.mechanism.stddev

    def margin(self, level: float) -> int:
        """Return a bound on the whole noise of one sum.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.

        Returns
        -------
        int
            With at least that probability the noise is no further from 0. It is some percent above the
            smallest such number: blocks of values are summed, of each its worst value.
        """
        risk = 1 - _check.unit_interval("level", level)
        width, tails = _tails(self.mechanism.distribution, self.shares)
        within = np.flatnonzero(2 * tails <= risk)
        if within.size:
            return int(within[0] + 1) * width - 1
        return self.shares * self.mechanism.distribution.half_width(1 - risk / self.shares)[0]

    def draw(self, count: int, rng: Rng = None) -> list[int]:
        """Return one aggregator's noise, of which nobody else may learn.

        Parameters
        ----------
        count : int
            For how many sums.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        list of int
        """
        zeros = np.zeros(_check.integer("count", count), np.int64)
        return [int(steps) for steps in np.atleast_1d(self.mechanism.release(zeros, rng).steps)]

    def added(self, prio3: Prio3, aggregate_share: bytes, rng: Rng = None) -> bytes:
        """Return an aggregator's share with its noise.

        Parameters
        ----------
        prio3 : Prio3
            The function; its sums must move by no more than ``shift``.
        aggregate_share : bytes
            The exact share.
        rng : None, int, numpy Generator or RandomSource
            As in `draw`.

        Returns
        -------
        bytes
            Read the sum with ``prio3.unshard(shares, signed=True)``: it may be negative.

        Raises
        ------
        ParameterError
            If the function's sums move further, or it has another number of shares.
        """
        self.check_covers(prio3)
        return prio3.added(aggregate_share, self.draw(prio3.circuit.output_length, rng))

    def check_covers(self, prio3: Prio3) -> None:
        """Refuse a function whose sums one measurement moves further than is paid for.

        Parameters
        ----------
        prio3 : Prio3
            The function.

        Raises
        ------
        ParameterError
            If its sums move further, or it has another number of shares.
        """
        if not prio3.circuit.shift.within(self.shift) or prio3.shares != self.shares:
            rule = f"cover {prio3.circuit.shift} at {prio3.shares} aggregators"
            _check.refuse("noise", rule, self, "use AggregatorNoise.calibrated for this function")


@lru_cache(maxsize=64)
def _tails(distribution: SymmetricDistribution, shares: int) -> tuple[int, NDArray[np.float64]]:
    """Return a width w, and upper bounds on P(S >= w), P(S >= 2 w), ... of a sum S of independent draws.

    A draw in [i w, (i + 1) w) leaves the others to reach m w - (i + 1) w + 1, of which (m - i - 1) w is less.
    """
    width, reach = max(1, int(distribution.stddev) // _STEPS), 1
    while reach < _RANGE and distribution.upper_tail(reach * width).upper > _NEVER:
        reach += _STEPS
    bounds = [distribution.upper_tail(i * width) for i in range(-reach, reach + 1)]
    upper = np.array([bound.upper for bound in bounds])
    lower = np.array([bound.lower for bound in bounds])
    blocks = np.maximum(upper[:-1] - lower[1:], 0.0)
    outside = float(upper[-1] + (1 - lower[0]))
    sums = upper
    for _ in range(shares - 1):
        # Below the range the tail is at most 1, above it at most that at the end.
        padded = np.concatenate([np.ones(2 * reach), sums, np.full(2 * reach, sums[-1])])
        whole = np.convolve(blocks, padded)[3 * reach - 1 : 5 * reach]
        sums = np.minimum(whole * (1 + 1e-9) + outside, 1.0)
    return width, sums[reach + 1 :]
