"""The chain against weighted draws from the prior, and Geweke's test of the joint distribution."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.adaptive import PosteriorDraws
from sfumato.adaptive.inference.normal_rows import NormalInverseWishart, NormalRows
from sfumato.adaptive.inference.regression_chain import RegressionChain, inverse_gaussian
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution, DiscreteLaplaceDistribution

STEPS = 1 << 10
PRIOR = NormalInverseWishart(np.array([0.1, -0.2]), 4.0, 9.0, np.array([[0.9, 0.3], [0.3, 0.6]]))
NOISES: dict[str, Any] = {
    "gaussian": DiscreteGaussianDistribution(2 * STEPS),
    "laplace": DiscreteLaplaceDistribution(STEPS),
}
NOISY = np.array([6.0, -3.0, 5.0, 3.5, 8.0])
Floats = NDArray[np.float64]


def functions(mean: Any, covariance: Any, count: Any) -> list[Any]:
    """Return what is compared: moments of the population, and the number of rows."""
    first, second, cross = covariance[0, 0], covariance[1, 1], covariance[0, 1]
    rest = np.log(second - cross**2 / first)
    return [*mean, *(m**2 for m in mean), np.log(first), rest, cross / first, cross, count, count * rest]


def roots(freedom: Any, size: int, rng: np.random.Generator) -> Floats:
    """Draw roots of standard Wishart matrices of size 2."""
    found = np.zeros((2, 2, size))
    found[0, 0], found[1, 1] = (
        np.sqrt(rng.chisquare(freedom, size)),
        np.sqrt(rng.chisquare(freedom - 1, size)),
    )
    found[1, 0] = rng.standard_normal(size)
    return found


def weighted(kind: str, limits: tuple[int, int], size: int, wider: float = 1.0) -> tuple[Floats, Floats]:
    """Return means, and their errors, of draws from the prior and the model, weighted by the noise."""
    rng = np.random.default_rng(11)
    bartlett = roots(PRIOR.freedom, size, rng)
    (a, b), c = (bartlett[0, 0], bartlett[1, 1]), bartlett[1, 0]
    inverse_transposed = np.array([[1 / a, -c / (a * b)], [np.zeros(size), 1 / b]])
    root = np.einsum("ij,jkn->ikn", np.linalg.cholesky(PRIOR.scatter), inverse_transposed)
    covariance = np.einsum("ijn,kjn->ikn", root, root)
    normal = rng.standard_normal((2, size)) / np.sqrt(PRIOR.records)
    mean = PRIOR.mean[:, None] + np.einsum("ijn,jn->in", root, normal)
    count = rng.integers(limits[0], limits[1] + 1, size)
    seen = mean + np.einsum("ijn,jn->in", root, rng.standard_normal((2, size))) / np.sqrt(count)
    half = np.einsum("ijn,jkn->ikn", root, roots(count - 1, size, rng))
    squares = np.einsum("ijn,kjn->ikn", half, half) + count * seen[:, None] * seen[None]
    off = np.sqrt(2)
    entries = [
        off * count * seen[0],
        off * count * seen[1],
        squares[0, 0],
        off * squares[0, 1],
        squares[1, 1],
    ]
    scale = float(getattr(NOISES[kind], "sigma", 0) or NOISES[kind].scale) / STEPS * wider
    away = (NOISY[:, None] - np.array(entries)) / scale
    away = np.concatenate([away, ((16 - count) / scale)[None]])
    logs = -(away**2).sum(axis=0) / 2 if kind == "gaussian" else -np.abs(away).sum(axis=0)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    values = np.array(functions(mean, covariance, count), dtype=float)
    middle = values @ weights
    return middle, np.sqrt(((values - middle[:, None]) ** 2) @ weights**2)


def chain_draws(kind: str, limits: tuple[int, int], turns: int) -> PosteriorDraws:
    """Return the same functions along the chain."""
    rng = np.random.default_rng(5)
    steps = np.rint(np.append(16.0, NOISY) * STEPS).astype(np.int64)
    chain = RegressionChain(steps, Fraction(1, STEPS), NOISES[kind], limits, PRIOR)
    found = np.zeros((turns, 10))
    for row in found:
        chain.step(rng)
        row[:] = functions(chain.population.mean, chain.population.covariance, chain.moments.number)
    return PosteriorDraws(values=found[100:], names=tuple(range(10)))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "limits"), [*zip(NOISES, [(16, 16), (8, 24)], strict=True)])
def test_the_chain_has_the_means_of_weighted_draws(kind: str, limits: tuple[int, int]) -> None:
    draws = chain_draws(kind, limits, 1000)

    def apart(wider: float) -> float:
        middle, error = weighted(kind, limits, 200_000, wider)
        both = np.sqrt(draws.stddev**2 / draws.effective_draws + error**2)
        return float((np.abs(draws.mean - middle) / np.maximum(both, 1e-12)).max())

    assert apart(1.0) < 4.5
    assert apart(1.7) > 6


def test_a_short_chain_has_the_means_of_weighted_draws() -> None:
    draws = chain_draws("gaussian", (8, 24), 350)
    middle, error = weighted("gaussian", (8, 24), 100_000)
    both = np.sqrt(draws.stddev**2 / draws.effective_draws + error**2)
    assert (np.abs(draws.mean - middle) / both).max() < 4.5


def test_joint_moves_leave_the_noise_as_it_is() -> None:
    """Of many rows, where the prior hardly matters: the moments err by the noise, whatever is remembered."""
    rng, noise = np.random.default_rng(2), NOISES["gaussian"]
    rows = NormalRows(np.array([0.1, 0.2]), np.array([[0.5, 0.1], [0.1, 0.4]])).draw(4000, rng)
    steps = np.rint(np.append(4000.0, rows.entries()) * STEPS).astype(np.int64)
    for remembered in (0.0, 0.6, 0.9):
        chain = RegressionChain(steps, Fraction(1, STEPS), noise, (4000, 4000), PRIOR)
        found = np.zeros((800, 5))
        for row in found:
            chain._move_both(remembered, rng)
            row[:] = (chain.moments.entries() - chain.noisy) / 2.0
        assert float((found[100:] ** 2).mean()) == pytest.approx(1.0, rel=0.3)


def test_inverse_gaussian_draws() -> None:
    rng = np.random.default_rng(1)
    found = inverse_gaussian(np.full(40_000, 0.5), 2.0, rng)
    # The mean is the mean, the variance its cube over the shape; the mean of 1/x is 1/mean + 1/shape.
    assert found.mean() == pytest.approx(0.5, abs=5 * np.sqrt(0.0625 / 40_000))
    assert found.var() == pytest.approx(0.0625, rel=0.1)
    assert (1 / found).mean() == pytest.approx(2.5, abs=0.05)
    far = inverse_gaussian(np.full(10_000, 1e9), 1.0, rng)
    assert (far > 0).all()
    assert np.isfinite(1 / far).all()


@pytest.mark.exhaustive
def test_the_chain_leaves_the_joint_distribution_as_it_is() -> None:
    """Geweke (2004): rows and noise drawn anew leave the chain's population as the prior's."""
    rng, limits, turns, noise = np.random.default_rng(5), (8, 24), 1000, NOISES["laplace"]
    chain = RegressionChain(np.array([16 * STEPS, *[0] * 5]), Fraction(1, STEPS), noise, limits, PRIOR)
    found, exact = np.zeros((turns, 10)), np.zeros((turns, 10))
    for row, other in zip(found, exact, strict=True):
        chain.step(rng)
        drawn = np.asarray(noise.sample(6, rng))
        chain.first = chain.moments.number * STEPS + int(drawn[0])
        chain.noisy = chain.moments.entries() + drawn[1:] / STEPS
        row[:] = functions(chain.population.mean, chain.population.covariance, chain.moments.number)
        drawn_anew: NormalRows = PRIOR.draw(rng)
        other[:] = functions(drawn_anew.mean, drawn_anew.covariance, int(rng.integers(8, 25)))
    draws = PosteriorDraws(values=found, names=tuple(range(10)))
    error = np.sqrt(draws.stddev**2 / draws.effective_draws + exact.var(axis=0) / turns)
    assert (np.abs(draws.mean - exact.mean(axis=0)) / error).max() < 4.5
