"""Moments of normal rows: their density against scipy's, their limit against draws, the conjugate prior."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.adaptive.inference.normal_rows import NormalInverseWishart, NormalRows, RowMoments
from tests.run_time import run_time

if run_time(__name__):
    from scipy import stats

POPULATION = NormalRows(np.array([0.2, -0.1]), np.array([[0.5, 0.2], [0.2, 0.4]]))


def test_entries_are_those_of_rows_and_lead_back() -> None:
    rows = np.random.default_rng(1).normal(size=(7, 2))
    mean = rows.mean(axis=0)
    moments = RowMoments(7, mean, (rows - mean).T @ (rows - mean))
    root = math.sqrt(2)
    sums = [root * rows[:, 0].sum(), root * rows[:, 1].sum(), (rows[:, 0] ** 2).sum()]
    sums += [root * (rows[:, 0] * rows[:, 1]).sum(), (rows[:, 1] ** 2).sum()]
    assert moments.entries() == pytest.approx(np.array(sums), rel=1e-12)
    again = RowMoments.of(7, moments.entries(), 2)
    assert again.mean == pytest.approx(mean)
    assert again.scatter == pytest.approx(moments.scatter)


def test_the_density_is_normal_and_wishart() -> None:
    moments = [POPULATION.draw(count, np.random.default_rng(count)) for count in (6, 6, 20)]
    found = [POPULATION.log_density(one) for one in moments]
    wanted = [
        stats.multivariate_normal(POPULATION.mean, POPULATION.covariance / one.number).logpdf(one.mean)
        + stats.wishart(one.number - 1, POPULATION.covariance).logpdf(one.scatter)
        - 2 * math.log(one.number)
        for one in moments
    ]
    # All but for one constant, that of the normal density.
    differences = np.array(found) - np.array(wanted)
    assert differences == pytest.approx(np.full(3, differences[0]), abs=1e-9)
    broken = RowMoments(6, np.zeros(2), np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert POPULATION.log_density(broken) == -math.inf


def test_the_limit_has_the_mean_and_the_covariance_of_the_entries() -> None:
    rng = np.random.default_rng(2)
    noise = np.array([1.0, 2.0, 0.5, 1.0, 3.0])
    limit = POPULATION.limit(noise)
    drawn = np.array([limit.coordinates(POPULATION.draw(9, rng).entries()) for _ in range(4000)])
    error = np.sqrt(9 * limit.variance / 4000)
    assert (np.abs(drawn.mean(axis=0) - 9 * limit.mean) < 5 * error).all()
    covariance = np.cov(drawn.T)
    assert np.diag(covariance) == pytest.approx(9 * limit.variance, rel=0.2)
    scale = np.sqrt(np.outer(limit.variance, limit.variance)) * 9
    assert (np.abs(covariance / scale - np.eye(5)) < 0.2).all()
    entries = rng.normal(size=5)
    assert limit.entries(limit.coordinates(entries)) == pytest.approx(entries)
    # A density at its mode, and the evidence of a noisy sum as a normal density with the noise added.
    at = limit.log_density(9, 9 * limit.mean)
    assert at == pytest.approx(-np.log(9 * limit.variance).sum() / 2)
    assert limit.log_evidence(np.array([9]), 9 * limit.mean)[0] == pytest.approx(
        -np.log(9 * limit.variance + 1).sum() / 2
    )


def test_draws_given_a_noisy_sum_are_between_it_and_the_mean() -> None:
    limit, rng = POPULATION.limit(np.ones(5)), np.random.default_rng(3)
    noisy = 9 * limit.mean + 2.0
    drawn = np.array([limit.draw(9, noisy, rng) for _ in range(4000)])
    weight = 9 * limit.variance / (9 * limit.variance + 1)
    assert drawn.mean(axis=0) == pytest.approx(9 * limit.mean + 2 * weight, abs=5 / math.sqrt(4000))
    assert drawn.var(axis=0) == pytest.approx(weight, rel=0.15)


def test_the_prior_is_conjugate_and_its_draws_have_its_moments() -> None:
    prior = NormalInverseWishart(np.array([1.0, 0.0]), 2.0, 8.0, np.array([[2.0, 0.5], [0.5, 1.0]]))
    rows = POPULATION.draw(11, np.random.default_rng(4))
    after = prior.posterior(rows)
    populations = [prior.draw(np.random.default_rng(seed)) for seed in range(3)]
    # Prior times likelihood is the posterior, but for a constant.
    left = [prior.log_density(one) + one.log_density(rows) for one in populations]
    right = [after.log_density(one) for one in populations]
    differences = np.array(left) - np.array(right)
    assert differences == pytest.approx(np.full(3, differences[0]), abs=1e-8)
    rng = np.random.default_rng(5)
    drawn = [prior.draw(rng) for _ in range(4000)]
    covariances = np.array([one.covariance for one in drawn])
    assert covariances.mean(axis=0) == pytest.approx(prior.scatter / (8 - 2 - 1), rel=0.1)
    means = np.array([one.mean for one in drawn])
    assert means.mean(axis=0) == pytest.approx(prior.mean, abs=0.04)
    assert np.cov(means.T) == pytest.approx(prior.scatter / 5 / 2.0, abs=0.03)
