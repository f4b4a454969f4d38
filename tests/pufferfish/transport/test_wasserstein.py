from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.pufferfish import (
    GeneralWasserstein,
    JointDistribution,
    PufferfishGuarantee,
    Specification,
    WassersteinMechanism,
    protects,
)

ROWS = list(itertools.product((0, 1), repeat=4))
WEIGHTS = (Fraction(1, 10), Fraction(3, 20), Fraction(1, 2), Fraction(3, 20), Fraction(1, 10))
CLIQUE = JointDistribution(ROWS, [WEIGHTS[sum(row)] / math.comb(4, sum(row)) for row in ROWS])
SICK = Specification.of_records(models=CLIQUE)


def test_the_flu_clique_needs_half_of_group_privacy() -> None:
    mechanism = WassersteinMechanism(specification=SICK, query=sum, epsilon=1.0)
    assert (mechanism.scale, mechanism.distance) == (2.0, 2)
    assert protects(mechanism).epsilon <= 1.0
    # A little less noise than the bound may still do; noise for independent records does not.
    assert not protects(Laplace(sensitivity=1, scale=1), query=sum, specification=SICK, epsilon=1.0)


def test_rounding_is_in_the_scale() -> None:
    mean = WassersteinMechanism(specification=SICK, query=lambda d: Fraction(sum(d), 3), epsilon=1.0)
    assert Fraction(2, 3) < Fraction(mean.scale) < Fraction(2, 3) * (1 + Fraction(1, 10**7))
    assert protects(mean).epsilon <= 1.0
    released = mean.answer([1, 0, 0, 1], rng=3)
    assert isinstance(released.value, float)
    whole = WassersteinMechanism(specification=SICK, query=sum, epsilon=1.0).answer([1, 0, 0, 1], rng=3)
    assert isinstance(whole.value, int)
    assert whole.guarantee.secrets == "the value of each record, against each other value"


def test_a_known_bound_replaces_the_search() -> None:
    given = WassersteinMechanism(specification=SICK, query=sum, epsilon=0.5, distance=3)
    assert given.scale == 6
    assert WassersteinMechanism(specification=SICK, query=sum, epsilon=0.5, distance=3.0).scale > 6


def test_nothing_to_hide_is_refused() -> None:
    for mechanism in (WassersteinMechanism, GeneralWasserstein):
        noise: Any = (
            {"epsilon": 1.0} if mechanism is WassersteinMechanism else {"noise": Laplace, "magnitude": 1}
        )
        with pytest.raises(ParameterError, match="say something of a secret, but its distance is zero"):
            mechanism(specification=SICK, query=lambda d: 1, **noise)
        with pytest.raises(ParameterError, match="Specification"):
            mechanism(**{"specification": CLIQUE, "query": sum, **noise})


def test_releases_are_not_added() -> None:
    guarantee = WassersteinMechanism(specification=SICK, query=sum, epsilon=1.0).guarantee
    with pytest.raises(NeighboringMismatch, match="one has no quilts"):
        guarantee + guarantee


def test_any_noise_is_priced_at_the_distance() -> None:
    gaussian = GeneralWasserstein(specification=SICK, query=sum, noise=Gaussian, magnitude=4)
    # Renyi: order W^2 / (2 sigma^2), for the discrete noise too (Canonne, Kamath, Steinke 2020).
    assert gaussian.guarantee_at(order=3.0).epsilon == pytest.approx(3 * 4 / 32, rel=1e-6)
    at_delta = gaussian.guarantee_at(delta=1e-6)
    assert at_delta.epsilon == Gaussian(sensitivity=2, stddev=4).privacy_loss.epsilon(1e-6)
    assert (at_delta.delta, at_delta.order) == (1e-6, None)
    laplace = GeneralWasserstein(specification=SICK, query=sum, noise=Laplace, magnitude=4)
    assert laplace.guarantee_at(delta=0.0).epsilon == 0.5
    assert laplace.guarantee_at(order=2.0).epsilon < 0.5
    assert laplace.distribution == Laplace(sensitivity=2, scale=4).distribution
    released = gaussian.release(2, delta=1e-6, rng=4)
    assert isinstance(released.guarantee, PufferfishGuarantee)
    assert released.simulated
    for wrong in ({}, {"order": 2.0, "delta": 0.1}):
        with pytest.raises(ParameterError, match="be given, or else delta"):
            gaussian.guarantee_at(**wrong)
    with pytest.raises(ParameterError, match="Gaussian or Laplace"):
        GeneralWasserstein(specification=SICK, query=sum, noise=int, magnitude=4)  # type: ignore[arg-type]


def test_the_renyi_divergence_of_the_mixtures_is_below_the_bound() -> None:
    laplace = GeneralWasserstein(specification=SICK, query=sum, noise=Laplace, magnitude=3)
    for order in (1.5, 4.0):
        bound = laplace.guarantee_at(order=order).epsilon
        for pair in SICK.compiled():
            for one, other in ((pair.first, pair.second), (pair.second, pair.first)):
                masses = []
                for weights in (one, other):
                    total = sum(weights.values())
                    centres = [(sum(d), float(w / total)) for d, w in weights.items()]
                    half = math.tanh(1 / 6)  # the normaliser of discrete Laplace noise of scale 3
                    masses.append(
                        [
                            half * sum(p * math.exp(-abs(y - c) / 3) for c, p in centres)
                            for y in range(-150, 155)
                        ]
                    )
                power = sum(p**order * q ** (1 - order) for p, q in zip(*masses, strict=True))
                assert math.log(power) / (order - 1) <= bound + 1e-12
