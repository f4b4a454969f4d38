"""Posteriors of noisy counts against sums over all data that there may have been."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

from sfumato import adaptive
from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.mechanisms import BoundedSum, Gaussian, Histogram, Laplace
from sfumato.privacy import Neighboring

REPLACE = Neighboring.REPLACE_ONE


def exact_means(release: Any, records: int, prior: list[float]) -> tuple[Any, Any]:
    """Return the means of proportions and of their squares, by all counts that add up."""
    seen, total = [int(x) for x in np.ravel(release.steps)], sum(prior)
    weights, first, second = 0.0, np.zeros(len(seen)), np.zeros(len(seen))
    for counts in itertools.product(range(records + 1), repeat=len(seen) - 1):
        if sum(counts) > records:
            continue
        x = np.array([*counts, records - sum(counts)], dtype=float)
        log = float((gammaln(x + prior) - gammaln(x + 1)).sum())
        weight = math.exp(log) * math.prod(
            release.distribution.pmf(s - int(k)).upper for s, k in zip(seen, x, strict=True)
        )
        weights += weight
        a = x + prior
        first += weight * a / (total + records)
        second += weight * a * (a + 1) / (total + records) / (total + records + 1)
    return first / weights, second / weights


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_proportions_have_the_moments_of_the_enumerated_posterior(noise: str) -> None:
    mechanism: Any = (
        Laplace(sensitivity=2, scale=2.0, neighboring=REPLACE)
        if noise == "laplace"
        else Gaussian(sensitivity=1, stddev=2.0, neighboring=REPLACE)
    )
    release = mechanism.release(np.array([9, 2, 1]), rng=5)
    prior = [0.5, 1.0, 3.0]
    found = adaptive.multinomial_posterior(release, records=12, prior=prior, draws=4000, burn_in=100, rng=6)
    mean, square = exact_means(release, 12, prior)
    worth = found.effective_draws
    assert (worth > 1000).all()
    error = 5 * found.stddev / np.sqrt(worth)
    assert (np.abs(found.mean - mean) < error).all()
    squares = found.map(lambda row: row**2, found.names)
    error = 5 * squares.stddev / np.sqrt(squares.effective_draws)
    assert (np.abs(squares.mean - square) < error).all()
    # The posterior that takes the counts for exact is another one.
    ignored = (np.maximum(release.steps, 0) + prior) / (np.maximum(release.steps, 0).sum() + sum(prior))
    assert (np.abs(found.mean - ignored) > 5 * found.stddev / np.sqrt(worth)).any()


def test_rates_have_the_moments_of_the_summed_posterior() -> None:
    release = Laplace(sensitivity=1, scale=3.0).release(np.array([2, 30]), rng=4)
    found = adaptive.poisson_posterior(release, shape=2.0, rate=0.25, draws=20_000, rng=1)
    for cell, seen in enumerate(np.asarray(release.steps).tolist()):
        x = np.arange(400)
        log = gammaln(x + 2.0) - gammaln(x + 1.0) - x * math.log(1.25) - np.abs(x - seen) / 3.0
        weights = np.exp(log - log.max())
        mean = float((weights * (x + 2.0)).sum() / weights.sum() / 1.25)
        square = float((weights * (x + 2.0) * (x + 3.0)).sum() / weights.sum() / 1.25**2)
        deviation = math.sqrt(square - mean**2)
        assert found.mean[cell] == pytest.approx(mean, abs=5 * deviation / math.sqrt(20_000))
        assert found.stddev[cell] == pytest.approx(deviation, rel=0.05)
        assert abs(mean - seen) > 0.2


def test_without_much_noise_the_posterior_is_the_conjugate_one() -> None:
    exact = np.array([70, 20, 10])
    release = Laplace(sensitivity=2, scale=0.05, neighboring=REPLACE).release(exact, rng=1)
    assert np.asarray(release.steps).tolist() == exact.tolist()
    found = adaptive.multinomial_posterior(release, records=100, draws=4000, rng=1)
    a = exact + 0.5
    assert found.mean == pytest.approx(a / a.sum(), abs=0.005)
    assert found.stddev == pytest.approx(np.sqrt(a * (a.sum() - a) / (a.sum() + 1)) / a.sum(), rel=0.06)


def test_credible_intervals_hold_draws_from_the_prior() -> None:
    """Under the prior and the model they do cover: of 100 runs, within five deviations of nine tenths."""
    rng, inside = np.random.default_rng(8), 0
    noisy = Laplace(sensitivity=2, scale=4.0, neighboring=REPLACE)
    for _ in range(100):
        shares = rng.dirichlet([1.0, 1.0])
        release = noisy.release(rng.multinomial(30, shares), rng=rng)
        draws = adaptive.multinomial_posterior(release, records=30, prior=1.0, draws=100, burn_in=10, rng=rng)
        lower, upper, _ = draws.credible_interval(0.9)
        inside += bool(lower[0] <= shares[0] <= upper[0])
    assert abs(inside - 90) < 5 * math.sqrt(100 * 0.09)


def test_names_are_those_of_the_query() -> None:
    query = Histogram(categories=("a", "b"))
    release = Laplace.for_query(query, epsilon=1.0, neighboring=REPLACE).release(["a"] * 5, rng=1)
    assert adaptive.multinomial_posterior(release, records=5, draws=100, rng=1).names == ("a", "b")
    plain = Laplace(sensitivity=1, scale=1.0).release(3, rng=1)
    found = adaptive.poisson_posterior(plain, draws=100, rng=1)
    assert (found.names, found.values.shape) == ((0,), (100, 1))


def test_what_is_no_noisy_count_is_refused() -> None:
    one = Laplace(sensitivity=1, scale=1.0, neighboring=REPLACE).release(np.array([3, 4]), rng=1)
    private = Laplace(sensitivity=1, scale=1.0).release(np.array([3, 4]), rng=1)
    total = Laplace.for_query(BoundedSum(bounds=(0, 5)), epsilon=1.0).release(np.ones(4, dtype=int), rng=1)
    number = Laplace(sensitivity=1, scale=1.0, neighboring=REPLACE).release(7, rng=1)
    multinomial: Any = adaptive.multinomial_posterior
    poisson: Any = adaptive.poisson_posterior
    with pytest.raises(NeighboringMismatch, match="poisson_posterior"):
        multinomial(private, records=7)
    refused: list[tuple[Any, str]] = [
        (lambda: multinomial(one, records=7, prior=[1.0]), "prior must hold 2 numbers"),
        (lambda: multinomial(one, records=7, prior=0.0), "prior must be positive"),
        (lambda: multinomial(one, records=0), "n must be"),
        (lambda: multinomial(one, records=7, draws=99), "draws must be"),
        (lambda: multinomial(number, records=7), "hold at least 2 counts"),
        (lambda: poisson(total), "be of counts of records"),
        (lambda: poisson(3), "be of noisy counts"),
        (lambda: poisson(one, shape=0.0), "shape"),
        (lambda: poisson(one, rate=-1.0), "rate"),
        (lambda: poisson(one, rng=0.5), "rng"),
    ]
    for call, message in refused:
        with pytest.raises(ParameterError, match=message):
            call()
