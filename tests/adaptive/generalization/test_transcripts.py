"""Transcripts: counts by walking the tree of a strategy, and bounds by the formulas."""

from __future__ import annotations

import itertools
import math

import pytest
from mpmath import mp

from sfumato.adaptive import log_queries, sample_splitting_bound, transcript_bound
from sfumato.adaptive.generalization.transcripts import log_binomial
from sfumato.errors import ParameterError


def histories(length: int, informative: int, outcomes: int) -> int:
    """Count sequences of answers, 0 for "as expected", with at most so many others."""
    answers = itertools.product(range(outcomes + 1), repeat=length)
    return sum(sum(answer > 0 for answer in told) <= informative for told in answers)


def test_queries_are_counted_by_the_tree() -> None:
    for queries, informative, outcomes in itertools.product((1, 2, 4, 5), (0, 1, 3, 9), (1, 2, 3)):
        counted = sum(histories(length, informative, outcomes) for length in range(queries))
        found = log_queries(queries, informative=informative, outcomes=outcomes)
        assert math.log(counted) <= found <= math.log(counted) * (1 + 1e-9) + 1e-7


def test_counts_stay_within_floats() -> None:
    found = log_queries(10**6, informative=5000, outcomes=1000)
    exact = math.log(math.comb(10**6, 5001)) + 5000 * math.log(1000)
    assert exact < found < exact + 5


def test_bounds_are_hoeffdings() -> None:
    found = transcript_bound(rows=500, log_count=10.0, beta=0.1, sample_error=0.02)
    assert found.error == pytest.approx(0.02 + math.sqrt((10 + math.log(20)) / 1000), rel=1e-9)
    assert found.beta == 0.1
    parts = sample_splitting_bound(rows=1007, queries=10, beta=0.05)
    assert parts.error == pytest.approx(math.sqrt(math.log(400) / 200), rel=1e-9)
    assert sample_splitting_bound(rows=9, queries=10, beta=0.05).vacuous
    assert transcript_bound(rows=10, log_count=1e3, beta=0.1).vacuous


def test_bad_numbers_are_refused() -> None:
    for call, message in (
        (lambda: log_queries(0, informative=1, outcomes=2), "queries"),
        (lambda: log_queries(3, informative=-1, outcomes=2), "informative"),
        (lambda: log_queries(3, informative=1, outcomes=0), "outcomes"),
        (lambda: transcript_bound(rows=0, log_count=1.0, beta=0.1), "rows"),
        (lambda: transcript_bound(rows=1, log_count=-1.0, beta=0.1), "log_count"),
        (lambda: sample_splitting_bound(rows=1, queries=1, beta=0.0), "beta"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()


def test_logs_of_binomial_coefficients_are_never_too_low() -> None:
    for n, k in [(300, 250), (1 << 20, 5000), (10**9, 300), (1 << 40, 300), (1 << 40, 1 << 20)]:
        with mp.workdps(60):
            exact = mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)
            assert exact <= log_binomial(n, k) < exact * (1 + mp.mpf(2) ** -30) + 0.2
    assert log_binomial(500, 200) == math.log(math.comb(500, 200)) < log_binomial(500, 201)
    assert log_binomial(500, 201) > math.log(math.comb(500, 201)) * (1 + 1e-14)
