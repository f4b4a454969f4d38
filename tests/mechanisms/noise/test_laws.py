"""Properties of every additive mechanism, whatever its parameters."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato.mechanisms
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.mechanisms.base.additive import AdditiveMechanism
from sfumato.privacy.catalog import loss_from_json

Make = Callable[[int | float, Fraction, int], AdditiveMechanism]

MECHANISMS: dict[str, Make] = {
    "Laplace": lambda sensitivity, noise, l0: Laplace(sensitivity=sensitivity, scale=noise, l0=l0),
    "Gaussian": lambda sensitivity, noise, l0: Gaussian(sensitivity=sensitivity, stddev=noise, l0=l0),
    "Laplace in L1": lambda sensitivity, noise, l0: Laplace(l1=sensitivity, scale=noise, l0=l0),
    "Gaussian in L2": lambda sensitivity, noise, l0: Gaussian(l2=sensitivity, stddev=noise, l0=l0),
}

sensitivities = st.one_of(st.integers(1, 1000), st.floats(0.01, 1000.0))
ratios = st.fractions(Fraction(1, 4), 20, max_denominator=100)


@pytest.mark.parametrize("make", MECHANISMS.values(), ids=MECHANISMS)
@settings(max_examples=6, deadline=None)
@given(sensitivities, ratios, st.integers(1, 5))
def test_less_noise_or_more_entries_never_cost_less(
    make: Make, sensitivity: int | float, ratio: Fraction, l0: int
) -> None:
    noise = Fraction(sensitivity) * ratio
    loss = make(sensitivity, noise, l0).privacy_loss
    for delta in (1e-9, 1e-3):
        epsilon = loss.epsilon(delta) * (1 - 1e-5)
        assert make(sensitivity, noise / 2, l0).privacy_loss.epsilon(delta) >= epsilon
        assert make(sensitivity, noise, l0 + 1).privacy_loss.epsilon(delta) >= epsilon
        assert make(sensitivity * 2, noise, l0).privacy_loss.epsilon(delta) >= epsilon


@pytest.mark.parametrize("make", MECHANISMS.values(), ids=MECHANISMS)
@settings(max_examples=10, deadline=None)
@given(sensitivities, ratios, st.integers(1, 5), st.integers(0, 2**32))
def test_what_is_released_is_what_is_priced(
    make: Make, sensitivity: int | float, ratio: Fraction, l0: int, seed: int
) -> None:
    mechanism = make(sensitivity, Fraction(sensitivity) * ratio, l0)
    release = mechanism.release(np.zeros(l0, dtype=int), rng=seed)
    assert release.loss == mechanism.privacy_loss
    assert release.distribution == mechanism.distribution
    assert loss_from_json(release.loss.to_json()) == release.loss
    assert hash(mechanism) == hash(make(sensitivity, Fraction(sensitivity) * ratio, l0))


@pytest.mark.parametrize("mechanism", [Laplace, Gaussian])
@settings(max_examples=10, deadline=None)
@given(st.floats(0.05, 5.0), sensitivities)
def test_calibration_meets_every_request(
    mechanism: type[Laplace] | type[Gaussian], epsilon: float, sensitivity: int | float
) -> None:
    loose = mechanism.calibrated(sensitivity=sensitivity, epsilon=epsilon, delta=1e-6)
    tight = mechanism.calibrated(sensitivity=sensitivity, epsilon=epsilon / 2, delta=1e-6)
    assert loose.privacy_loss.epsilon(1e-6) <= epsilon
    assert tight.privacy_loss.epsilon(1e-6) <= epsilon / 2
    assert loose.distribution.stddev * loose.grid.step < tight.distribution.stddev * tight.grid.step


def test_public_names_are_there() -> None:
    for name in sfumato.mechanisms.__all__:
        assert getattr(sfumato.mechanisms, name).__doc__
