"""Nebula: STAR with sampling and dummy reports, which is differential privacy.

>>> from sfumato.federated import Star
>>> star = Star(threshold=20, epoch=b"2026-11", value_bytes=16)
>>> plan = Nebula.calibrated(star, epsilon=2.0, delta=1e-6, sampling_probability=0.25)
>>> plan.privacy_loss.epsilon(1e-6) <= 2.0
True
>>> def report(value: bytes) -> bytes:
...     return star.report(value, randomness=star.local_randomness(value))
>>> reports = [report(b"red") for _ in range(400) if plan.takes_part()] + plan.dummy_reports()
>>> set(plan.estimates(star.aggregate(reports)))
{b'red'}

A client that does not take part sends nothing. Reports and dummies must be shuffled, and sent without names.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np

from sfumato import _check
from sfumato.federated.threshold_reporting.sample_and_threshold import EstimatedCount, SampleAndThreshold
from sfumato.federated.threshold_reporting.star import Star, StarResult
from sfumato.mechanisms.base.calibration import PrivacyTarget
from sfumato.mechanisms.noise.truncated_laplace import TruncatedLaplace
from sfumato.numerics.randomness.source import Rng
from sfumato.privacy.leaves.declared import ApproximateDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.poisson import PoissonSubsampled

__all__ = ["Nebula"]

_CLOSE: Final = 1.001
_LARGEST: Final = 64.0
"""An epsilon at which dummies hide nothing."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Nebula:
    r"""STAR in which clients take part by lot and a party adds groups of dummy reports.

    Parameters
    ----------
    star : Star
        The collection; its threshold is at most 1024.
    sampling_probability : float
        With which each client takes part, by a secret coin of its own.
    dummies : TruncatedLaplace
        For each size from 1 to ``threshold - 1`` so many groups of dummies are added: its limit plus noise,
        which is never negative. On whole numbers, of sensitivity 1, two entries of which move.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: ``privacy_loss``, under adding or removing one client that holds one value, against the
    aggregation server and everyone who sees what it learns: values and counts from the threshold on, and the
    sizes of all hidden groups. Conditions: the coins are secret; reports come through a shuffler; the party
    that draws the dummies and the holder of the oblivious function's key do not collude with the server; the
    function's outputs are used, and not `Star.local_randomness`. Below the threshold groups of dummies and of
    reports are alike to the server in the random oracle model (`Star`), so that it learns sizes alone.

    *Proof.* The view is a function of the counts that reached the threshold :math:`\tau`, and for each size
    below of the number of hidden groups of that size, with noise. One client moves the sampled count of its
    own value only, from S of the others to S + C with a coin C of probability q. Whether that count is shown,
    and which, has the loss of `ThresholdedSampling`. Given that it is hidden, the view without the client is
    that of S given :math:`S \le \tau - 1`. With the client it is the same view where C = 0, and else, with a
    probability of at most q, that of S + 1 given :math:`S \le \tau - 2`: a Poisson-subsampled step. Let F be
    the cumulative distribution of S. As it is log-concave, :math:`F(k-1) F(\tau-1) \le F(k) F(\tau-2)`, so
    that S given :math:`S \le \tau - 1` is at least S given :math:`S \le \tau - 2`, and at most that and 1, in
    the coupling by quantiles. So the two views differ by a hidden group that has one report more, or not: one
    number of groups falls by 1 and the next one rises by 1, which two draws of noise hide; divergences are
    convex in such mixtures. What is shown and what is hidden compose.

    A group of a client that sends many reports, or of forged ones, is as visible as the client makes it.

    References
    ----------
    Shahin Shamsabadi and others (2024), "Nebula: efficient, private and accurate histogram estimation"
    (arXiv 2409.09676): STAR with sampling and dummies. Only its abstract was at hand: the distribution of the
    dummies, the price and its proof are this project's own.

    Examples
    --------
    >>> from sfumato.federated import Star
    >>> from sfumato.mechanisms import TruncatedLaplace
    >>> star = Star(threshold=20, epoch=b"1", value_bytes=8)
    >>> dummies = TruncatedLaplace.calibrated(sensitivity=1, epsilon=1.0, delta=1e-7, l0=2)
    >>> plan = Nebula(star=star, sampling_probability=0.25, dummies=dummies)
    >>> plan.expected_dummies, round(plan.privacy_loss.epsilon(2e-6), 2)
    (5890, 0.84)
    """

    star: Star
    sampling_probability: float
    dummies: TruncatedLaplace

    def __post_init__(self) -> None:
        _check.instance("star", self.star, Star, "pass Star(threshold=...)")
        sampling = SampleAndThreshold(
            sampling_probability=self.sampling_probability, threshold=self.star.threshold
        )
        object.__setattr__(self, "sampling_probability", sampling.sampling_probability)
        noise: object = self.dummies
        remedy = "pass TruncatedLaplace.calibrated(sensitivity=1, epsilon=..., delta=..., l0=2)"
        if not isinstance(noise, TruncatedLaplace):
            _check.refuse_type("dummies", "be TruncatedLaplace", noise, remedy)
        if not noise.integral or noise.sensitivity != 1 or noise.l0 < 2:
            _check.refuse("dummies", "be of whole numbers, sensitivity 1 and two entries", noise, remedy)
        if noise.neighboring is not Neighboring.ADD_REMOVE:
            _check.refuse("dummies", "be stated under add/remove", noise, remedy)

    @classmethod
    def calibrated(cls, star: Star, *, epsilon: float, delta: float, sampling_probability: float) -> Nebula:
        """Return the plan with the fewest dummies that meets (epsilon, delta).

        Parameters
        ----------
        star : Star
        epsilon, delta : float
            Delta must be positive; half of it is for the dummies' limit.
        sampling_probability : float
            As in the class.

        Returns
        -------
        Nebula

        Raises
        ------
        ParameterError
            If sampling with this threshold alone costs as much.
        """
        request = PrivacyTarget.approximate(epsilon, delta, "a limit on the dummies has a delta")
        probability = _check.unit_interval("sampling_probability", sampling_probability)
        limit_delta = min(0.5, request.delta / (2 * probability))

        def at(part: float) -> Nebula:
            noise = TruncatedLaplace.calibrated(sensitivity=1, epsilon=part, delta=limit_delta, l0=2)
            return cls(star=star, sampling_probability=sampling_probability, dummies=noise)

        def met(part: float) -> bool:
            return at(part).privacy_loss.delta(request.epsilon) <= request.delta

        low, high = request.epsilon / 1024, _LARGEST
        if not met(low):
            rule = "leave room for dummies at this threshold, epsilon and delta"
            remedy = "sample fewer clients, or raise the threshold"
            _check.refuse("sampling_probability", rule, sampling_probability, remedy)
        while high > low * _CLOSE:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if met(middle) else (low, middle)
        return at(low)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one collection, to be charged before the first report is sent."""
        epsilon, delta = self.dummies.privacy_loss.pure()  # of both entries together
        hidden = PoissonSubsampled(ApproximateDP(epsilon, delta), self.sampling_probability)
        return self._sampling.privacy_loss + hidden

    @property
    def _sampling(self) -> SampleAndThreshold:
        return SampleAndThreshold(
            sampling_probability=self.sampling_probability, threshold=self.star.threshold
        )

    @property
    def _limit(self) -> int:
        return math.ceil(Fraction(self.dummies.limit))

    @property
    def expected_dummies(self) -> int:
        """How many dummy reports are sent on average: the limit of each size times the size."""
        return self._limit * math.comb(self.star.threshold, 2)

    def takes_part(self, rng: Rng = None) -> bool:
        """Return whether a client takes part: the client's own secret coin, one for each collection.

        Parameters
        ----------
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        bool
        """
        return self._sampling.takes_part(rng)

    def dummy_groups(self, rng: Rng = None) -> list[int]:
        """Return how many groups of dummies there are of each size, of which the server must not learn.

        Parameters
        ----------
        rng : None, int, numpy Generator or RandomSource
            As in `takes_part`.

        Returns
        -------
        list of int
            From size 1 to the threshold less one.
        """
        zeros = np.zeros(self.star.threshold - 1, np.int64)
        noise = np.atleast_1d(self.dummies.release(zeros, rng).value)
        return [self._limit + int(each) for each in noise]

    def dummy_reports(self, rng: Rng = None) -> list[bytes]:
        """Return the dummy reports of one collection, to be shuffled among the clients'.

        Parameters
        ----------
        rng : None, int, numpy Generator or RandomSource
            Of the number of groups.

        Returns
        -------
        list of bytes
            Groups of equal random values, none large enough to be opened.
        """
        reports = []
        for less, groups in enumerate(self.dummy_groups(rng)):
            for _ in range(groups):
                randomness = secrets.token_bytes(32)
                reports += [self.star.report(b"", randomness=randomness) for _ in range(less + 1)]
        return reports

    def estimates(self, result: StarResult) -> dict[bytes, EstimatedCount]:
        """Return the debiased counts of the values that were opened, with their standard errors.

        Parameters
        ----------
        result : StarResult
            Of this collection, dummies included: they open no value.

        Returns
        -------
        dict of bytes to EstimatedCount

        Notes
        -----
        Before the threshold the estimate is unbiased; see `SampleAndThreshold.estimates`.
        """
        _check.instance("result", result, StarResult, "pass what Star.aggregate returned")
        q = self.sampling_probability
        return {
            value: EstimatedCount(found.count, found.count / q, math.sqrt(found.count * (1 - q)) / q)
            for value, found in result.revealed.items()
        }
