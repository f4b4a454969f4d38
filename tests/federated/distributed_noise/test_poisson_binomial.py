"""The Poisson binomial mechanism: what is drawn, what the sum says, and what it costs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.federated import DistributedPoissonBinomial, secure_aggregation_report, simulate_round
from sfumato.federated.distributed_noise.rotation import rotate
from sfumato.privacy import Neighboring, RDPCurve, loss_from_json
from tests.chance import accepts_only, frequencies

SMALL: dict[str, Any] = {
    "clients": 6,
    "minimum_survivors": 4,
    "colluders": 1,
    "dimension": 2,
    "clip_norm": 1.0,
    "theta": 0.2,
    "draws": 4,
}
Law = np.ndarray[Any, Any]


def coins(count: int, chance: float) -> Law:
    return np.array([math.comb(count, h) * chance**h * (1 - chance) ** (count - h) for h in range(count + 1)])


def test_a_message_is_the_number_of_heads() -> None:
    noise = DistributedPoissonBinomial(**(SMALL | {"dimension": 1}))
    (turned,) = rotate(np.array([0.6]), b"1")
    drawn = [int(noise.encode([0.6], b"1", rng=seed)[0]) for seed in range(1500)]

    def law(chance: float) -> dict[int, float]:
        return dict(enumerate(coins(4, chance).tolist(), -2))

    accepts_only(
        frequencies(Counter(drawn)),
        law(0.5 + 0.2 * turned),
        fair=law(0.5),
        unscaled=law(0.5 + 0.2 * math.copysign(1, turned)),
        other_sign=law(0.5 - 0.2 * turned),
    )


def test_entries_and_draws_are_independent() -> None:
    noise = DistributedPoissonBinomial(**(SMALL | {"theta": 0.25, "draws": 2}))
    drawn = Counter(tuple(noise.encode([0.0, 0.0], b"1", rng=seed).tolist()) for seed in range(1200))
    one = dict(enumerate((0.25, 0.5, 0.25), -1))
    both = {(a, b): one[a] * one[b] for a in one for b in one}
    accepts_only(frequencies(drawn), both, same={(a, a): chance for a, chance in one.items()})


def test_a_round_with_dropouts_is_unbiased_and_has_the_stated_variance() -> None:
    """Over the 4,096 entries of one sum, by seven standard errors of fixed draws."""
    noise = DistributedPoissonBinomial(
        clients=8, minimum_survivors=6, dimension=4000, clip_norm=1.0, theta=0.05, draws=250
    )
    assert noise.bits == 11
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(8, 4000))
    vectors /= 1.5 * np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[2] *= 30  # clipped to the norm
    messages = [noise.encode(vector, b"round 7", rng=number) for number, vector in enumerate(vectors)]
    assert all(np.abs(message).max() <= 125 for message in messages)
    found = simulate_round(
        noise.secure_aggregation(round_number=7),
        messages,
        dropped=lambda client, message: (client, message) in ((1, "shares"), (5, "vector")),
    )
    assert len(found.survivors) == 6
    vectors[2] /= np.linalg.norm(vectors[2])
    error = noise.decode(found.total, b"round 7") - vectors[list(found.survivors)].sum(axis=0)

    def follows(variance: float) -> None:
        assert abs(error.mean()) < 7 * math.sqrt(variance / 4000)
        assert abs(error @ vectors[2]) < 7 * math.sqrt(variance)  # along a vector that was sent
        assert abs(float((error**2).mean()) / variance - 1) < 7 * math.sqrt(2 / 4000)

    accepts_only(
        follows, noise.variance(6), of_all_eight=noise.variance(8), of_four=noise.variance(6) * 4 / 6
    )


def test_the_largest_sums_do_not_wrap_around() -> None:
    for draws in (2, 4, 10, 42):
        noise = DistributedPoissonBinomial(**(SMALL | {"draws": draws, "dimension": 1}))
        most = noise.clients * draws // 2
        assert 1 << noise.bits > noise.clients * draws + 1 >= 1 << (noise.bits - 1)
        plan = noise.secure_aggregation()
        for sign in (1, -1):
            total = plan.decoded(np.array([sign * most % 2**64], np.uint64), noise.clients)
            assert total.tolist() == [sign * most]
            expected = sign * noise.clients * noise.entry_bound / (2 * noise.theta)
            assert abs(noise.decode(total, b"1")[0]) == pytest.approx(abs(expected), rel=1e-12)


def test_no_neighbors_exceed_the_loss() -> None:
    """The exact profile of one entry, with each of the two others at either extreme, at three deltas."""
    noise = DistributedPoissonBinomial(**(SMALL | {"dimension": 1, "draws": 60, "theta": 0.03}))
    loss = noise.privacy_loss
    for high in range(3):
        others = np.convolve(coins(60 * high, 0.53), coins(60 * (2 - high), 0.47))
        p, q = np.convolve(others, coins(60, 0.53)), np.convolve(others, coins(60, 0.5))
        for delta in (1e-2, 1e-4, 1e-8):
            epsilon = loss.epsilon(delta)
            for one, other in ((p, q), (q, p)):
                assert np.maximum(one - math.exp(epsilon) * other, 0).sum() <= delta
                # A bound that is not empty: half the epsilon is too little.
                assert np.maximum(one - math.exp(epsilon / 2) * other, 0).sum() > delta / 100


def test_the_loss_counts_the_l2_norm_and_the_honest_survivors() -> None:
    noise = DistributedPoissonBinomial(
        clients=100, minimum_survivors=80, colluders=10, dimension=4096, clip_norm=2.0, theta=0.005, draws=650
    )
    loss = noise.privacy_loss
    assert isinstance(loss, RDPCurve)
    assert loss.neighboring is Neighboring.ZERO_OUT
    assert loss == noise.loss_against(10)
    assert loss_from_json(loss.to_json()) == loss
    # That of a Gaussian of the same variance, and a few percent for the grid.
    deviation = math.sqrt(70 * 650 / 4) * noise.entry_bound / (650 * 0.005)
    assert 1 < loss.rdp(10.0) / (10 * 2.0**2 / (2 * deviation**2)) < 1.04
    assert noise.variance(80) == pytest.approx(deviation**2 * 80 / 70, rel=1e-6)
    losses = [noise.loss_against(colluders).epsilon(1e-6) for colluders in (0, 10, 40, 79)]
    assert losses == sorted(set(losses))
    with pytest.raises(ParameterError, match=r"^colluders must be below the 80 survivors"):
        noise.loss_against(80)
    # The norm after rounding is enforced, whatever the vector is.
    assert noise.entry_bound == pytest.approx(2 * math.sqrt(2 * math.log(2 * 4096 / 1e-6) / 4096))
    most = 2**32 * noise.theta
    assert 1 < noise.l2_squared / (2 * most / noise.entry_bound) ** 2 < 1 + 1e-5
    # Entries never move more than theta: with few of them that is the smaller bound.
    few = DistributedPoissonBinomial(**SMALL)
    assert few.entry_bound == 1.0
    assert few.l2_squared > (0.2 * 2**32) ** 2 * 0.999


def test_the_trust_report_and_a_round_take_it() -> None:
    noise = DistributedPoissonBinomial(**(SMALL | {"draws": 100, "theta": 0.01}))
    report = secure_aggregation_report(noise.secure_aggregation(), noise, delta=1e-5, rounds=2)
    expected = (noise.loss_against(0) * 2).epsilon(1e-5)
    assert report.rows[0].epsilon == pytest.approx(expected, rel=1e-12)


def test_a_mechanism_is_calibrated_to_bits_and_a_budget() -> None:
    rest: dict[str, Any] = {"minimum_survivors": 90, "dimension": 1000, "clip_norm": 3.0}
    noise = DistributedPoissonBinomial.calibrated(
        epsilon=2.0, delta=1e-6, bits=16, clients=100, rounds=4, **rest
    )
    assert 2.0 * (1 - 1e-5) < (noise.privacy_loss * 4).epsilon(1e-6) <= 2.0
    assert (noise.bits, noise.draws) == (16, 654)
    more = DistributedPoissonBinomial.calibrated(
        epsilon=2.0, delta=1e-6, bits=18, clients=100, rounds=4, **rest
    )
    assert more.variance(90) < noise.variance(90)
    widest = DistributedPoissonBinomial.calibrated(epsilon=1e5, delta=1e-6, bits=10, clients=100, **rest)
    assert (widest.theta, widest.draws) == (0.25, 10)
    for changed, message in (
        ({"bits": 7}, "bits must hold two draws of each of 100 clients, got 7"),
        ({"bits": 49}, "bits must be from 2 to 48"),
        ({"epsilon": 1e-9}, "epsilon must be met by a theta of at least 2^-20"),
        ({"delta": 0.0}, "delta must be strictly between 0 and 1"),
        ({"clients": 2}, "clients must be an integer of at least 3"),
        ({"rounds": 0}, "rounds must be an integer of at least 1"),
    ):
        given = {"epsilon": 1.0, "delta": 1e-6, "bits": 16, "clients": 100, **rest, **changed}
        with pytest.raises(ParameterError) as refused:
            DistributedPoissonBinomial.calibrated(**given)
        assert str(refused.value).startswith(message), refused.value


def test_calibration_ends_where_theta_is_small() -> None:
    """Between neighbors of the grid the geometric mean is the lower one, which once ended no search."""
    sizes: dict[str, Any] = {
        "clients": 8,
        "minimum_survivors": 6,
        "dimension": 3,
        "clip_norm": 1.0,
        "bits": 16,
    }
    noise = DistributedPoissonBinomial.calibrated(epsilon=5e-324, delta=1e-3, **sizes)
    assert noise.theta < 2.0**-14
    assert noise.privacy_loss.epsilon(1e-3) <= 5e-324


def test_bad_parameters_are_refused() -> None:
    for changed, message in (
        ({"clients": 2}, "clients must be an integer of at least 3"),
        ({"minimum_survivors": 7}, "minimum_survivors must be at most the 6 clients"),
        ({"colluders": 4}, "colluders must be below the 4 survivors"),
        ({"dimension": 0}, "dimension must be an integer of at least 1"),
        ({"dimension": 2**28 + 1}, "dimension must be at most 2^28"),
        ({"clip_norm": 0.0}, "clip_norm must be positive"),
        ({"clip_norm": 5e-324}, "clip_norm must be from 2^-400 to 2^400"),
        ({"clip_norm": 2.0**-401}, "clip_norm must be from 2^-400 to 2^400"),
        ({"clip_norm": 2.0**401}, "clip_norm must be from 2^-400 to 2^400"),
        ({"theta": 0.2500001}, "theta must be from 2^-20 to 1/4"),
        ({"theta": 2.0**-21}, "theta must be from 2^-20 to 1/4"),
        ({"draws": 3}, "draws must be even, got 3"),
        ({"draws": 0}, "draws must be an integer of at least 2"),
        ({"draws": 2**47}, "draws must leave sums within 48 bits"),
        ({"clipped": 1.0}, "clipped must be strictly between 0 and 1"),
    ):
        with pytest.raises(ParameterError) as refused:
            DistributedPoissonBinomial(**(SMALL | changed))
        assert str(refused.value).startswith(message), refused.value
    for norm in (2.0**-400, 2.0**400):
        extreme = DistributedPoissonBinomial(**(SMALL | {"clip_norm": norm}))
        found = extreme.decode(extreme.encode([norm, -norm], b"seed"), b"seed")
        assert np.isfinite(found / norm).all()
        assert 0 < extreme.variance(6) < math.inf
    noise = DistributedPoissonBinomial(**SMALL)
    for vector in ([1.0], [[1.0, 2.0]], ["a", "b"]):
        with pytest.raises(ParameterError, match=r"^vector must be 2 numbers"):
            noise.encode(vector, b"1")
    for total in ([1], [1.0, 2.0]):
        with pytest.raises(ParameterError, match=r"^total must be 2 integers"):
            noise.decode(total, b"1")
    for survivors in (3, 7):
        with pytest.raises(ParameterError, match=r"^survivors must be"):
            noise.variance(survivors)
    for broken in ([math.nan, 1.0], [math.inf, 0.0], [9e300, -9e300], [5e-324, 0.0]):
        assert np.abs(noise.encode(broken, b"1", rng=1)).max() <= 2


def test_parameters_are_written_and_read() -> None:
    noise = DistributedPoissonBinomial(**(SMALL | {"theta": 0.1}))
    document = noise.to_json()
    assert document == {
        "format": "sfumato.distributed_poisson_binomial",
        "version": 1,
        "mechanism": "poisson-binomial",
        "clients": 6,
        "minimum_survivors": 4,
        "colluders": 1,
        "dimension": 2,
        "clip_norm": 1.0,
        "theta": math.floor(0.1 * 2**32) / 2**32,
        "draws": 4,
        "clipped": 1e-6,
    }
    assert DistributedPoissonBinomial.from_json(document) == noise == replace(noise)
    assert noise != replace(noise, clipped=1e-3)
    with pytest.raises(ParameterError, match=r"^document must be one of DistributedPoissonBinomial"):
        DistributedPoissonBinomial.from_json(document | {"mechanism": "skellam"})
