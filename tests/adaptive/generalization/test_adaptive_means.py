"""Adaptive means: noise that is planned keeps its promise, and more rows are needed for smaller errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.adaptive import AdaptiveMeans, best_noise, compare_bounds, required_rows, transfer_bound
from sfumato.errors import ParameterError
from sfumato.privacy import Neighboring


def test_the_loss_is_that_of_the_noise() -> None:
    gaussian = AdaptiveMeans(rows=1000, queries=16, scale=0.02).privacy_loss
    assert gaussian.neighboring is Neighboring.REPLACE_ONE
    assert gaussian.gdp().mu == pytest.approx(4 / 20)
    laplace = AdaptiveMeans(rows=1000, queries=16, noise="laplace", scale=0.02).privacy_loss
    assert laplace.epsilon() == pytest.approx(16 / 20)


def test_noise_stays_within_its_tail() -> None:
    gaussian = AdaptiveMeans(rows=10, queries=3, scale=0.1)
    assert gaussian.sample_beta(0.3) == pytest.approx(3 * math.erfc(3 / math.sqrt(2)), rel=1e-9)
    assert gaussian.sample_beta(0.0) == 1.0
    laplace = AdaptiveMeans(rows=10, queries=3, noise="laplace", scale=0.1)
    assert laplace.sample_beta(0.5) == pytest.approx(3 * math.exp(-5), rel=1e-9)


def test_the_best_bound_is_one_of_the_theorem() -> None:
    means = AdaptiveMeans(rows=50_000, queries=300, scale=0.015)
    found = means.bound(beta=0.05)
    near = found.parts["sample error"]
    again = transfer_bound(
        means.privacy_loss, sample_error=near, sample_beta=means.sample_beta(near), beta=0.05
    )
    assert again.error == pytest.approx(found.error, rel=1e-9)
    epsilon, delta = found.parts["epsilon"], found.parts["delta"]
    assert means.privacy_loss.delta(epsilon) == pytest.approx(delta, rel=1e-9)
    for scale in (0.002, 0.1):
        assert found.error < AdaptiveMeans(rows=50_000, queries=300, scale=scale).bound(beta=0.05).error
    best = best_noise(rows=50_000, queries=300, beta=0.05).bound(beta=0.05)
    assert best.error <= found.error


def test_ways_are_ordered_and_noise_beats_splitting_where_queries_are_many() -> None:
    found = compare_bounds(rows=1_000_000, queries=100_000, beta=0.05)
    assert [bound.error for bound in found] == sorted(bound.error for bound in found)
    ways = {bound.theorem: bound.error for bound in found}
    assert len(ways) == 5
    assert found[0].theorem.startswith("Gaussian noise, transfer")
    assert ways["Hoeffding, a fresh part for each query"] > 5 * found[0].error
    parts = 2 ** np.arange(0, 14, 0.5).round(9)
    counted = np.array([(100_000 - 1) * math.log(round(part) + 1) + math.log(100_000) for part in parts])
    rounded = 1 / (2 * np.round(parts)) + np.sqrt((counted + math.log(40)) / 2e6)
    assert ways["answers rounded to a grid, all transcripts counted"] == pytest.approx(
        rounded.min(), rel=1e-9
    )
    few = compare_bounds(rows=10_000, queries=2, beta=0.05)
    assert "Hoeffding" in few[0].theorem or "rounded" in few[0].theorem


def test_so_many_rows_suffice_and_few_less_do_not() -> None:
    rows = required_rows(error=0.25, queries=20, beta=0.1)
    assert best_noise(rows=rows, queries=20, beta=0.1).bound(beta=0.1).error <= 0.25
    fewer = best_noise(rows=int(rows * 0.95), queries=20, beta=0.1)
    assert fewer.bound(beta=0.1).error > 0.25
    assert required_rows(error=0.25, queries=40, beta=0.1) > rows


def test_bad_parameters_are_refused() -> None:
    for call, message in (
        (lambda: AdaptiveMeans(rows=0, queries=1, scale=0.1), "rows"),
        (lambda: AdaptiveMeans(rows=1, queries=0, scale=0.1), "queries"),
        (lambda: AdaptiveMeans(rows=1, queries=1, scale=0.0), "scale"),
        (lambda: AdaptiveMeans(rows=1, queries=1, scale=0.1, noise="cauchy"), "noise"),  # type: ignore[arg-type]
        (lambda: AdaptiveMeans(rows=1, queries=1, scale=0.1).bound(beta=2.0), "beta"),
        (lambda: required_rows(error=1.0, queries=1, beta=0.1), "error"),
        (lambda: required_rows(error=1e-7, queries=10**6, beta=0.1), "2\\*\\*40"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
