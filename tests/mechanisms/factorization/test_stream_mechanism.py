"""Properties of every mechanism on a stream, whatever its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError
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
from tests.chance import accepts_only, moments

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
@settings(max_examples=12, deadline=None)
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
@settings(max_examples=8, deadline=None)
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


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@settings(max_examples=8, deadline=None)
@given(st.data(), st.integers(1, 70), st.integers(0, 2**32))
def test_blocks_and_single_steps_are_one_stream(
    make: Callable[[int], Strategy], data: st.DataObject, steps: int, seed: int
) -> None:
    """Steps are cut anywhere: the measurements are the same to the bit, the sums and errors as at once."""
    values = np.array(data.draw(st.lists(st.integers(-(10**6), 10**6), min_size=steps, max_size=steps)))
    cuts = sorted(data.draw(st.lists(st.integers(0, steps), max_size=6)))
    parts = [part for part in np.split(values, cuts) if len(part)]
    code = make(steps).in_integers(12)
    alone, joined = code.stream(), code.stream()
    for part in parts:
        rows = [row for value in part.tolist() for row in alone.measure(value)]
        assert sorted(rows) == sorted(joined.measure_steps(part).tolist())
        joined.estimate_steps(np.zeros(len(rows), dtype=np.int64), len(part))
    mechanism = ContinualSum(strategy=make(steps), sensitivity=1, stddev=Fraction(1, 10**4))
    stream = mechanism.stream(rng=seed)
    releases = [stream.send(int(p[0])) if len(p) == 1 else stream.send_many(p) for p in parts]
    sums = np.concatenate([np.atleast_1d(release.value) for release in releases])
    np.testing.assert_allclose(sums, np.cumsum(values), atol=0.05)
    stddevs = np.concatenate([np.atleast_1d(release.stddev) for release in releases])
    np.testing.assert_allclose(stddevs, mechanism.stddevs, rtol=1e-12)
    assert stream.sent == steps


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(0, 2**32))
def test_a_tree_refines_noise_alike_in_blocks(sizes: list[int], seed: int) -> None:
    """The same noisy measurements, some steps at once or step by step."""
    steps = sum(sizes)
    code = BinaryTree(steps=steps).in_integers(8)
    alone, joined = code.stream(), code.stream()
    generator, time = np.random.default_rng(seed), 0
    for size in sizes:
        values = generator.integers(-50, 50, (size, 2))
        noisy: list[list[np.ndarray]] = [[] for _ in range(steps.bit_length())]
        singly = []
        for value in values:
            rows = [row + generator.integers(-999, 999, 2) for row in alone.measure(value)]
            singly.append(alone.estimate(rows))
            for height, row in enumerate(rows):
                noisy[height].append(row)
        joined.measure_steps(values)
        together = joined.estimate_steps(np.array([row for rows in noisy for row in rows]), size)
        np.testing.assert_allclose(together, singly, rtol=1e-12, atol=1e-9)
        time += size


def test_noise_of_blocks_has_the_stated_variance() -> None:
    """Columns as runs, in blocks of three steps."""
    for mechanism in (
        ContinualSum(strategy=SquareRoot(steps=7), sensitivity=1, stddev=2),
        PureContinualSum(strategy=BinaryTree(steps=7), sensitivity=1, scale=2),
    ):
        stream = mechanism.stream(rng=9)
        zeros = np.zeros((7, 20_000), dtype=np.int64)
        noise = np.concatenate([stream.send_many(part).value for part in np.split(zeros, [3, 6])])
        variance = mechanism.stddevs**2
        accepts_only(
            moments(noise.T, kurtosis=6.0),
            (0, variance),
            wider=(0, 1.2 * variance),
            narrower=(0, variance / 1.2),
        )


def test_a_single_number_has_the_intervals_of_its_place() -> None:
    mechanism = PureContinualSum(strategy=BinaryTree(steps=100_000), sensitivity=1, scale=20)
    values = np.ones(600, dtype=np.int64)
    stream, blocks = mechanism.stream(rng=3), mechanism.stream(rng=3)
    single = [stream.send(1) for _ in range(600)][-1]
    together = blocks.send_many(values)
    assert single.stddev == pytest.approx(together.stddev[-1])
    one, many = single.interval(0.9), together.interval(0.9)
    assert one.upper - one.lower == pytest.approx((many.upper - many.lower)[-1], rel=1e-6)


def test_what_blocks_refuse() -> None:
    stream = ContinualSum(strategy=BinaryTree(steps=4), sensitivity=1, stddev=2).stream(rng=1)
    for values, message in (
        (np.zeros(5, dtype=int), "values must have from 1 to 4 steps along its first axis"),
        (np.zeros(0, dtype=int), "values must have from 1 to 4 steps along its first axis"),
        (3, "values must have from 1 to 4 steps along its first axis"),
        (np.zeros(2), "value must be an int or a numpy array of integers"),
    ):
        with pytest.raises(ParameterError, match=message):
            stream.send_many(values)
    stream.send_many(np.zeros(3, dtype=int))
    with pytest.raises(ParameterError, match=r"value must have the shape \(\) of the first"):
        stream.send(np.zeros(2, dtype=int))
    with pytest.raises(ParameterError, match="values must have from 1 to 1 steps"):
        stream.send_many(np.zeros(2, dtype=int))
    stream.send(1)
    with pytest.raises(ParameterError, match="stream must have at most 4 steps"):
        stream.send_many(np.zeros(1, dtype=int))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 200), schemes, sensitivities, st.floats(0.05, 5.0))
def test_pure_calibration_is_met_and_tight(
    steps: int, scheme: Participation, sensitivity: int | float, epsilon: float
) -> None:
    mechanism = PureContinualSum.calibrated(
        strategy=BinaryTree(steps=steps), sensitivity=sensitivity, epsilon=epsilon, participation=scheme
    )
    assert epsilon * (1 - 1e-8) <= mechanism.privacy_loss.epsilon() <= epsilon
    assert loss_from_json(mechanism.privacy_loss.to_json()) == mechanism.privacy_loss
