"""Chains follow the density that they are given, and chains that do not are seen."""

from __future__ import annotations

import numpy as np

from sfumato.synthetic.posterior.convergence import convergence
from sfumato.synthetic.posterior.hamiltonian import HamiltonianChains
from tests.synthetic.posterior.regression import Array


def test_chains_have_the_moments_of_a_density_that_is_neither_normal_nor_centred() -> None:
    # The log of a gamma variable of shape 4: its mean is digamma(4), its variance trigamma(4).
    def density(points: Array) -> tuple[Array, Array]:
        return (4 * points - np.exp(points)).sum(axis=1), 4 - np.exp(points)

    chains = HamiltonianChains(density, 3, chains=16, rng=np.random.default_rng(5))
    chains.adapt(100)
    drawn = chains.draw(500)
    found = convergence(drawn)
    assert found.r_hat < 1.02
    assert found.effective_draws > 2000
    # 8,000 draws worth at least 2,000: standard errors of .012 and, of the deviation, of about .01.
    assert abs(drawn.mean() - 1.2561176684318) < 0.04
    assert abs(drawn.std() - np.sqrt(0.2838229557371)) < 0.03
    assert abs(drawn.mean() - np.log(4)) > 0.06  # the mode


def test_effective_draws_are_those_of_an_autoregression() -> None:
    rng, chains, draws, factor = np.random.default_rng(3), 4, 5000, 0.8
    shocks = rng.standard_normal((chains, draws, 1))
    drawn = np.empty_like(shocks)
    drawn[:, 0] = shocks[:, 0] / np.sqrt(1 - factor**2)
    for turn in range(1, draws):
        drawn[:, turn] = factor * drawn[:, turn - 1] + shocks[:, turn]
    # The sum of all correlations is (1 + .8)/(1 - .8) = 9.
    assert abs(convergence(drawn).effective_draws / (chains * draws / 9) - 1) < 0.15
    assert convergence(drawn).r_hat < 1.01


def test_chains_that_disagree_in_place_or_width_are_seen() -> None:
    good = np.random.default_rng(3).standard_normal((4, 400, 2))
    assert convergence(good).r_hat < 1.02
    moved, wide, drifting = good.copy(), good.copy(), good.copy()
    moved[0, :, 1] += 1
    wide[0, :, 1] *= 4
    drifting[:, :, 1] += np.linspace(-1.5, 1.5, 400)
    for wrong in (moved, wide, drifting):
        assert convergence(wrong).r_hat > 1.05
