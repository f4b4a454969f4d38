"""Properties of every mechanism on a stream, whatever its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.mechanisms import (
    BandedToeplitz,
    BinaryTree,
    BufferedToeplitz,
    ContinualSum,
    LowerTriangular,
    Participation,
    PureContinualSum,
    SquareRoot,
    Strategy,
)
from sfumato.privacy.catalog import loss_from_json

MAKE: dict[str, Callable[[int], Strategy]] = {
    "tree": lambda steps: BinaryTree(steps=steps),
    "square root": lambda steps: SquareRoot(steps=steps),
    "bands": lambda steps: BandedToeplitz(steps=steps, bands=[1.0, 0.6, 0.3][:steps]),
    "buffers": lambda steps: BufferedToeplitz(steps=steps, decays=(0.95, 0.5), weights=(0.3, 0.3)),
    "lower triangular": lambda steps: LowerTriangular(rows=SquareRoot(steps=steps).matrix()),
}
schemes = st.builds(
    lambda most, gap: Participation(max_participations=most, separation=gap),
    st.one_of(st.none(), st.integers(1, 5)),
    st.integers(1, 8),
)
sensitivities = st.one_of(st.integers(1, 50), st.floats(0.01, 50.0))


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), schemes, sensitivities, st.fractions(1, 30, max_denominator=20))
def test_the_loss_follows_its_parameters(
    make: Callable[[int], Strategy],
    steps: int,
    scheme: Participation,
    sensitivity: int | float,
    ratio: Fraction,
) -> None:
    mechanism = ContinualSum(
        strategy=make(steps),
        sensitivity=sensitivity,
        stddev=Fraction(sensitivity) * ratio,
        participation=scheme,
    )
    rho = mechanism.privacy_loss.zcdp().rho
    # What is drawn on is so fine that the loss is that of the strategy in real numbers, or hardly more.
    exact = mechanism.strategy.loss(float(ratio), participation=scheme).zcdp().rho
    assert exact * (1 - 3e-3) <= rho <= exact * (1 + 3e-3)
    assert loss_from_json(mechanism.privacy_loss.to_json()) == mechanism.privacy_loss
    twice = replace(mechanism, stddev=2 * Fraction(mechanism.stddev))
    assert twice.privacy_loss.zcdp().rho == pytest.approx(rho / 4, rel=1e-12)
    often = replace(mechanism, participation=Participation(max_participations=None, separation=1))
    assert often.privacy_loss.zcdp().rho >= rho * (1 - 1e-12)


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@settings(max_examples=20, deadline=None)
@given(st.data(), st.integers(1, 30), st.integers(0, 2**32))
def test_streams_release_what_arrays_do(
    make: Callable[[int], Strategy], data: st.DataObject, steps: int, seed: int
) -> None:
    """Without noise to speak of: sums of the same values, with the same errors stated."""
    values = np.array(data.draw(st.lists(st.integers(-(10**6), 10**6), min_size=steps, max_size=steps)))
    mechanism = ContinualSum(strategy=make(steps), sensitivity=1, stddev=Fraction(1, 10**4))
    at_once = mechanism.release(values, rng=seed)
    stream = mechanism.stream(rng=seed)
    one_by_one = [stream.send(int(value)) for value in values]
    np.testing.assert_allclose(at_once.value, np.cumsum(values), atol=0.05)
    np.testing.assert_allclose([release.value for release in one_by_one], np.cumsum(values), atol=0.05)
    np.testing.assert_allclose([release.stddev for release in one_by_one], at_once.stddev, rtol=1e-12)
    assert all(release.loss == at_once.loss for release in one_by_one)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), schemes, sensitivities, st.floats(0.05, 5.0))
def test_pure_calibration_is_met_and_tight(
    steps: int, scheme: Participation, sensitivity: int | float, epsilon: float
) -> None:
    mechanism = PureContinualSum.calibrated(
        strategy=BinaryTree(steps=steps), sensitivity=sensitivity, epsilon=epsilon, participation=scheme
    )
    assert epsilon * (1 - 1e-8) <= mechanism.privacy_loss.epsilon() <= epsilon
    assert loss_from_json(mechanism.privacy_loss.to_json()) == mechanism.privacy_loss
