"""Max-information: the tail of the likelihood ratio of sample and transcript, by enumeration."""

from __future__ import annotations

import itertools
import math

import pytest

from sfumato.adaptive import corrected_p_value, max_information, max_information_bound
from sfumato.errors import ParameterError


def likelihood_ratios(epsilon: float, rows: int, share: float) -> list[tuple[float, float]]:
    """Return log ratios and probabilities of a sample and its randomized responses."""
    lie = 1 / (1 + math.exp(epsilon))
    one = share * (1 - lie) + (1 - share) * lie
    single = [
        (math.log((1 - lie if row == coin else lie) / (one if coin else 1 - one)),
         (share if row else 1 - share) * (1 - lie if row == coin else lie))
        for row, coin in itertools.product([0, 1], repeat=2)
    ]  # fmt: skip
    found = [(0.0, 1.0)]
    for _ in range(rows):
        found = [(a + b, p * q) for a, p in found for b, q in single]
    return found


def test_the_tail_is_bounded_and_nothing_is_wasted_by_much() -> None:
    for epsilon, rows, share in itertools.product((0.1, 1.0, 3.0), (1, 4, 6), (0.5, 0.05)):
        ratios = likelihood_ratios(epsilon, rows, share)
        for beta in (0.2, 0.01):
            allowed = max_information(epsilon, rows=rows, beta=beta)
            assert sum(p for ratio, p in ratios if ratio > allowed) <= beta
        most = max(ratio for ratio, _ in ratios)
        assert most <= max_information(epsilon, rows=rows, beta=0.0)


def test_an_event_becomes_no_likelier_than_the_corrected_p_value() -> None:
    epsilon, rows = 0.5, 6
    ratios = sorted(likelihood_ratios(epsilon, rows, 0.5), reverse=True)  # the worst events come first
    joint = independent = 0.0
    for ratio, probability in ratios:
        joint += probability
        independent += probability * math.exp(-ratio)
        for beta in (0.0, 0.01, 0.1):
            assert (
                joint
                <= corrected_p_value(min(independent, 1.0), epsilon=epsilon, rows=rows, beta=beta) + 1e-12
            )


def test_numbers_are_the_formulas() -> None:
    n, epsilon, beta = 1000, 0.01, 0.01
    expected = n * epsilon**2 / 8 + epsilon * math.sqrt(n * math.log(100) / 2)
    assert max_information(epsilon, rows=n, beta=beta) == pytest.approx(expected, rel=1e-9)
    assert max_information(epsilon, rows=1, beta=1e-9) == pytest.approx(epsilon, rel=1e-9)
    corrected = corrected_p_value(1e-4, epsilon=epsilon, rows=n, beta=beta)
    assert corrected == pytest.approx(math.exp(expected) * 1e-4 + beta, rel=1e-9)
    assert corrected_p_value(0.9, epsilon=epsilon, rows=n, beta=beta) == 1.0
    assert corrected_p_value(1e-300, epsilon=1.0, rows=100_000, beta=beta) == 1.0  # exp(12500) is no float
    assert corrected_p_value(0.0, epsilon=1.0, rows=100_000, beta=beta) == pytest.approx(beta, rel=1e-9)
    whole = max_information_bound(0.0, rows=n, queries=7, beta=beta)
    assert whole.error == pytest.approx(math.sqrt(math.log(2 * 7 / beta) / (2 * n)), rel=1e-6)
    shifted = max_information_bound(0.0, rows=n, queries=7, beta=beta, sample_error=0.1, sample_beta=0.005)
    assert shifted.error == pytest.approx(0.1 + math.sqrt(math.log(2 * 7 / 0.005) / (2 * n)), rel=1e-6)
    assert max_information_bound(0.1, rows=n, queries=7, beta=beta, sample_beta=0.01).vacuous


def test_bad_numbers_are_refused() -> None:
    for call, message in (
        (lambda: max_information(-1.0, rows=2, beta=0.1), "epsilon"),
        (lambda: max_information(1.0, rows=0, beta=0.1), "rows"),
        (lambda: max_information(1.0, rows=2, beta=1.5), "beta"),
        (lambda: corrected_p_value(1.5, epsilon=1.0, rows=2, beta=0.1), "p must"),
        (lambda: max_information_bound(1.0, rows=2, queries=0, beta=0.1), "queries"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
