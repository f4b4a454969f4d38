"""Concentrated DP by mean and spread: against Gaussians, randomized response, and random laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import CDP, ZCDP, Gaussian, Neighboring, PureDP, loss_from_json


@pytest.mark.parametrize("noise", [0.3, 1.0, 7.0])
def test_a_gaussian_is_seen_exactly(noise: float) -> None:
    declared, known = CDP(1 / (2 * noise**2), 1 / noise), Gaussian(noise)
    for order in (1.001, 2.0, 50.0):
        assert declared.rdp(order) == pytest.approx(known.rdp(order), rel=1e-12)
    assert declared.zcdp().rho == pytest.approx(known.zcdp().rho, rel=1e-12)
    assert (declared * 3).epsilon(1e-6) > (known * 3).epsilon(1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 0.7, 3.0])
def test_pure_mechanisms_meet_their_bounds(epsilon: float) -> None:
    declared = CDP.of_pure(epsilon)
    p = 1 / (1 + math.exp(-epsilon))
    mean = epsilon * (2 * p - 1)
    assert mean <= declared.mu <= mean * (1 + 1e-9)
    for t in np.linspace(-20, 20, 81):
        log_moment = np.logaddexp(math.log(p) + t * (epsilon - mean), math.log(1 - p) - t * (epsilon + mean))
        assert log_moment <= t**2 * declared.tau**2 / 2 + 1e-12
    for order in (1.5, 4.0, 30.0):
        assert PureDP(epsilon).rdp(order) <= declared.rdp(order) * (1 + 1e-12)


def test_random_laws_have_the_divergences_that_their_mean_and_spread_allow() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        one, other = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
        loss = np.log(one / other)
        mean = float(one @ loss)
        t = np.concatenate([-np.geomspace(1e-3, 60, 400), np.geomspace(1e-3, 60, 400)])
        tau = math.sqrt(max(2 * np.log(np.exp(np.outer(t, loss - mean)) @ one) / t**2))
        declared = CDP(mean, tau * (1 + 1e-9))
        for order in (1.1, 2.0, 10.0, 40.0):
            truth = math.log(float(one @ np.exp((order - 1) * loss))) / (order - 1)
            assert truth <= declared.rdp(order) * (1 + 1e-9)
            assert truth <= declared.zcdp().rho * order * (1 + 1e-9)


def test_it_composes_reads_back_and_refuses() -> None:
    loss = CDP(0.1, 0.5, neighboring=Neighboring.REPLACE_ONE) * 4
    assert loss_from_json(loss.to_json()) == loss
    assert loss.zcdp().rho == pytest.approx(0.5)
    assert (loss + ZCDP(0.1, neighboring=Neighboring.REPLACE_ONE)).zcdp().rho == pytest.approx(0.6)
    for bad in ((-1.0, 1.0), (1.0, -1.0), (math.nan, 1.0)):
        with pytest.raises(ParameterError, match=r"(mu|tau) must"):
            CDP(*bad)
