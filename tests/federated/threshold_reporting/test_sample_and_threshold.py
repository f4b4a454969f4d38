"""Sample-and-threshold as a mechanism: what is drawn is what is priced."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.federated import SampleAndThreshold, TrieHeavyHitters
from sfumato.federated.threshold_reporting.sample_and_threshold import sampled
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.privacy import PoissonSubsampled, ThresholdedSampling
from tests.chance import accepts_only, frequencies

MECHANISM = SampleAndThreshold(sampling_probability=0.25, threshold=10)


def test_the_counts_are_binomial_above_the_threshold() -> None:
    n, runs = 44, 2500
    shown = [MECHANISM.release({"x": n}, rng=seed).value.get("x", 0) for seed in range(runs)]
    assert all(count == 0 or count >= 10 for count in shown)

    def law(q: float) -> dict[int, float]:
        masses = {c: math.comb(n, c) * q**c * (1 - q) ** (n - c) for c in range(n + 1)}
        hidden = sum(masses.pop(c) for c in range(10))
        return {0: hidden} | masses

    accepts_only(frequencies(Counter(shown)), law(0.25), sampled_more=law(0.28), sampled_less=law(0.22))


def test_a_coin_is_exact() -> None:
    class Words(SimulatedSource):
        def words(self, count: int) -> Any:
            return np.array([0, (1 << 62) - 1, 1 << 62, (1 << 64) - 1], np.uint64)[:count]

    assert sampled(4, 0.25, Words(1)).tolist() == [True, True, False, False]


def test_a_small_probability_is_rounded_to_what_is_drawn_and_priced() -> None:
    mechanism = SampleAndThreshold(sampling_probability=1e-5, threshold=5)
    drawn = Fraction(mechanism.sampling_probability) * 2**64
    assert drawn.denominator == 1
    loss = mechanism.privacy_loss
    assert isinstance(loss, PoissonSubsampled)
    assert loss.sampling_probability * 2.0**-10 == mechanism.sampling_probability
    assert loss.loss == ThresholdedSampling(2.0**-10, 5)
    least = SampleAndThreshold(sampling_probability=2.0**-10, threshold=5)
    assert least.privacy_loss == ThresholdedSampling(2.0**-10, 5)


def test_calibration_finds_the_lowest_threshold() -> None:
    found = SampleAndThreshold.calibrated(epsilon=0.7, delta=1e-7, sampling_probability=0.2)
    lower = SampleAndThreshold(sampling_probability=0.2, threshold=found.threshold - 1)
    assert found.privacy_loss.epsilon(1e-7) <= 0.7 < lower.privacy_loss.epsilon(1e-7)
    for threshold in (1, 2, 3, 8, 11):
        delta = SampleAndThreshold(sampling_probability=0.2, threshold=threshold).privacy_loss.delta(0.7)
        exact = SampleAndThreshold.calibrated(epsilon=0.7, delta=delta, sampling_probability=0.2)
        assert exact.threshold == threshold
    with pytest.raises(ParameterError, match="sample fewer clients"):
        SampleAndThreshold.calibrated(epsilon=0.05, delta=1e-7, sampling_probability=0.5)


def test_estimates_are_debiased_and_their_errors_hold() -> None:
    q, n = 0.25, 4000
    found = [MECHANISM.estimates(MECHANISM.release({"x": n}, rng=seed))["x"] for seed in range(100)]
    assert all(each.estimate == each.sample_count / q for each in found)
    true_error = math.sqrt(n * (1 - q) / q)
    assert abs(np.mean([each.estimate for each in found]) - n) < 6.5 * true_error / 10
    assert all(abs(each.standard_error / true_error - 1) < 0.2 for each in found)


def test_survivals_show_no_count() -> None:
    quiet = SampleAndThreshold(sampling_probability=0.25, threshold=10, counts=False)
    release = quiet.release({"x": 4000, "y": 3}, rng=1)
    assert release.value == {"x": 10}
    assert release.loss == MECHANISM.privacy_loss
    with pytest.raises(ParameterError, match="with counts"):
        quiet.estimates(release)


def test_without_counts_the_order_does_not_tell_them() -> None:
    quiet = SampleAndThreshold(sampling_probability=0.25, threshold=10, counts=False)
    counts = {"x": 9000, "y": 90}
    first = [next(iter(quiet.shown(counts, rng=seed).value)) for seed in range(40)]
    assert 8 < first.count("y") < 32
    assert {next(iter(MECHANISM.shown(counts, rng=seed).value)) for seed in range(40)} == {"x"}


def test_the_least_probability_is_above_0() -> None:
    assert SampleAndThreshold(sampling_probability=1e-40, threshold=1).sampling_probability == 2.0**-64
    assert SampleAndThreshold(sampling_probability=1 - 2.0**-53, threshold=1).sampling_probability < 1


def test_counts_of_clients_that_tossed_their_own_coins() -> None:
    votes = sum(MECHANISM.takes_part(seed) for seed in range(400))
    assert 50 < votes < 150
    assert MECHANISM.shown({"x": votes, "y": 9}, rng=1).value == {"x": votes}
    assert MECHANISM.shown({"x": 10}, rng=1).value == {"x": 10}
    assert not SampleAndThreshold(sampling_probability=0.25, threshold=10).release({"x": 50}).simulated


def test_bad_parameters_and_releases_are_refused() -> None:
    for parameters, words in (
        ({"sampling_probability": 1.0, "threshold": 5}, "strictly between"),
        ({"sampling_probability": 0.5, "threshold": 0}, "at least 1"),
        ({"sampling_probability": 0.5, "threshold": 1025}, "at most 1024"),
        ({"sampling_probability": 0.5, "threshold": 5, "counts": 1}, "True or False"),
    ):
        with pytest.raises(ParameterError, match=words):
            SampleAndThreshold(**parameters)  # type: ignore[arg-type]
    other = TrieHeavyHitters(sampling_probability=0.5, threshold=3, levels=2).release(["a"] * 20, rng=1)
    with pytest.raises(ParameterError, match="of this mechanism"):
        MECHANISM.estimates(other)
