"""Distributed noise as a whole: an exact audit with colluders removed, a round with dropouts, refusals."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.federated import (
    DistributedDiscreteGaussian,
    DistributedSkellam,
    plan_bits,
    simulate_round,
)
from sfumato.federated.distributed_noise.rotation import rotate
from sfumato.privacy import DiscreteGaussianSum, Neighboring, PrivacyLoss, Skellam
from tests.cases import cases
from tests.chance import accepts_only, frequencies

KINDS: list[Any] = [DistributedDiscreteGaussian, DistributedSkellam]
SMALL: dict[str, Any] = {
    "clients": 6,
    "minimum_survivors": 4,
    "colluders": 1,
    "dimension": 2,
    "clip_norm": 1.0,
    "noise_multiplier": 0.8,
    "bits": 12,
    "scale": 1.0,
}
Pmf = dict[int, float]


def share_pmf(noise: DistributedDiscreteGaussian | DistributedSkellam) -> Pmf:
    """One client's noise on an entry, from its definition."""
    variance = float(noise.share_variance)
    reach = math.ceil(14 * math.sqrt(variance)) + 8
    if isinstance(noise, DistributedSkellam):
        half = [float(mpmath.exp(-variance) * mpmath.besseli(k, variance)) for k in range(reach + 1)]
    else:
        half = [math.exp(-k * k / (2 * variance)) for k in range(reach + 1)]
    total = half[0] + 2 * math.fsum(half[1:])
    return {k: half[abs(k)] / total for k in range(-reach, reach + 1)}


def sum_pmf(noise: DistributedDiscreteGaussian | DistributedSkellam, count: int) -> Pmf:
    total: Pmf = {0: 1.0}
    for _ in range(count):
        added: Pmf = {}
        for (a, p), (b, q) in itertools.product(total.items(), share_pmf(noise).items()):
            added[a + b] = added.get(a + b, 0.0) + p * q
        total = {k: p for k, p in added.items() if p > 1e-25}
    return total


def divergence(one: Pmf, other: Pmf, shift: tuple[int, ...], epsilon: float) -> float:
    """Of independent entries with noise ``one`` and moved by ``shift``, over noise ``other``."""
    total = 0.0
    reach = range(min(one) - 3, max(one) + 4)
    for x in itertools.product(reach, repeat=len(shift)):
        moved = math.prod(one.get(a - d, 0.0) for a, d in zip(x, shift, strict=True))
        total += max(0.0, moved - math.exp(epsilon) * math.prod(other.get(a, 0.0) for a in x))
    return total


def moves(l2_squared: int, entries: int) -> list[tuple[int, ...]]:
    far = math.isqrt(l2_squared)
    every = itertools.product(range(-far, far + 1), repeat=entries)
    return [move for move in every if 0 < sum(d * d for d in move) <= l2_squared]


@cases("kind", KINDS)
@cases("epsilon", [0.5, 1.5, 3.0])
def test_the_loss_covers_the_honest_noise_for_every_neighbor(kind: type, epsilon: float) -> None:
    """Every rounded vector that a client may send, against zeros, with the colluders' noise taken out."""
    noise = kind(**SMALL)
    honest = sum_pmf(noise, 3)
    assert noise.honest_survivors == 3
    neighbors = [move for move in moves(noise.l2_squared, 2) if move[0] >= move[1] >= 0]  # by symmetry
    assert (1, 1) in neighbors
    truth = max(divergence(honest, honest, move, epsilon) for move in neighbors)
    claimed = noise.privacy_loss.delta(epsilon)
    assert 0 < truth <= claimed
    # Two honest survivors do not add enough: the claim is about three, and no more than it must be.
    fewer = sum_pmf(noise, 2)
    longest = max(neighbors, key=lambda move: sum(d * d for d in move))
    assert kind is DistributedSkellam or divergence(fewer, fewer, longest, epsilon) > claimed


@cases("kind", KINDS)
def test_counting_the_colluders_noise_would_claim_too_little(kind: type) -> None:
    noise = kind(**SMALL)
    honest = sum_pmf(noise, 3)
    truth = max(
        divergence(honest, honest, move, 2.0) for move in moves(noise.l2_squared, 2) if min(move) >= 0
    )
    naive = kind(**(SMALL | {"colluders": 0, "minimum_survivors": 6}))
    loss = naive.privacy_loss
    wrong: PrivacyLoss
    if isinstance(loss, DiscreteGaussianSum):
        wrong = DiscreteGaussianSum(noise.share, 6, noise.l2_squared, 2, neighboring=Neighboring.ZERO_OUT)
    else:
        wrong = Skellam(6 * noise.share_variance, loss.l1, noise.l2_squared, neighboring=Neighboring.ZERO_OUT)
    assert wrong.delta(2.0) < truth <= noise.privacy_loss.delta(2.0)


def test_it_is_zero_out_and_not_add_or_remove() -> None:
    """A client that is absent takes its noise away too: that divergence is above the claim."""
    noise = DistributedDiscreteGaussian(**(SMALL | {"minimum_survivors": 2, "noise_multiplier": 1.2}))
    loss = noise.privacy_loss
    assert loss.neighboring is Neighboring.ZERO_OUT
    assert noise.honest_survivors == 1
    two = sum_pmf(noise, 2)
    one = sum_pmf(noise, 1)
    for epsilon in (1.0, 2.0):
        wide = DiscreteGaussianSum(noise.share, 2, noise.l2_squared, 2, neighboring=Neighboring.ZERO_OUT)
        present = max(divergence(two, two, move, epsilon) for move in moves(noise.l2_squared, 2))
        absent = divergence(two, one, (0, 0), epsilon)
        assert present <= wide.delta(epsilon) < absent


@cases("kind", KINDS)
def test_a_message_is_the_rounded_vector_and_the_noise_that_is_priced(kind: type) -> None:
    """The exact distribution of a message in one dimension: a mixture of two moves, and the noise."""
    noise = kind(**(SMALL | {"dimension": 1, "scale": 2.0, "noise_multiplier": 0.3}))
    (turned,) = rotate(np.array([0.6]), b"1") * noise.steps
    low = math.floor(turned)
    pmf = share_pmf(noise)

    def mixed(share: Pmf) -> Pmf:
        up = turned - low
        return {
            k: up * share.get(k - low - 1, 0.0) + (1 - up) * share.get(k - low, 0.0) for k in range(-4, 5)
        }

    drawn = [int(noise.encode([0.6], b"1", rng=seed)[0]) for seed in range(1200)]
    wider = kind(**(SMALL | {"dimension": 1, "scale": 2.0, "noise_multiplier": 0.6}))
    accepts_only(
        frequencies(Counter(drawn)),
        mixed(pmf),
        wider=mixed(share_pmf(wider)),
        no_rounding_at_random={k: pmf.get(k - round(turned), 0.0) for k in range(-4, 5)},
    )


@cases("kind", KINDS)
def test_a_round_with_dropouts_is_unbiased_and_has_the_stated_variance(kind: type) -> None:
    """Over the 4,000 entries of one sum, by seven standard errors of fixed draws."""
    noise = kind(
        clients=8, minimum_survivors=6, dimension=4000, clip_norm=1.0, noise_multiplier=0.05, bits=14
    )
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(8, 4000))
    vectors /= 1.5 * np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[2] *= 30  # clipped to the norm
    messages = [noise.encode(vector, b"round 7", rng=number) for number, vector in enumerate(vectors)]
    assert all(np.abs(message).max() <= 1 << 17 for message in messages)
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
        follows, noise.variance(6), of_all_eight=noise.variance(8), of_five=noise.variance(6) * 5 / 6
    )


def test_a_round_below_the_minimum_is_aborted_before_anything_is_unmasked() -> None:
    noise = DistributedDiscreteGaussian(**SMALL)
    messages = [noise.encode([0.1, 0.2], b"1", rng=client) for client in range(6)]
    asked = []

    def dropped(client: int, message: str) -> bool:
        asked.append(message)
        return message == "vector" and client > 2

    with pytest.raises(ParameterError):
        simulate_round(noise.secure_aggregation(), messages, dropped=dropped)
    assert "unmask" not in asked


@cases("kind", KINDS)
def test_vectors_of_any_length_stay_within_the_bound(kind: type) -> None:
    noise = kind(**(SMALL | {"dimension": 5, "scale": 3.0, "noise_multiplier": 1e-6, "bits": 20}))
    # A share below a step: what is left is the rounded vector, whose norm is within the bound.
    for vector in ([9e300] * 5, [1e-320, 0, 0, 0, 0], [0.3, -0.4, 0.5, 1.0, -2.0], [1, 0, 0, 0, 0]):
        for trial in range(5):
            sent = noise.encode(np.array(vector), b"s", rng=trial)
            assert int((sent**2).sum()) <= noise.l2_squared + 2 * 8
    for broken in ([math.nan, 1, 1, 1, 1], [math.inf, 0, 0, 0, 0], [0.0] * 5):
        assert np.abs(noise.encode(np.array(broken), b"s", rng=1)).max() <= 1


def test_calibrated_noise_meets_its_target_and_hardly_more() -> None:
    parameters = {k: v for k, v in SMALL.items() if k not in ("noise_multiplier", "scale")} | {"bits": 18}
    for kind, rounds in ((DistributedDiscreteGaussian, 10), (DistributedSkellam, 3)):
        noise = kind.calibrated(epsilon=2.0, delta=1e-6, rounds=rounds, **parameters)
        assert 1.99 < (noise.privacy_loss * rounds).epsilon(1e-6) <= 2.0


def test_the_fewest_bits_are_planned() -> None:
    parameters: dict[str, Any] = {
        "clients": 100,
        "minimum_survivors": 80,
        "dimension": 1000,
        "clip_norm": 2.0,
    }
    for kind in KINDS:
        noise = plan_bits(kind, noise_multiplier=1.0, grid_error=1.02, **parameters)
        one_less = kind(noise_multiplier=1.0, bits=noise.bits - 1, **parameters)
        assert 1 < noise.error_ratio <= 1.02 < one_less.error_ratio
        # Colluders' noise is more than is priced; the grid costs the same.
        colluding = plan_bits(kind, noise_multiplier=1.0, grid_error=1.02, colluders=16, **parameters)
        assert colluding.error_ratio == pytest.approx(math.sqrt(80 / 64), rel=0.02)
    with pytest.raises(ParameterError, match=r"^grid_error must be above 1, got 1"):
        plan_bits(DistributedDiscreteGaussian, noise_multiplier=1.0, grid_error=1, **parameters)
    with pytest.raises(ParameterError, match=r"^clip_norm must be positive"):
        plan_bits(DistributedDiscreteGaussian, noise_multiplier=1.0, **(parameters | {"clip_norm": -1}))


@cases("kind", KINDS)
def test_the_fewest_bits_are_planned_for_any_error(kind: Any) -> None:
    parameters: dict[str, Any] = {
        "clients": 3,
        "minimum_survivors": 3,
        "dimension": 1,
        "clip_norm": 1.0,
        "noise_multiplier": 0.01,
        "wraparound": 0.99,
    }
    for error, bits in ((1.3, 10), (10, 7), (1e9, 3)):
        noise: DistributedSkellam = plan_bits(kind, grid_error=error, **parameters)
        assert noise.bits == bits
        assert noise.error_ratio <= error
        assert plan_bits(kind, grid_error=noise.error_ratio, **parameters) == noise
        if bits > 3:
            assert kind(bits=bits - 1, **parameters).error_ratio > error
    with pytest.raises(ParameterError, match="bits must leave a chance"):
        kind(bits=2, **parameters)
    finest = kind(bits=48, **parameters).error_ratio
    assert plan_bits(kind, grid_error=finest, **parameters).error_ratio <= finest
    with pytest.raises(ParameterError, match=r"^grid_error must be at least 1.* here"):
        plan_bits(kind, grid_error=1 + 1e-15, **parameters)


def test_integer_vectors_have_at_most_their_squared_norm_as_l1_norm() -> None:
    few, many = DistributedSkellam(**SMALL), DistributedSkellam(**(SMALL | {"dimension": 64, "scale": 0.1}))
    assert few.l2_squared > few.padded
    assert few.privacy_loss.l1 == math.isqrt(2 * few.l2_squared)
    assert many.l2_squared < many.padded
    assert many.privacy_loss.l1 == many.l2_squared


@cases("kind", KINDS)
def test_sums_are_residues(kind: type) -> None:
    """Whichever representative a transport hands over, the decoded sum is that of the centred one."""
    noise = kind(**SMALL)
    for total in ([2047, -2048], [5, 0]):
        expected = noise.decode(total, b"1")
        assert np.abs(expected).max() <= 2048 * math.sqrt(2)
        for moved in ([total[0] + 4096, total[1]], [total[0] - 3 * 4096, total[1] + 4096]):
            assert noise.decode(moved, b"1").tolist() == expected.tolist()


def test_the_share_covers_the_noise_multiplier() -> None:
    for kind in KINDS:
        noise = kind(**SMALL)
        sure = noise.honest_survivors * noise.share_variance
        asked = Fraction(SMALL["noise_multiplier"]) ** 2 * noise.l2_squared
        assert asked <= sure <= asked * (1 + Fraction(1, 500))
        assert noise.variance(4) == pytest.approx(4 * (float(noise.share_variance) + 0.25))
    assert DistributedDiscreteGaussian(**SMALL).privacy_loss.zcdp().rho >= 0.5 / 0.8**2 * (1 - 1 / 500)


def test_the_loss_against_more_colluders_is_larger() -> None:
    for kind in KINDS:
        noise = kind(**SMALL)
        losses = [noise.loss_against(colluders).epsilon(1e-6) for colluders in range(4)]
        assert losses == sorted(losses)
        assert losses[0] < losses[1] == noise.privacy_loss.epsilon(1e-6) < losses[3]
        assert noise.loss_against(3) == kind(**(SMALL | {"scale": 1.0})).loss_against(3)
        for colluders in (4, -1):
            with pytest.raises(ParameterError, match=r"^colluders must be"):
                noise.loss_against(colluders)
    alone = DistributedDiscreteGaussian(**SMALL).loss_against(3)
    assert alone.summands == 1


def test_parameters_are_written_and_read() -> None:
    noise = DistributedDiscreteGaussian(**(SMALL | {"scale": None, "bits": 16}))
    assert noise.to_json() == {
        "format": "sfumato.distributed_noise",
        "version": 1,
        "mechanism": "discrete-gaussian",
        "clients": 6,
        "minimum_survivors": 4,
        "colluders": 1,
        "dimension": 2,
        "clip_norm": 1.0,
        "noise_multiplier": 0.8,
        "bits": 16,
        "wraparound": 1e-6,
        "scale": noise.steps,
    }
    for kind in KINDS:
        noise = kind(**(SMALL | {"scale": None, "bits": 14}))
        again = kind.from_json(json.loads(json.dumps(noise.to_json())))
        assert again == noise
        assert again.privacy_loss == noise.privacy_loss
    with pytest.raises(ParameterError, match=r"^document must be one of DistributedDiscreteGaussian"):
        DistributedDiscreteGaussian.from_json(noise.to_json())
    with pytest.raises(ParameterError, match=r"^document must be"):
        DistributedSkellam.from_json(
            {"format": "sfumato.distributed_noise", "version": 1, "mechanism": "skellam"}
        )


@cases("kind", KINDS)
def test_a_scale_of_another_machine_is_taken_within_its_rounding(kind: Any) -> None:
    coarse = kind(**(SMALL | {"scale": 200.0, "wraparound": 0.99}))
    assert 1e-12 < coarse.wraparound_bound < 0.9
    for excess, taken in ((5e-10, True), (2e-9, False)):
        document = coarse.to_json() | {"wraparound": coarse.wraparound_bound / (1 + excess)}
        if taken:
            assert kind.from_json(document).steps == 200.0
        else:
            with pytest.raises(ParameterError, match="scale must leave a chance of at most"):
                kind.from_json(document)


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"clients": 2}, "clients must be an integer of at least 3"),
    ({"dimension": 0}, "dimension must be an integer of at least 1"),
    ({"dimension": (1 << 28) + 1}, "dimension must be at most 2^28"),
    ({"clip_norm": 0}, "clip_norm must be positive"),
    ({"noise_multiplier": -1}, "noise_multiplier must be positive"),
    ({"bits": 49}, "bits must be from 2 to 48, got 49"),
    ({"bits": 1}, "bits must be from 2 to 48, got 1"),
    ({"minimum_survivors": 7}, "minimum_survivors must be at most the 6 clients, got 7"),
    ({"minimum_survivors": 1}, "minimum_survivors must be an integer of at least 2"),
    ({"colluders": 4}, "colluders must be below the 4 survivors, so that an honest one is among them"),
    ({"wraparound": 0}, "wraparound must be strictly between 0 and 1"),
    ({"scale": 1000.0}, "scale must leave a chance of at most 1e-06 that the sum wraps around, got 1000.0"),
    ({"scale": 0}, "scale must be positive"),
    (
        {"scale": 5e-324},
        "scale must make clip_norm at least 2^-40 of a step, which is 9.09495e-13 here, got 5e-324",
    ),
    ({"scale": 1e308}, "scale must leave a chance of at most 1e-06 that the sum wraps around, got 1e+308"),
    (
        {"clip_norm": 1e-300, "scale": None},
        "clip_norm must be from 2^-400 to 2^400, got 1e-300; use other units",
    ),
    ({"clip_norm": 1.7e308, "scale": None}, "clip_norm must be from 2^-400 to 2^400, got 1.7e+308"),
    ({"noise_multiplier": 5e-324, "scale": None}, "noise_multiplier must be at least 2^-100, got 5e-324"),
    ({"noise_multiplier": 1e300, "scale": None}, "noise_multiplier must be at most "),
    (
        {"bits": 3, "scale": None},
        "bits must leave a chance of at most 1e-06 that the sum wraps around, got 3",
    ),
]


def test_bad_parameters_are_refused_before_any_key_is_made() -> None:
    for kind in KINDS:
        for change, message in REFUSED:
            with pytest.raises(ParameterError) as caught:
                kind(**(SMALL | change))
            assert str(caught.value).startswith(message)


def test_all_that_is_not_refused_has_finite_numbers() -> None:
    """At the ends of what is taken every number that a user reads is finite, and a message decodes."""
    ends = [
        {"clip_norm": 2.0**-400, "noise_multiplier": 2.0**-100},
        {"clip_norm": 2.0**400, "noise_multiplier": 500.0},
    ]
    for kind in KINDS:
        for change in ends:
            noise = kind(**(SMALL | {"scale": None, "bits": 20} | change))
            assert 0 < noise.variance(6) < math.inf
            assert 0 < noise.error_ratio < math.inf
            assert noise.privacy_loss.epsilon(1e-6) > 0
            assert np.isfinite(noise.decode(noise.encode([0.0, 1.7e308], b"1", rng=1), b"1")).all()
            assert type(noise).from_json(noise.to_json()) == noise


def test_vectors_and_sums_of_another_shape_are_refused_without_their_values() -> None:
    noise = DistributedDiscreteGaussian(**SMALL)
    for vector in ([1.0], [[1.0, 2.0]], ["a", "b"], [1j, 2j]):
        with pytest.raises(ParameterError, match=r"^vector must be 2 numbers, got a value of type"):
            noise.encode(vector, b"1")
    for total in ([1], [0.5, 0.5]):
        with pytest.raises(ParameterError, match=r"^total must be 2 integers"):
            noise.decode(total, b"1")
    for survivors in (3, 7):
        with pytest.raises(ParameterError, match=r"^survivors must be"):
            noise.variance(survivors)


def test_secure_aggregation_has_the_modulus_and_the_minimum() -> None:
    plan = DistributedDiscreteGaussian(**(SMALL | {"dimension": 5})).secure_aggregation(round_number=3)
    assert (plan.clients, plan.length, plan.bits, plan.minimum_survivors) == (6, 8, 12, 4)
    assert plan.modular
    assert plan.bounds == (-2048, 2047)
    assert plan.round_number == 3
