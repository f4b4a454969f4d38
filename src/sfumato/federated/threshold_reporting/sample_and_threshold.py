"""Sample-and-threshold: count a secret sample of the clients, and show the counts that reach a threshold.

>>> mechanism = SampleAndThreshold.calibrated(epsilon=1.0, delta=1e-6, sampling_probability=0.25)
>>> mechanism.threshold
14
>>> release = mechanism.release({"red": 4000, "green": 300, "blue": 3}, rng=1)
>>> {key: found.sample_count for key, found in mechanism.estimates(release).items()}
{'red': 1011, 'green': 78}

Guarantee: exact differential privacy from the sampling alone, without noise: `ThresholdedSampling`. It holds
against whoever sees the release; a server that sees who was sampled knows a part of the sample itself, and
against it epsilon is infinite.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.calibration import PrivacyTarget
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.selection.key_counts import descending_order, positive_counts
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.leaves.thresholded_sampling import ThresholdedSampling
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.poisson import PoissonSubsampled

__all__ = ["EstimatedCount", "SampleAndThreshold", "sampled"]

_LEAST: Final = 2.0**-10
_BLOCK: Final = 1 << 22


class EstimatedCount(NamedTuple):
    """What the count of a sample says of the count of all clients.

    Attributes
    ----------
    sample_count : int
        Clients in the sample that hold the value.
    estimate : float
        The count divided by the sampling probability.
    standard_error : float
        Of the estimate, with the count itself in place of its mean.

    Examples
    --------
    >>> EstimatedCount(sample_count=100, estimate=400.0, standard_error=34.6).estimate
    400.0
    """

    sample_count: int
    estimate: float
    standard_error: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampleAndThreshold(Mechanism):
    """Counts of a sample by value, of those values that enough of the sample hold.

    Parameters
    ----------
    sampling_probability : float
        With which each client takes part, independently of all others; rounded to a multiple of 2**-64, above
        0 and below 1.
    threshold : int
        The smallest count that is shown, from 1 to 1024.
    counts : bool
        Whether the counts are shown, or only which values reached the threshold. The loss is the same.

    Notes
    -----
    Guarantee: `ThresholdedSampling`, exact for sampling probabilities from 2**-10 on; below, a bound by
    sampling twice. Conditions: add/remove of one client, which holds one value; the sample is drawn by
    secure randomness and stays secret. A server that receives the votes one by one and knows who sent them
    is not covered: collect them by secure aggregation, or through a shuffler.

    References
    ----------
    Cormode, Bharadwaj (2022), "Sample-and-threshold differential privacy: histograms and applications".

    Examples
    --------
    >>> mechanism = SampleAndThreshold(sampling_probability=0.1, threshold=10)
    >>> round(mechanism.privacy_loss.epsilon(1e-6), 3)
    0.468
    """

    sampling_probability: float
    threshold: int
    counts: bool = True

    def __post_init__(self) -> None:
        remedy = "pass the chance with which each client takes part"
        probability = _check.unit_interval("sampling_probability", self.sampling_probability, remedy)
        units = max(1, round(probability * 2.0**64))
        object.__setattr__(self, "sampling_probability", math.ldexp(units, -64))
        shown: object = self.counts
        if not isinstance(shown, bool):
            _check.refuse("counts", "be True or False", shown, "say whether counts are released")
        object.__setattr__(self, "threshold", _check.integer("threshold", self.threshold, minimum=1))
        _ = self.privacy_loss

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, sampling_probability: float, counts: bool = True
    ) -> SampleAndThreshold:
        """Return the mechanism with the lowest threshold that meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            Delta must be positive.
        sampling_probability : float
            As in the class.
        counts : bool
            As in the class.

        Returns
        -------
        SampleAndThreshold

        Raises
        ------
        ParameterError
            If no threshold up to 1024 meets it.
        """
        request = PrivacyTarget.approximate(epsilon, delta, "no threshold has delta 0")

        def at(threshold: int) -> SampleAndThreshold:
            return cls(sampling_probability=sampling_probability, threshold=threshold, counts=counts)

        def met(threshold: int) -> bool:
            return at(threshold).privacy_loss.delta(request.epsilon) <= request.delta

        high = 1
        while not met(high):
            if high == 1024:
                rule = "leave a threshold of at most 1024 for this epsilon and delta"
                remedy = "sample fewer clients"
                _check.refuse("sampling_probability", rule, sampling_probability, remedy)
            high *= 2
        return at(bisect_left(range(high), True, lo=1, key=met))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        q = self.sampling_probability
        if q >= _LEAST:
            return ThresholdedSampling(q, self.threshold)
        return PoissonSubsampled(ThresholdedSampling(_LEAST, self.threshold), q / _LEAST)

    @property
    def neighboring(self) -> Neighboring:
        """Add/remove of one client."""
        return Neighboring.ADD_REMOVE

    def takes_part(self, rng: Rng = None) -> bool:
        """Return whether a client takes part: the client's own secret coin.

        Parameters
        ----------
        rng : None, int, numpy Generator or RandomSource
            As in `release`.

        Returns
        -------
        bool
        """
        return bool(sampled(1, self.sampling_probability, random_source(rng))[0])

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Sample the holders of each value, and show what reaches the threshold.

        Parameters
        ----------
        value : mapping of keys to ints
            How many clients hold each value; private.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            A dict of values to counts, the largest first; or to the threshold, if counts are not shown.
        """
        source = random_source(rng)
        keys, totals = positive_counts(value)
        drawn = np.array([self._binomial(total, source) for total in totals.tolist()], dtype=np.int64)
        return self._shown(keys, drawn, source)

    def shown(self, sampled_counts: Any, rng: Rng = None) -> Release:
        """Show what reaches the threshold of counts of clients that tossed `takes_part` themselves.

        Parameters
        ----------
        sampled_counts : mapping of keys to ints
            How many clients took part and hold each value; private.
        rng : None, int, numpy Generator or RandomSource
            For the order of equal counts.

        Returns
        -------
        Release
        """
        keys, counts = positive_counts(sampled_counts)
        return self._shown(keys, counts, random_source(rng))

    def estimates(self, release: Release) -> dict[Hashable, EstimatedCount]:
        """Return the debiased counts of a release, with their standard errors.

        Parameters
        ----------
        release : Release
            With counts.

        Returns
        -------
        dict of EstimatedCount

        Raises
        ------
        ParameterError
            If the release is of another mechanism, or without counts.

        Notes
        -----
        Before the threshold the estimate is unbiased with the variance n (1 - q) / q. That a value is shown
        lifts the estimate of one whose expected sampled count is near the threshold; a value that is not
        shown may have any number of holders up to about threshold / q.
        """
        _check.instance("release", release, Release, "pass what release returned")
        if release.loss != self.privacy_loss or not self.counts:
            rule = "be a release of this mechanism, with counts"
            _check.refuse_type("release", rule, release, "pass what release returned")
        q = self.sampling_probability
        return {
            key: EstimatedCount(count, count / q, math.sqrt(count * (1 - q)) / q)
            for key, count in release.value.items()
        }

    def _binomial(self, total: int, source: RandomSource) -> int:
        found = 0
        for start in range(0, total, _BLOCK):
            found += int(
                sampled(min(_BLOCK, total - start), self.sampling_probability, source).sum(dtype=np.int64)
            )
        return found

    def _shown(self, keys: list[Hashable], counts: NDArray[np.int64], source: RandomSource) -> Release:
        order = descending_order(counts if self.counts else 0 * counts, source.words(counts.size))
        value = {
            keys[index]: int(counts[index]) if self.counts else self.threshold
            for index in order.tolist()
            if counts[index] >= self.threshold
        }
        return self._release_as(Release, value, source)


def sampled(count: int, probability: float, source: RandomSource) -> NDArray[np.bool_]:
    """Return independent coins, each heads with a probability that is a multiple of 2**-64 below 1.

    >>> from sfumato.numerics.randomness.source import SimulatedSource
    >>> sampled(4, 2.0**-64, SimulatedSource(1)).tolist()
    [False, False, False, False]
    """
    return source.words(count) < np.uint64(int(math.ldexp(probability, 64)))
