"""Private selection against the exact law of the best answer, from the weights of each number of runs."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from sfumato.errors import ParameterError, UnsupportedView
from sfumato.privacy import (
    ZCDP,
    ApproximateDP,
    Gaussian,
    PoissonStopping,
    PrivacyLoss,
    PureDP,
    RandomStopping,
    loss_from_json,
)
from tests.cases import cases

mpmath.mp.dps = 30


def binomial_weights(eta: float, gamma: float) -> np.ndarray:
    """The law of the number of runs, 0 to 4000, summed up by its definition."""
    weights = [0.0, 1.0]
    for k in range(1, 4000):
        weights.append(weights[-1] * (1 - gamma) * (k + eta) / (k + 1))
    return np.asarray(np.array(weights) / sum(weights))


def poisson_weights(mean: float) -> np.ndarray:
    k = np.arange(200)
    return np.asarray(np.exp(k * math.log(mean) - mean - np.array([math.lgamma(i + 1) for i in k])))


def best(distribution: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The law of the best answer (the last is the best), with that of no run in front."""
    k = np.arange(len(weights))
    steps = np.concatenate([[0.0], np.cumsum(distribution)])
    reached = np.array([float((weights[1:] * np.minimum(x, 1.0) ** k[1:]).sum()) for x in steps])
    return np.concatenate([[weights[0]], np.diff(reached)])


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    selected = p > 1e-300
    p, q = p[selected], q[selected]
    return float(np.log(np.sum(p * np.exp((order - 1) * np.log(p / q)))) / (order - 1))


KINDS: list[tuple[PrivacyLoss, np.ndarray]] = [
    (RandomStopping(PureDP(0.5), eta, gamma), binomial_weights(eta, gamma))
    for eta, gamma in [(1.0, 0.05), (0.0, 0.02), (-0.5, 0.1), (3.0, 0.2), (1e-12, 0.02)]
] + [(PoissonStopping(PureDP(0.5), mean), poisson_weights(mean)) for mean in (0.3, 3.0, 30.0)]


def pairs() -> list[tuple[np.ndarray, np.ndarray]]:
    """Laws whose loss is at most 0.5: rare good answers, which show most, and random ones."""
    found = []
    for rare in (0.5, 0.1, 0.01, 0.001):
        q = np.array([1 - rare, rare])
        p = np.array([1 - rare * math.exp(0.5), rare * math.exp(0.5)])
        if math.log(q[0] / max(p[0], 1e-300)) <= 0.5:
            found += [(p, q), (q, p)]
    a = 1 / (1 + math.exp(0.5))
    found += [(np.array([a, 1 - a]), np.array([1 - a, a])), (np.array([1 - a, a]), np.array([a, 1 - a]))]
    generator = np.random.default_rng(11)
    for _ in range(20):
        q = generator.dirichlet(np.ones(5))
        p = q * np.exp(generator.uniform(-0.25, 0.25, 5))
        found.append((p / p.sum(), q))
    return found


@cases(("loss", "weights"), KINDS)
def test_the_best_answer_is_within_the_bounds(loss: PrivacyLoss, weights: np.ndarray) -> None:
    base, greatest = PureDP(0.5), 0.0
    for p, q in pairs():
        one, other = best(p, weights), best(q, weights)
        selected = (one > 1e-13) & (other > 1e-13)
        greatest = max(greatest, float(np.abs(np.log(one[selected] / other[selected])).max()))
        for order in (1.5, 2.0, 5.0, 30.0):
            assert divergence(one, other, order) <= loss.rdp(order) + 1e-9
    assert greatest <= loss.pure().epsilon * (1 + 1e-9)
    # The price of one run would not do, except where there is hardly more than one.
    assert greatest > base.pure().epsilon * 1.1 or loss == PoissonStopping(base, 0.3)
    assert loss_from_json(loss.to_json()) == loss


@cases(("eta", "gamma"), [(1.0, 0.01), (0.0, 0.3), (1e-14, 0.3), (-0.9, 0.001), (5.0, 0.9)])
def test_the_mean_is_the_mean(eta: float, gamma: float) -> None:
    h = mpmath.log(1 / mpmath.mpf(gamma))
    share = mpmath.mpf(eta) / -mpmath.expm1(-mpmath.mpf(eta) * h) if eta else 1 / h
    truth = mpmath.log(share * (1 - mpmath.mpf(gamma)) / gamma)
    found = RandomStopping(PureDP(1.0), eta, gamma).log_mean
    assert truth <= found <= truth + mpmath.mpf(10) ** -11


def test_gaussian_runs_follow_the_published_formula() -> None:
    rho, eta, gamma, order = 0.02, 0.0, 0.01, 12.0
    loss = RandomStopping(Gaussian(5.0), eta, gamma)
    other = math.sqrt(math.log(1 / gamma) / rho)
    mean = (1 - gamma) / (gamma * math.log(1 / gamma))
    expected = rho * order + (1 - 1 / other) * rho * other + math.log(1 / gamma) / other
    expected += math.log(mean) / (order - 1)
    assert expected <= loss.rdp(order) * (1 + 1e-9)
    assert loss.rdp(order) <= expected * 1.01
    with pytest.raises(UnsupportedView):
        loss.pure()
    assert loss.epsilon(1e-6) < (Gaussian(5.0) * 21).epsilon(1e-6)


def test_poisson_runs_of_a_gaussian_hold_the_best_of_a_grid() -> None:
    weights, order = poisson_weights(10.0), 6.0
    line = np.linspace(-9, 9, 4001)
    upper = np.array([float(mpmath.ncdf(x)) for x in (-9.0, 9.0)])
    assert upper[0] < 1e-15
    density = np.exp(-(line**2) / 2)
    shifted = np.exp(-((line - 0.2) ** 2) / 2)
    p, q = density / density.sum(), shifted / shifted.sum()
    bound = PoissonStopping(Gaussian(5.0), 10.0).rdp(order)
    assert max(divergence(best(p, weights), best(q, weights), order), 0.0) <= bound < 1.5


def test_whole_trainings_may_be_one_run() -> None:
    training = Gaussian(20.0) * 50 + ZCDP(0.01)
    loss = RandomStopping(training, 1.0, 0.05)
    assert training.epsilon(1e-6) < loss.epsilon(1e-6) < 4 * training.epsilon(1e-6)
    assert loss_from_json((loss * 2).to_json()) == loss * 2
    assert not (loss + PureDP(0.1)).epsilon_interval(1e-6).tight


def test_what_has_no_theorem_is_refused() -> None:
    with pytest.raises(UnsupportedView):
        RandomStopping(ApproximateDP(0.5, 1e-9), 1.0, 0.1).epsilon(1e-6)
    for build in (
        lambda: RandomStopping(PureDP(1.0), -1.0, 0.1),
        lambda: RandomStopping(PureDP(1.0), 1.0, 1.0),
        lambda: PoissonStopping(PureDP(1.0), 0.0),
        lambda: PoissonStopping(0.5, 1.0),  # type: ignore[arg-type]
        lambda: PoissonStopping(PureDP(1.0) * 0, 1.0),
    ):
        with pytest.raises(ParameterError, match="must be"):
            build()
