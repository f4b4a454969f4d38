"""The transfer theorem: its numbers by brute force, and its two halves by enumeration of a small analysis."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sfumato.adaptive import transfer_bound
from sfumato.errors import ParameterError
from sfumato.privacy import Gaussian, Neighboring, PureDP

REPLACE = Neighboring.REPLACE_ONE


def test_the_split_of_beta_is_the_best_one() -> None:
    loss = Gaussian(2000.0, neighboring=REPLACE) * 50
    alpha, missed, beta = 0.03, 1e-5, 0.05
    found = transfer_bound(loss, sample_error=alpha, sample_beta=missed, beta=beta)
    delta, epsilon = found.parts["delta"], found.parts["epsilon"]
    assert loss.delta(epsilon) <= delta * (1 + 1e-9)
    shares = np.linspace(1e-4, 1 - 1e-4, 100_001)
    c, d = missed / (shares * beta), delta / ((1 - shares) * beta)
    brute = alpha + math.expm1(epsilon) + float((c + 2 * d).min())
    assert found.error == pytest.approx(brute, rel=1e-6)
    assert found.error <= brute * (1 + 1e-6)
    for other in np.geomspace(1e-3, 0.6, 40):
        excess = math.expm1(other) + (math.sqrt(missed) + math.sqrt(2 * loss.delta(other))) ** 2 / beta
        assert found.error <= 1.02 * (alpha + excess)


def test_pure_losses_need_no_delta() -> None:
    found = transfer_bound(PureDP(0.02, neighboring=REPLACE), sample_error=0.1, sample_beta=0.0, beta=0.01)
    assert found.error == pytest.approx(0.1 + math.expm1(0.02), rel=1e-9)
    assert not found.vacuous
    weak = transfer_bound(
        PureDP(math.log(2), neighboring=REPLACE), sample_error=0.0, sample_beta=0.0, beta=0.01
    )
    assert weak.error == pytest.approx(1.0)
    hopeless = transfer_bound(PureDP(3.0, neighboring=REPLACE), sample_error=0.0, sample_beta=0.0, beta=0.5)
    assert hopeless.vacuous
    assert "Vacuous" in str(hopeless)


def test_a_posterior_mean_is_near_the_populations() -> None:
    # Three rows of three kinds; the analyst reads one coin for each row, and asks for what the coins favor.
    population = np.array([0.2, 0.3, 0.5])
    for epsilon in (0.1, 0.7):
        lie = 1 / (1 + math.exp(epsilon))
        for coins in itertools.product([0, 1], repeat=3):
            likelihood = {
                rows: math.prod(
                    lie if coin != (row == 1) else 1 - lie for coin, row in zip(coins, rows, strict=True)
                )
                * math.prod(population[row] for row in rows)
                for rows in itertools.product(range(3), repeat=3)
            }
            total = sum(likelihood.values())
            for query in ([1, 0, 0], [0, 1, 0], [0.5, 0, 1]):
                posterior = sum(
                    weight * sum(query[row] for row in rows) / 3 for rows, weight in likelihood.items()
                )
                assert abs(posterior / total - population @ query) <= math.expm1(epsilon)


def test_bad_numbers_are_refused() -> None:
    loss = PureDP(0.1, neighboring=REPLACE)
    for changes, message in (
        ({"beta": 0.0}, "beta"),
        ({"beta": 1.0}, "beta"),
        ({"sample_error": -1.0}, "sample_error"),
        ({"sample_beta": 2.0}, "sample_beta"),
    ):
        with pytest.raises(ParameterError, match=message):
            transfer_bound(loss, **({"sample_error": 0.1, "sample_beta": 0.1, "beta": 0.1} | changes))
    with pytest.raises(ParameterError, match="replacing one row"):
        transfer_bound(PureDP(0.1), sample_error=0.1, sample_beta=0.1, beta=0.1)
