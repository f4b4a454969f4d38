"""Kernel density estimates: what one record moves, the estimate without noise, and how often bands hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.mechanisms import Gaussian, KernelDensity, Laplace, Norm
from sfumato.privacy import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, at_least

NUMBER = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-1, 3)


def normal(x: Any, variance: float) -> Any:
    return np.exp(-(x**2) / 2 / variance) / math.sqrt(2 * math.pi * variance)


@settings(max_examples=80)
@given(NUMBER, NUMBER, st.sampled_from([0.003, 0.11, 2.0]))
def test_one_record_moves_no_more_than_declared(one: float, other: float, bandwidth: float) -> None:
    query = KernelDensity(bounds=(0.0, 2.0), bandwidth=bandwidth)
    shared = [0.3, 1.9, -7.0]
    base = query.steps(np.array(shared))
    added, replaced = (query.steps(np.array([*shared, x])) for x in (one, other))
    assert (added >= base).all()
    for move, relation in ((added - base, "ADD_REMOVE"), (added - replaced, "REPLACE_ONE")):
        bound = query.shift(Neighboring[relation])
        assert np.count_nonzero(move) <= bound.l0
        assert np.abs(move).sum() <= bound.l1
        assert (move.astype(object) ** 2).sum() <= bound.l2_squared
        assert np.abs(move).max() <= bound.linf


def test_the_bounds_are_those_of_the_theory_and_reached() -> None:
    query = KernelDensity(bounds=(0.0, 4.0), bandwidth=math.sqrt(2) / 4)
    added = query.steps(np.array([1.0])).astype(float) / 2**20
    norms = {norm: query.sensitivity(Neighboring.ADD_REMOVE, norm) for norm in (Norm.L1, Norm.L2, Norm.LINF)}
    assert np.linalg.norm(added) == pytest.approx(norms[Norm.L2]) == pytest.approx(math.pi**0.25, rel=1e-4)
    assert added.max() == norms[Norm.LINF] == 1.0
    assert norms[Norm.L1] == pytest.approx(math.sqrt(2 * math.pi), rel=1e-5)
    far = query.steps(np.array([1.0])) - query.steps(np.array([3.0]))
    assert (far**2).sum() == pytest.approx(query.shift(Neighboring.REPLACE_ONE).l2_squared)


@cases("reflect", [False, True])
def test_without_noise_it_is_the_sum_of_kernels(reflect: bool) -> None:
    data = np.random.default_rng(1).exponential(1.0, 300)
    query = KernelDensity(bounds=(0.0, 6.0), bandwidth=0.4, reflect=reflect)
    release = Laplace.for_query(query, epsilon=1e9).release(data)
    points = np.linspace(0, 6, 25)
    found = query.estimate(release, points=points)
    inside = np.clip(data, 0, 6)
    images = [points, -points, 12 - points] if reflect else [points]
    exact = sum(normal(image[:, None] - inside, 0.16).mean(axis=1) for image in images)
    assert found.density == pytest.approx(exact, abs=1e-3)
    assert query.estimate(release).points.shape == (129,)
    if reflect:
        assert query.estimate(release).density.mean() * 6 == pytest.approx(1, abs=0.02)


def test_noise_is_that_of_the_process_of_hall_rinaldo_and_wasserman() -> None:
    query, n = KernelDensity(bounds=(0.0, 8.0), bandwidth=0.5), 50
    noisy = Gaussian.for_query(query, epsilon=1.0, delta=1e-6, neighboring=Neighboring.REPLACE_ONE)
    rng, data, where = np.random.default_rng(2), np.full(n, 4.0), [1.0, 1.5, 4.0]
    found = [query.estimate(noisy.release(data, rng), points=where, n=n).density for _ in range(400)]
    stddev = float(noisy.mechanism.distribution.stddev) / math.sqrt(
        query.shift(Neighboring.REPLACE_ONE).l2_squared
    )
    expected = stddev * math.sqrt(2) / (math.sqrt(2 * math.pi) * 0.5 * n)
    assert np.std(found, axis=0) == pytest.approx(np.full(3, expected), rel=0.2)
    assert np.asarray(np.corrcoef(np.array(found).T))[0, 1] == pytest.approx(math.exp(-0.5), abs=0.15)


@cases("joint, neighboring", [(True, Neighboring.ADD_REMOVE), (False, Neighboring.REPLACE_ONE)])
def test_bands_hold_as_often_as_promised(joint: bool, neighboring: Any) -> None:
    rng, runs, n, points = np.random.default_rng(5), 60, 1000, np.linspace(-2.5, 2.5, 21)
    query = KernelDensity(bounds=(-4, 4), bandwidth=0.5)
    noisy = Gaussian.for_query(query, epsilon=1.0, delta=1e-6, neighboring=neighboring)
    public = n if neighboring is Neighboring.REPLACE_ONE else None
    truth, held, errors, found = normal(points, 1.25), 0, [], []
    for _ in range(runs):
        release = noisy.release(rng.normal(size=n), rng)
        band = query.density_band(release, 0.7, points=points, n=public, joint=joint, draws=39, rng=rng)
        inside = (band.lower <= truth) & (truth <= band.upper)
        held += int(inside.all() if joint else inside[6])
        errors.append(band.standard_errors)
        found.append(query.estimate(release, points=points, n=public).density)
    accepts_only(at_least(held, runs), 0.7, too_narrow=0.99)
    assert 0.8 < np.mean(errors) / np.std(found, axis=0).mean() < 1.25


def test_odd_data_has_a_finite_band() -> None:
    query = KernelDensity(bounds=(0, 1), bandwidth=0.2)
    noisy = Gaussian.for_query(query, epsilon=0.1, delta=1e-6)
    for odd in (np.zeros(0), np.full(9, math.nan), np.full(9, math.inf)):
        band = query.density_band(noisy.release(odd, rng=1), draws=19, rng=1)
        assert np.isfinite(band.upper).all()
        assert (band.lower >= 0).all()


def test_the_reference_bandwidth_is_silvermans_and_grows_with_noise() -> None:
    bandwidths = [
        KernelDensity.normal_reference(bounds=(0, 100), stddev=10, n=2000, noise=noise).bandwidth
        for noise in (0.0, 4.0, 40.0)
    ]
    assert bandwidths[0] == pytest.approx((4 / 3) ** 0.2 * 10 / 2000**0.2, rel=2e-3)
    assert bandwidths[0] < bandwidths[1] < bandwidths[2]


@cases(
    "make, error, message",
    [
        (lambda: KernelDensity(bounds=(0, 1), bandwidth=0), ParameterError, "bandwidth must be positive"),
        (lambda: KernelDensity(bounds=(0, 1), bandwidth=1e-4), ParameterError, "bandwidth must be from"),
        (lambda: KernelDensity(bounds=(1, 0), bandwidth=0.1), ParameterError, "bounds must"),
        (
            lambda: KernelDensity(bounds=(0, 1), bandwidth=0.1)._points([2.0]),
            ParameterError,
            "points must be numbers from 0 to 1",
        ),
        (
            lambda: KernelDensity(bounds=(0, 1), bandwidth=0.1).estimate(
                Laplace.for_query(KernelDensity(bounds=(0, 1), bandwidth=0.1), epsilon=1.0).release(
                    np.ones(3)
                ),
                n=3,
            ),
            NeighboringMismatch,
            "release must be under replace-one",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()
