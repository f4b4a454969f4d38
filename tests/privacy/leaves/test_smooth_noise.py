"""Laplace and Gaussian noise of a scale that moves, against its exact laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad, trapezoid

from sfumato.errors import ParameterError
from sfumato.privacy import Gaussian, Laplace, PrivacyLoss, SmoothGaussian, SmoothLaplace, loss_from_json

CASES = [(2.0, 0.05), (2.0, 0.3), (20.0, 0.01), (0.5, 0.02), (3.0, 0.0)]
LINE = np.concatenate(
    [np.linspace(-90, -20, 40_000), np.linspace(-20, 20, 160_000), np.linspace(20, 90, 40_000)]
)


def neighbors(noise: float, smoothness: float) -> list[tuple[float, float]]:
    """Centres and log scales of the second law, the first being the standard one; also inner ones."""
    changes = np.linspace(-smoothness, smoothness, 7)
    return [(share * min(1.0, math.exp(c)) / noise, c) for c in changes for share in (0.0, 0.6, 1.0)]


def log_density(kind: type, z: np.ndarray, centre: float = 0.0, log_scale: float = 0.0) -> np.ndarray:
    """Up to the normalising constant, which two laws of a kind share."""
    distance = np.abs(z - centre) * math.exp(-log_scale)
    return -log_scale - (distance if kind is SmoothLaplace else distance**2 / 2)


def normaliser(kind: type) -> float:
    return math.log(2) if kind is SmoothLaplace else 0.5 * math.log(2 * math.pi)


def hockey_stick(kind: type, centre: float, change: float, epsilon: float) -> float:
    p, q = log_density(kind, LINE), log_density(kind, LINE, centre, change)
    return float(trapezoid(np.maximum(0, np.exp(p) - np.exp(epsilon + q)), LINE)) / math.exp(normaliser(kind))


@pytest.mark.parametrize(("noise", "smoothness"), CASES)
def test_the_profile_of_laplace_noise_is_bounded(noise: float, smoothness: float) -> None:
    loss = SmoothLaplace(noise, smoothness=smoothness)
    shift = 1 / noise
    for epsilon in (
        0.0,
        0.5 * shift,
        shift + smoothness,
        1.3 * shift + smoothness,
        2 * shift + 4 * smoothness,
    ):
        worst = max(hockey_stick(SmoothLaplace, *pair, epsilon) for pair in neighbors(noise, smoothness))
        assert worst <= loss.delta(epsilon) + 1e-6
        if epsilon > shift + smoothness and loss.delta(epsilon) > 1e-5:
            # One pair of neighbors comes close: only |z - d| was bounded.
            assert worst >= 0.3 * loss.delta(epsilon)


@pytest.mark.parametrize(("noise", "smoothness"), CASES)
@pytest.mark.parametrize("kind", [SmoothLaplace, SmoothGaussian])
def test_the_divergences_are_bounded(kind: type, noise: float, smoothness: float) -> None:
    def density(z: float, order: float, centre: float, change: float) -> float:
        p, q = (log_density(kind, np.array(z), *distribution) for distribution in ((), (centre, change)))
        return math.exp(order * float(p) - (order - 1) * float(q) - normaliser(kind))

    for order in (1.2, 2.0):
        found = kind(noise, smoothness=smoothness).rdp(order)
        assert math.isfinite(found)
        truths = []
        for distribution in neighbors(noise, smoothness):
            total = quad(density, -80, 80, (order, *distribution), points=[0.0, distribution[0]], limit=400)[
                0
            ]
            truths.append(math.log(total) / (order - 1))
        assert max(truths) <= found * (1 + 1e-7) + 1e-9
        if kind is SmoothGaussian:
            assert found <= max(truths) * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (2.0, 1e-3)])
def test_published_calibrations_meet_their_target(epsilon: float, delta: float) -> None:
    # Nissim, Raskhodnikova, Smith 2007, admissible noise in one dimension.
    log = math.log(2 / delta)
    assert SmoothLaplace(2 / epsilon, smoothness=epsilon / (2 * log)).delta(epsilon) <= delta
    wide = SmoothGaussian(5 * math.sqrt(2 * log) / epsilon, smoothness=epsilon / (4 * (1 + log)))
    assert wide.delta(epsilon) <= delta


def test_a_scale_that_stays_gives_the_noise_itself() -> None:
    assert SmoothLaplace(2.0, smoothness=0.0).epsilon(0.0) == pytest.approx(0.5, rel=1e-12)
    assert SmoothGaussian(2.0, smoothness=0.0).rdp(5.0) == pytest.approx(Gaussian(2.0).rdp(5.0), rel=1e-12)
    assert SmoothLaplace(2.0, smoothness=1e-300).epsilon(1e-9) == pytest.approx(0.5, rel=1e-5)
    assert SmoothLaplace(2.0, smoothness=0.01).epsilon(1e-9) > Laplace(2.0).epsilon(1e-9)


def test_orders_beyond_the_tails_prove_nothing() -> None:
    assert SmoothGaussian(4.0, smoothness=0.1).rdp(1.01 / -math.expm1(-0.2)) == math.inf
    assert SmoothGaussian(4.0, smoothness=0.1).rdp(0.9 / math.expm1(0.2) + 1) < math.inf
    assert SmoothLaplace(4.0, smoothness=0.1).rdp(1 + 1.01 / math.expm1(0.1)) == math.inf
    assert SmoothLaplace(4.0, smoothness=0.1).rdp(1 + 0.99 / math.expm1(0.1)) < math.inf


@pytest.mark.parametrize("loss", [SmoothLaplace(2.0, smoothness=0.05), SmoothGaussian(5.0, smoothness=0.02)])
def test_they_compose(loss: PrivacyLoss) -> None:
    one, ten = loss.epsilon(1e-6), (loss * 10).epsilon(1e-6)
    assert one < ten < 10 * one
    assert loss_from_json(loss.to_json()) == loss
    assert not (loss * 10 + Laplace(1.0)).epsilon_interval(1e-6).tight


def test_parameters_are_checked() -> None:
    for kind in (SmoothLaplace, SmoothGaussian):
        assert kind(0.0, smoothness=0.1).epsilon(0.9) == math.inf
        assert kind(1.0, smoothness=1e9).epsilon(0.5) == math.inf
        with pytest.raises(ParameterError, match=r"^smoothness must"):
            kind(1.0, smoothness=-0.1)
        with pytest.raises(ParameterError, match=r"^noise_multiplier must"):
            kind(-1.0, smoothness=0.1)
