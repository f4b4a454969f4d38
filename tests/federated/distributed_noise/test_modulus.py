"""The chance of wrapping around: the bound covers the exact chance, and the scale uses the room there is."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from sfumato.federated import DistributedDiscreteGaussian, DistributedSkellam
from sfumato.federated.distributed_noise.bounded_rounding import ROUNDING_FAILURE
from sfumato.federated.distributed_noise.modulus import (
    gaussian_log_moment,
    largest_scale,
    skellam_log_moment,
    wraparound_bound,
)
from sfumato.federated.distributed_noise.rotation import rotate


def discrete_gaussian_pmf(variance: Fraction, reach: int) -> np.ndarray:
    weights = np.array(
        [float(mpmath.exp(-mpmath.mpf(k * k) / (2 * variance))) for k in range(-reach, reach + 1)]
    )
    weights /= weights.sum()
    return weights


def convolved(pmf: np.ndarray, count: int) -> np.ndarray:
    total = np.ones(1)
    for _ in range(count):
        total = np.convolve(total, pmf)
    return total


def rounded_pmf(value: float, reach: int) -> np.ndarray:
    pmf = np.zeros(2 * reach + 1)
    low = math.floor(value)
    pmf[reach + low] += low + 1 - value
    pmf[reach + low + 1] += value - low
    return pmf


@pytest.mark.parametrize("bits", [6, 5])
def test_the_bound_covers_the_exact_chance(bits: int) -> None:
    """Three clients, two entries, all vectors aligned: over signs, roundings and noise, exactly."""
    clients, norm, dimension, share = 3, 2.5, 2, Fraction(7, 2)
    noise = convolved(discrete_gaussian_pmf(share**2, 60), clients)
    half = 1 << (bits - 1)
    worst = 0.0
    for angle in np.linspace(0, math.pi / 2, 7):
        vector = norm * np.array([math.cos(angle), math.sin(angle)])
        outside = 0.0
        for signs in itertools.product((1, -1), repeat=2):
            turned = vector * signs
            for entry in ((turned[0] + turned[1]) / math.sqrt(2), (turned[0] - turned[1]) / math.sqrt(2)):
                pmf = np.convolve(noise, convolved(rounded_pmf(entry, 4), clients))
                steps = np.arange(len(pmf)) - len(pmf) // 2
                outside += float(pmf[(steps < -half) | (steps >= half)].sum()) / 4
        worst = max(worst, outside)  # at least the chance that any of the two wraps around
    bound = wraparound_bound(
        bits=bits,
        clients=clients,
        norm=norm,
        dimension=dimension,
        variance=float(clients * share**2),
        noise=gaussian_log_moment,
    )
    assert worst <= bound <= 100 * worst + clients * ROUNDING_FAILURE


def test_the_bound_covers_skellam_tails() -> None:
    for variance, bits in ((20.0, 6), (3.0, 5), (400.0, 8)):
        half = 1 << (bits - 1)
        with mpmath.workdps(30):
            tail = 2 * mpmath.nsum(
                lambda k, v=variance: mpmath.exp(-v) * mpmath.besseli(k, v), [half, half + 200]
            )
        bound = wraparound_bound(
            bits=bits, clients=3, norm=0.0, dimension=1, variance=variance, noise=skellam_log_moment
        )
        assert float(tail) <= bound <= 1000 * float(tail) + 4 * ROUNDING_FAILURE
        # A Gaussian's tail of that variance is not one.
        gaussian = wraparound_bound(
            bits=bits, clients=3, norm=0.0, dimension=1, variance=variance, noise=gaussian_log_moment
        )
        assert gaussian < bound


def test_log_moments() -> None:
    assert gaussian_log_moment(3.0, 0.5) == pytest.approx(0.375, rel=1e-12)
    assert gaussian_log_moment(3.0, 0.5) >= 0.375
    for t in (1e-9, 0.3, 5.0):
        exact = float(3 * (mpmath.cosh(mpmath.mpf(t)) - 1)) if t > 1e-6 else 1.5e-18
        assert exact <= skellam_log_moment(3.0, t) <= exact * (1 + 1e-12)
    assert skellam_log_moment(1.0, 701.0) == math.inf


def test_the_bound_grows_with_all_that_makes_it_likelier() -> None:
    base: dict[str, Any] = {"bits": 8, "clients": 20, "norm": 9.0, "dimension": 64, "variance": 300.0}
    least = wraparound_bound(**base, noise=gaussian_log_moment)
    assert 0 < least < 1
    for name, value in (
        ("bits", 7),
        ("clients", 40),
        ("norm", 60.0),
        ("variance", 900.0),
    ):
        assert wraparound_bound(**(base | {name: value}), noise=gaussian_log_moment) > least
    still: dict[str, Any] = {"norm": 0.0, "noise": gaussian_log_moment}
    assert wraparound_bound(**(base | {"dimension": 128} | still)) > wraparound_bound(**(base | still))
    assert wraparound_bound(**(base | {"bits": 2}), noise=gaussian_log_moment) == 1.0
    assert wraparound_bound(**(base | {"bits": 40}), noise=gaussian_log_moment) == pytest.approx(
        20 * ROUNDING_FAILURE
    )


def test_the_largest_scale_has_few_bits_and_is_nearly_the_limit() -> None:
    for limit in (1.0, 777.7, 1e-12, 0.3):
        found = largest_scale(limit.__ge__, 2.0**20)
        assert found is not None
        assert limit * (1 - 2.0**-14) <= found <= limit
        assert (found * 2.0**17 / 2.0 ** math.floor(math.log2(found))).is_integer()
    assert largest_scale(lambda _: True, 100.0) == pytest.approx(100.0, rel=2**-14)
    assert largest_scale(lambda _: False, 100.0) is None


@pytest.mark.parametrize("kind", [DistributedDiscreteGaussian, DistributedSkellam])
def test_sums_wrap_around_no_more_often_than_stated(kind: type) -> None:
    """A plan with a chance of one half at most, and one that no wrong bound would allow."""
    parameters = {"clients": 5, "minimum_survivors": 5, "dimension": 64, "clip_norm": 1.0, "bits": 8}
    noise = kind(**parameters, noise_multiplier=1.0, wraparound=1e-3)
    vector = np.zeros(64)
    vector[0] = 1.0
    wrapped = 0
    for trial in range(60):
        seed = trial.to_bytes(2, "big")
        messages = np.array([noise.encode(vector, seed, rng=100 * trial + i) for i in range(5)])
        total = (messages.sum(axis=0) + 128) % 256 - 128
        error = noise.decode(total, seed) - 5 * vector
        wrapped += float(np.abs(rotate(error, seed)).max()) > 128 / noise.steps  # a wrap is 256 steps
    assert noise.wraparound_bound <= 1e-3
    assert wrapped <= 4  # five have a chance below 60^5 / 120 * 1e-15 < 1e-8 by the bound, in truth far less
    coarse = kind(**parameters, noise_multiplier=1.0, wraparound=0.999, scale=1.1 * noise.steps)
    assert coarse.wraparound_bound > noise.wraparound_bound
