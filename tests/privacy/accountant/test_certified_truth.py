"""The certified intervals hold the truth, to 60 digits, on a random family of jobs with any delta."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import mpmath
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sfumato.privacy import ApproximateDP, Gaussian, PrivacyLoss, PureDP, compose

DIGITS = 60


class Job(NamedTuple):
    """Randomized responses with their counts, some told in full, and Gaussians."""

    responses: list[tuple[float, int]]
    infinite: float
    gaussians: list[tuple[float, int]]

    @property
    def loss(self) -> PrivacyLoss:
        parts: list[PrivacyLoss] = [PureDP(epsilon) * count for epsilon, count in self.responses]
        parts += [Gaussian(noise) * count for noise, count in self.gaussians]
        return compose([*parts, ApproximateDP(0.0, self.infinite)] if self.infinite else parts)

    def atoms(self) -> Iterator[tuple[mpmath.mpf, mpmath.mpf]]:
        """List the losses of all responses together with their probabilities, exactly."""
        distributions = []
        for epsilon, count in self.responses:
            e = mpmath.mpf(epsilon)
            p = 1 / (1 + mpmath.exp(-e))
            distributions.append(
                [
                    ((2 * k - count) * e, mpmath.binomial(count, k) * p**k * (1 - p) ** (count - k))
                    for k in range(count + 1)
                ]
            )
        for choice in itertools.product(*distributions):
            yield sum((loss for loss, _ in choice), mpmath.mpf(0)), mpmath.fprod(p for _, p in choice)

    def delta(self, epsilon: float) -> mpmath.mpf:
        """Return the divergence at epsilon: the Gaussian one at what the responses leave, on average."""
        variance = sum(count / mpmath.mpf(noise) ** 2 for noise, count in self.gaussians)
        mu, total = mpmath.sqrt(variance), mpmath.mpf(0)
        for loss, probability in self.atoms():
            rest = mpmath.mpf(epsilon) - loss
            if mu:
                far = mpmath.exp(rest) * mpmath.ncdf(-mu / 2 - rest / mu)
                total += probability * (mpmath.ncdf(mu / 2 - rest / mu) - far)
            elif rest < 0:
                total += probability * (1 - mpmath.exp(rest))
        infinite = mpmath.mpf(self.infinite)
        # The sum of so many terms may end a last digit above 1.
        return min(mpmath.mpf(1), infinite + (1 - infinite) * total)


jobs = st.builds(
    Job,
    st.lists(st.tuples(st.floats(0.01, 3.0), st.integers(1, 12)), min_size=1, max_size=2),
    st.sampled_from([0.0, 0.0, 1e-40, 1e-9]),
    st.lists(st.tuples(st.floats(0.3, 30.0), st.integers(1, 1000)), max_size=2),
)


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")  # where the truth is 0
@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(jobs, st.floats(0.0, 1.0))
def test_both_intervals_hold_the_truth(job: Job, share: float) -> None:
    with mpmath.workdps(DIGITS):
        loss = job.loss
        mu = math.sqrt(sum(count / noise**2 for noise, count in job.gaussians))
        reach = sum(epsilon * count for epsilon, count in job.responses) + mu * (mu / 2 + 12)
        epsilon = share * reach
        truth = job.delta(epsilon)
        lower, upper, tight = loss.delta_interval(epsilon)
        assert tight
        assert lower <= truth <= upper
        # Next to the greatest loss, how far it is off is known to a few digits of the loss only.
        if truth > 1e-290 and (job.gaussians or share < 1 - 1e-11):
            assert upper - lower <= 1.0001e-3 * upper
        if 1e-290 < truth < 0.5 and share > 0.02:
            # A delta as a float on either side of the truth bounds epsilon from the other side.
            assert loss.epsilon_interval(float(truth) * (1 + 1e-12)).lower <= epsilon * (1 + 1e-15)
            assert loss.epsilon_interval(float(truth) * (1 - 1e-12)).upper >= epsilon
