"""Published bounds: their figures, and that the exact loss is below them."""

from __future__ import annotations

import math

import pytest

from sfumato.errors import ParameterError
from sfumato.federated import sample_and_threshold_bound, trie_heavy_hitters_bound
from sfumato.privacy import ThresholdedSampling


def test_the_exact_loss_of_a_histogram_is_below_the_published_bound() -> None:
    for epsilon, alpha, threshold in ((1.0, 0.25, 20), (1.0, 0.05, 5), (0.1, 0.1, 8)):
        bound = sample_and_threshold_bound(epsilon, alpha, threshold)
        exact = ThresholdedSampling(alpha * -math.expm1(-epsilon), threshold).delta(epsilon)
        assert 0 < exact < bound.delta / 100
        assert bound.epsilon == epsilon


def test_the_exact_loss_of_a_trie_is_below_the_published_bound() -> None:
    bound = trie_heavy_hitters_bound(0.03, 10, 10)
    assert bound.epsilon == pytest.approx(-10 * math.log(0.7), rel=1e-14)
    assert bound.delta == pytest.approx(8 / 7 / math.factorial(10), rel=1e-12)
    exact = (ThresholdedSampling(0.03, 10) * 10).epsilon(bound.delta)
    assert 15 < bound.epsilon / exact < 18


def test_bounds_that_say_nothing_are_refused() -> None:
    with pytest.raises(ParameterError, match="inverse"):
        trie_heavy_hitters_bound(0.1, 10, 3)
    with pytest.raises(ParameterError, match="at least 4"):
        trie_heavy_hitters_bound(0.01, 3, 3)
    with pytest.raises(ParameterError, match="levels must be an integer of at least 1"):
        trie_heavy_hitters_bound(0.01, 4, 0)
    with pytest.raises(ParameterError, match="threshold must be an integer of at least 1"):
        sample_and_threshold_bound(1.0, 0.25, 0)
    with pytest.raises(ParameterError, match="alpha must be strictly between 0 and 1"):
        sample_and_threshold_bound(1.0, 1.0, 5)
    assert sample_and_threshold_bound(1.0, 0.9, 4).delta == 1.0


def test_the_least_parameters_are_allowed() -> None:
    # exp(1 / (1 + alpha)) alpha, the factor of each further report.
    assert sample_and_threshold_bound(1.0, 0.25, 1).delta == pytest.approx(math.exp(0.8) / 4, rel=1e-14)
    assert sample_and_threshold_bound(1.0, 0.25, 20).delta == pytest.approx(
        (math.exp(0.8) / 4) ** 20, rel=1e-12
    )
    least = trie_heavy_hitters_bound(0.125, 4, 1)
    assert least.epsilon == pytest.approx(math.log(2), rel=1e-14)
    assert least.delta == pytest.approx(2 / 24, rel=1e-14)
