"""Canonical noise: its exact distribution against its loss, what it draws, and the power of tests on it."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import bdtr, ndtr

from sfumato.errors import ParameterError
from sfumato.mechanisms import CanonicalNoise, Grid, Laplace, binomial_test, proportion_interval
from sfumato.numerics.distributions.rounded_normal import RoundedNormalDistribution
from sfumato.numerics.distributions.tulap import TulapDistribution
from sfumato.privacy.leaves.declared import ApproximateDP
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

REPLACE = Neighboring.REPLACE_ONE


def mass(mechanism: CanonicalNoise, reach: int) -> np.ndarray:
    """Probabilities of noise at -reach, ..., reach."""
    side = [mechanism.distribution.pmf(k) for k in range(reach + 1)]
    assert all(0 <= (each.upper - each.lower) <= 1e-11 * each.upper + 1e-300 for each in side)
    found = [each.upper for each in side]
    return np.array(found[:0:-1] + found)


def divergence(here: np.ndarray, move: int, epsilon: float) -> float:
    """The hockey-stick divergence between noise and moved noise."""
    padded = np.pad(here, move)
    return float(np.maximum(0, padded - math.exp(epsilon) * np.roll(padded, move)).sum())


@cases("sensitivity", [1, 2, 5])
@cases(("epsilon", "delta"), [(1.0, 0.0), (1.0, 0.05), (3.0, 0.001), (0.5, 0.4)])
def test_the_loss_is_the_exact_one_and_no_better(sensitivity: int, epsilon: float, delta: float) -> None:
    mechanism = CanonicalNoise(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    reach = math.ceil(sensitivity * (36 / epsilon + 3))
    noise, loss = mass(mechanism, reach), mechanism.privacy_loss
    assert noise.sum() == pytest.approx(1, abs=1e-12)
    stddev = math.sqrt(float((noise * np.arange(-reach, reach + 1) ** 2).sum()))
    assert mechanism.stddev == pytest.approx(stddev, rel=1e-6)
    for at in (0.0, epsilon / 3, epsilon, epsilon + 0.1):
        claimed = loss.delta(at)
        worst = max(divergence(noise, move, at) for move in range(1, sensitivity + 1))
        assert worst <= claimed + 1e-12
        if at <= epsilon and sensitivity % 2 and not delta:  # borders of the noise are borders of rounding
            assert worst == pytest.approx(claimed, rel=1e-9)
    assert loss.delta(epsilon) <= delta * (1 + 1e-12)


@cases(("epsilon", "delta"), [(1.0, 0.05), (3.0, 1e-3), (0.5, 0.4)])
def test_in_many_steps_the_trade_off_is_that_of_the_guarantee(epsilon: float, delta: float) -> None:
    mechanism = CanonicalNoise(sensitivity=101, epsilon=epsilon, delta=delta)
    noise = mass(mechanism, 101 * math.ceil(float(mechanism.distribution.limit) + 1))  # type: ignore[attr-defined]
    for at in (0.0, epsilon / 2, epsilon):
        claimed = mechanism.privacy_loss.delta(at)
        assert claimed * (1 - 0.05) < divergence(noise, 101, at) <= claimed + 1e-12


@cases(("epsilon", "delta"), [(1.0, 0.05), (0.1, 1e-6), (2.0, 0.3)])
def test_on_a_fine_grid_all_of_delta_is_used(epsilon: float, delta: float) -> None:
    mechanism = CanonicalNoise(sensitivity=1.0, epsilon=epsilon, delta=delta, grid=Grid(exponent=-30))
    assert mechanism.privacy_loss.delta(epsilon) == pytest.approx(delta, rel=1e-9)
    # In closed form: a part q of the untruncated noise is cut off (Awan, Slavkovic 2018).
    b = math.exp(-epsilon)
    q = 2 * delta * b / (1 - b + 2 * delta * b)
    limit = mechanism.distribution.limit  # type: ignore[attr-defined]
    whole = math.floor(limit + Fraction(1, 2))
    tail = b**whole / (1 + b) * (b + (0.5 - float(limit - whole)) * (1 - b))
    assert tail == pytest.approx(q / 2, rel=1e-6)


@cases("sensitivity", [1, 7])
@cases("mu", [1.0, Fraction(5, 2)])
def test_rounded_normal_noise_is_gaussian_dp(sensitivity: int, mu: Any) -> None:
    mechanism = CanonicalNoise(sensitivity=sensitivity, mu=mu)
    sigma = sensitivity / float(mu)
    reach = math.ceil(9 * sigma) + 1
    noise, loss = mass(mechanism, reach), mechanism.privacy_loss
    k = np.arange(-reach, reach + 1)
    assert noise == pytest.approx(ndtr((k + 0.5) / sigma) - ndtr((k - 0.5) / sigma), abs=1e-14)
    assert mechanism.stddev == pytest.approx(math.sqrt(float((noise * k**2).sum())), rel=1e-6)
    for at in (0.0, 0.5, 2.0):
        worst = max(divergence(noise, move, at) for move in range(1, sensitivity + 1))
        assert worst <= loss.delta(at) * (1 + 1e-9) + 1e-15
        assert worst > 0.9 * loss.delta(at) or sigma < 4


@cases(
    "distribution",
    [
        TulapDistribution(1, 1),
        TulapDistribution(1, 2, Fraction(5, 4)),
        TulapDistribution(Fraction(1, 8), 3, Fraction(7, 2)),
        RoundedNormalDistribution(Fraction(3, 2)),
    ],
)
def test_draws_have_the_distribution(distribution: Any) -> None:
    count = 1500 if isinstance(distribution, RoundedNormalDistribution) else 60_000
    seen = Counter(np.asarray(distribution.sample(count, 3)).tolist())

    def chances(one: Any) -> dict[int, float]:
        return {k: one.pmf(k).upper * (1 - 1e-12) for k in range(-12, 13) if one.pmf(k).upper > 1e-4}

    if isinstance(distribution, RoundedNormalDistribution):
        wrong = {"less": chances(RoundedNormalDistribution(1)), "more": chances(RoundedNormalDistribution(3))}
    else:
        other, width = 2 * Fraction(distribution.epsilon), distribution.width
        wrong = {"other epsilon": chances(TulapDistribution(other, width, distribution.limit))}
        if distribution.limit:
            wrong["no limit"] = chances(TulapDistribution(distribution.epsilon, width))
    accepts_only(frequencies(seen), chances(distribution), **wrong)


def test_the_test_on_it_has_more_power_than_on_whole_numbers() -> None:
    size, level, shares = 30, 0.05, (0.5, 0.75)
    tulap = CanonicalNoise(sensitivity=1.0, epsilon=0.5, grid=Grid(exponent=-4), neighboring=REPLACE)
    laplace = Laplace(sensitivity=1, scale=2, neighboring=REPLACE)
    refused: dict[tuple[str, float], float] = {}
    for name, mechanism, per in (("tulap", tulap, 16), ("laplace", laplace, 1)):
        released = mechanism.release(0.0 if per > 1 else 0)

        def value(steps: int, one: Any = released) -> float:
            moved = type(one)(
                steps=steps,
                step=one.step,
                distribution=one.distribution,
                loss=one.loss,
                neighboring=one.neighboring,
            )
            return binomial_test(moved, n=size, proportion=0.5, alternative="greater").p_value

        # The p-value falls: the least number of steps at which it is small enough.
        low, high = 0, 60 * per
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if value(middle) <= level else (middle, high)
        for share in shares:
            counts = np.arange(size + 1)
            chance = np.diff(np.concatenate([[0.0], bdtr(counts, size, share)]))
            tails = [mechanism.distribution.upper_tail(high - int(k) * per).upper for k in counts]
            refused[name, share] = float((chance * tails).sum())
    assert level - 0.003 < refused["tulap", 0.5] <= level
    assert refused["laplace", 0.5] < level - 0.003
    assert refused["tulap", 0.75] > refused["laplace", 0.75] + 0.005


def test_intervals_for_a_proportion_take_counts_on_a_grid() -> None:
    noise = CanonicalNoise(sensitivity=1.0, epsilon=1.0, grid=Grid(exponent=-3), neighboring=REPLACE)
    release = noise.release(300, rng=2)
    lower, upper, _ = proportion_interval(release, n=1000)
    assert 0.25 < lower < 0.3 < upper < 0.35
    coarse = Laplace.calibrated(sensitivity=1, epsilon=1.0, neighboring=REPLACE).release(300, rng=2)
    assert proportion_interval(coarse, n=1000)[:2] == pytest.approx((lower, upper), abs=0.01)


@cases(
    ("given", "message"),
    [
        ({}, "epsilon must be given, or else mu"),
        ({"epsilon": 1.0, "mu": 1.0}, "epsilon must be given, or else mu"),
        ({"mu": 1.0, "delta": 0.1}, "delta must be 0 where mu is given"),
        ({"epsilon": 1.0, "delta": 1.5}, "delta must"),
        ({"epsilon": 0}, "epsilon must"),
        ({"mu": 2000}, "mu must be from"),
        ({"epsilon": 2.0**-30, "sensitivity": 2**40}, "epsilon must be at least"),
        ({"epsilon": 1.0, "sensitivity": 2**55}, "epsilon must be at least|sensitivity must be at most"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        CanonicalNoise(**{"sensitivity": 1} | given)


def test_large_deltas_and_several_entries() -> None:
    half = CanonicalNoise(sensitivity=1.0, epsilon=1.0, delta=0.9)
    assert half.privacy_loss.delta(1.0) == pytest.approx(0.5, abs=1e-9)
    several = CanonicalNoise(sensitivity=1, epsilon=1.0, l0=3)
    assert several.privacy_loss.epsilon(0.0) == pytest.approx(3.0)
    assert several.release(np.zeros((2, 5), np.int64)).value.shape == (2, 5)


@cases("delta", [0.01, 0.07, 0.02, 0.1])  # of the first two the noise beyond is less as a decimal
def test_the_decimal_of_the_delta_is_not_below_the_noise_beyond_one_less(delta: float) -> None:
    mechanism = CanonicalNoise(sensitivity=3, epsilon=1.0, delta=delta)
    beyond = mechanism.distribution.beyond_one.upper  # type: ignore[attr-defined]
    leaf = next(iter(mechanism.privacy_loss.terms))[0]
    assert isinstance(leaf, ApproximateDP)
    charged, mass = leaf.exact_pure()[1], leaf.pure().delta
    assert charged >= Fraction(beyond)
    assert Fraction(mass) >= Fraction(beyond)
    assert charged <= Fraction(repr(delta))
