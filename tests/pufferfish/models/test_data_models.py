from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.pufferfish import IndependentRows, JointDistribution, MarkovChain, MarkovSequence, Sampler
from sfumato.pufferfish.models.data_models import enumerable

CHAIN = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]])


def test_every_model_is_a_distribution() -> None:
    models = [
        JointDistribution([(0, 1), (1, 1), (0, 1), (2, 2)], [0.25, 0.25, 0.5, 0]),
        MarkovSequence(chain=CHAIN, length=5),
        IndependentRows("ab", [[0.5, 0.5], [1, 0], [0.25, 0.75]]),
    ]
    for model, count in zip(models, (2, 32, 4), strict=True):
        datasets = model.datasets()
        assert sum(datasets.values()) == 1
        assert len(datasets) == count
        assert len(model.digest) == 64
    assert models[0].datasets()[0, 1] == Fraction(3, 4)
    assert models[2].datasets()["a", "a", "b"] == Fraction(3, 8)
    assert "32" not in models[1].describe()
    assert models[1].digest != MarkovSequence(chain=CHAIN, length=6).digest


def test_a_sequence_has_the_products_of_its_transitions() -> None:
    datasets = MarkovSequence(chain=CHAIN, length=3).datasets()
    assert float(datasets[1, 0, 0]) == pytest.approx(0.2 * 0.4 * 0.9, rel=1e-12)


def test_a_sampler_simulates_and_prices_nothing() -> None:
    coins = Sampler(draw=lambda generator: tuple(generator.integers(0, 2, 3)), words="three coins")
    assert len(coins.draw(np.random.default_rng(1))) == 3
    assert coins.describe() == "three coins"
    with pytest.raises(ParameterError, match="a distance from samples bounds nothing"):
        coins.datasets()


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ParameterError, match="at most 262144 datasets"):
        MarkovSequence(chain=CHAIN, length=19).datasets()
    with pytest.raises(ParameterError, match="at most 262144 datasets"):
        IndependentRows([0, 1], [[0.5, 0.5]] * 19).datasets()
    assert len(IndependentRows([0, 1], [[0.5, 0.5]] * 9 + [[1, 0]] * 40).datasets()) == 512
    for rows in ([(0,), (1, 2)], [(0,)]):
        with pytest.raises(ParameterError, match="datasets of one length"):
            JointDistribution(rows, [0.5, 0.5])
    for marginals in ([], [[0.5, 0.25, 0.25]]):
        with pytest.raises(ParameterError, match="one entry for each value"):
            IndependentRows([0, 1], marginals)
    with pytest.raises(ParameterError, match="the class is empty"):
        enumerable([])
    with pytest.raises(ParameterError, match="be a DataModel"):
        enumerable([CHAIN])  # type: ignore[list-item]
