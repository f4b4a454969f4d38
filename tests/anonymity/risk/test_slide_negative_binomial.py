from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.anonymity.risk.slide_negative_binomial import (
    SlideNegativeBinomial,
    fit_slide_negative_binomial,
    shlosser_classes,
)


def test_expected_counts_are_those_of_thinned_class_sizes() -> None:
    # By the sum over class sizes. ARX (ModelSNB at 003f9dd) multiplies by (1 - (1-f)(1-b)) ** (a+2) where the
    # second derivative of the generating function divides by it, and so has another number of pairs.
    model = SlideNegativeBinomial(classes=1000.0, alpha=0.7, beta=0.2)
    one = two = members = 0.0
    for size in range(1, 400):
        extra = size - 1
        log = math.lgamma(extra + 0.7) - math.lgamma(0.7) - math.lgamma(extra + 1)
        many = 1000 * math.exp(log + 0.7 * math.log(0.2) + extra * math.log(0.8))
        one += many * size * 0.3 * 0.7 ** (size - 1)
        two += many * math.comb(size, 2) * 0.3**2 * 0.7 ** (size - 2)
        members += many * size
    assert model.expected(0.3) == pytest.approx((one, two), rel=1e-12)
    assert model.members == pytest.approx(members, rel=1e-12)
    assert model.uniques == pytest.approx(1000 * 0.2**0.7, rel=1e-12)
    wrong = two * (1 - 0.7 * 0.8) ** (2 * (0.7 + 2))
    assert abs(wrong / two - 1) > 0.5


def test_the_fit_gives_the_single_rows_and_the_pairs() -> None:
    rng = np.random.default_rng(9)
    people = 1 + rng.negative_binomial(0.6, 0.25, 20_000)
    sampled = rng.binomial(people, 0.3)
    sizes = sampled[sampled > 0]
    found = fit_slide_negative_binomial(sizes, int(people.sum()))
    assert found is not None
    observed = (np.count_nonzero(sizes == 1), np.count_nonzero(sizes == 2))
    assert found.expected(sizes.sum() / people.sum()) == pytest.approx(observed, rel=1e-6)
    assert found.uniques == pytest.approx(np.count_nonzero(people == 1), rel=0.25)


def test_the_number_of_classes_follows_the_estimator() -> None:
    sizes, q = np.array([1, 1, 2, 3]), 0.4
    counts = {1: 2, 2: 1, 3: 1}
    first = sum(i * q**2 * (1 - q**2) ** (i - 1) * f for i, f in counts.items())
    second = sum((1 - q) ** i * ((1 + q) ** i - 1) * f for i, f in counts.items())
    third = sum((1 - q) ** i * f for i, f in counts.items())
    fourth = sum(i * q * (1 - q) ** (i - 1) * f for i, f in counts.items())
    expected = 4 + 2 * (first / second) * (third / fourth) ** 2
    assert shlosser_classes(sizes, q) == pytest.approx(expected, rel=1e-12)


def test_a_sample_without_pairs_has_no_fit() -> None:
    assert fit_slide_negative_binomial(np.array([1, 1, 3]), 50) is None
