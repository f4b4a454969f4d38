"""Survival curves: what one record moves, the product-limit estimate, and how often bands hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.mechanisms import KaplanMeier, Laplace
from sfumato.privacy import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, at_least

RECORD = st.tuples(st.floats(-1, 50) | st.floats(), st.sampled_from([0.0, 1.0, math.nan, -3.0]))


def patients(n: int, rng: np.random.Generator) -> Any:
    """Events at rate 1/24 a month, censored at whole months."""
    event, censored = rng.exponential(24, n), np.ceil(rng.uniform(0, 60, n))
    return np.stack([np.minimum(event, censored), event <= censored], axis=1)


@settings(max_examples=100)
@given(RECORD, RECORD, st.sampled_from([1, 3, 20, 40]), st.sampled_from([2, 16]))
def test_one_record_moves_no_more_than_declared(one: Any, other: Any, size: int, branching: int) -> None:
    query = KaplanMeier(times=range(1, size + 1), branching=branching)
    shared = patients(5, np.random.default_rng(1))
    base = query.steps(shared)
    added, replaced = (query.steps(np.vstack([shared, [row]])) for row in (one, other))
    for move, relation in ((added - base, "ADD_REMOVE"), (added - replaced, "REPLACE_ONE")):
        bound = query.shift(Neighboring[relation])
        assert np.count_nonzero(move) <= bound.l0
        assert np.abs(move).max() <= bound.linf
    assert np.abs(added - base).sum() == query.levels == query.shift(Neighboring.ADD_REMOVE).l1
    assert query.shift(Neighboring.REPLACE_ONE).l1 == 2 * query.levels


def test_without_noise_it_is_the_product_of_survivors() -> None:
    time, event = [1, 1, 2, 2, 3, 3, 5, 9], [1, 0, 1, 1, 0, 1, 0, 1]
    query = KaplanMeier(times=(1, 2, 3, 4, 5))
    data = np.column_stack([time, event]).astype(float)
    curve = query.estimate(Laplace.for_query(query, epsilon=1e9).release(data))
    exact = np.cumprod([7 / 8, 4 / 6, 3 / 4, 1, 1])
    assert curve.survival == pytest.approx(exact)
    assert curve.at_risk == pytest.approx([8, 6, 4, 2, 2])
    odd = np.array([[math.inf, 1], [math.nan, 1], [-4, 0]])
    assert query(odd).sum() == 3


@cases("branching", [2, 5, 16])
def test_trees_give_the_counts_back(branching: int) -> None:
    query = KaplanMeier(times=range(1, 41), branching=branching)
    flat = KaplanMeier(times=range(1, 41), branching=41)
    data = patients(500, np.random.default_rng(2))
    one, other = (each.estimate(Laplace.for_query(each, epsilon=1e9).release(data)) for each in (query, flat))
    assert one.survival == pytest.approx(other.survival, abs=1e-9)
    assert flat.levels == 1 < query.levels


def test_a_curve_falls_whatever_the_noise() -> None:
    query = KaplanMeier(times=range(1, 31))
    noisy = Laplace.for_query(query, epsilon=0.1)
    for seed, data in enumerate((np.zeros((0, 2)), patients(30, np.random.default_rng(3)))):
        release = noisy.release(data, rng=seed)
        curve, band = query.estimate(release), query.survival_band(release, draws=19, rng=1)
        assert (np.diff(curve.survival) <= 0).all()
        assert curve.survival.min() >= 0
        assert curve.survival.max() <= 1
        assert (band.lower <= curve.survival).all()
        assert (curve.survival <= band.upper).all()


@cases("joint, actuarial, n", [(True, False, 1000), (False, True, 500)])
def test_bands_hold_as_often_as_promised(joint: bool, actuarial: bool, n: int) -> None:
    rng, runs, months = np.random.default_rng(n), 60, np.arange(4.0, 37.0, 4.0)
    query, truth = KaplanMeier(times=months.tolist(), actuarial=actuarial), np.exp(-months / 24)
    noisy, held, width, errors = Laplace.for_query(query, epsilon=1.0), 0, 0.0, []
    for _ in range(runs):
        event, censored = rng.exponential(24, n), rng.uniform(0, 60, n)
        if not actuarial:
            censored = np.ceil(censored / 4) * 4
        release = noisy.release(np.stack([np.minimum(event, censored), event <= censored], axis=1), rng)
        band = query.survival_band(release, 0.7, joint=joint, draws=39, rng=rng)
        inside = (band.lower <= truth) & (truth <= band.upper)
        held += int(inside.all() if joint else inside[5])
        width += (band.upper[5] - band.lower[5]) / runs
        errors.append(query.estimate(release).survival[5] - truth[5])
    accepts_only(at_least(held, runs), 0.7, too_narrow=0.99)
    assert 0.9 < width / (2 * 1.04 * np.std(errors)) < (2.6 if joint else 1.4)
    assert abs(np.mean(errors)) < 0.01


def test_the_middle_of_an_interval_is_right_for_continuous_censoring() -> None:
    event, censored = np.random.default_rng(4).exponential(20, (2, 200_000))
    data = np.stack([np.minimum(event, censored), event <= censored], axis=1)
    off = []
    for actuarial in (True, False):
        query = KaplanMeier(times=range(4, 33, 4), actuarial=actuarial)
        curve = query.estimate(Laplace.for_query(query, epsilon=10.0).release(data, rng=1))
        off.append(np.abs(curve.survival - np.exp(-curve.times / 20)).max())
    assert off[0] < 0.006
    assert off[1] > 0.03


@cases(
    "make, message",
    [
        (lambda: KaplanMeier(times=()), "times must hold"),
        (lambda: KaplanMeier(times=(2, 1)), "times must increase"),
        (lambda: KaplanMeier(times=(0, 1)), "times must be positive"),
        (lambda: KaplanMeier(times=(1, 2), branching=1), "branching must"),
        (
            lambda: KaplanMeier(times=(1, 2)).steps(np.zeros(3)),
            "data must be an array of real numbers of shape",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()
