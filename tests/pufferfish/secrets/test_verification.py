from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.pufferfish import (
    JointDistribution,
    MarkovChain,
    MarkovChainClass,
    MarkovQuilt,
    Specification,
    Verification,
    WassersteinMechanism,
    protects,
)

TWINS = Specification.of_records(models=JointDistribution([(0, 0), (1, 1)], [0.5, 0.5]))
CHAIN = MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], start=[0.9, 0.1])


def test_the_ratio_is_that_of_all_outputs() -> None:
    mixed = JointDistribution([(0, 0), (0, 3), (1, 1), (1, 4)], [0.3, 0.2, 0.1, 0.4])
    specification = Specification.of_records(models=mixed)
    mechanism = WassersteinMechanism(specification=specification, query=sum, epsilon=0.7)
    found = protects(mechanism)
    outputs = np.arange(-200, 200)
    worst = 0.0
    for pair in specification.compiled():
        logs = []
        for weights in (pair.first, pair.second):
            total = float(sum(weights.values()))
            centres = np.array([sum(d) for d in weights])
            masses = np.array([float(w) / total for w in weights.values()])
            logs.append(np.log(np.exp(-np.abs(outputs[:, None] - centres) / mechanism.scale) @ masses))
        worst = max(worst, float(np.abs(logs[0] - logs[1]).max()))
    assert found.epsilon == pytest.approx(worst, rel=1e-10)
    assert found.holds
    assert (found.datasets, found.pairs) == (4, sum(1 for _ in specification.compiled()))


def test_noise_for_independent_records_is_broken_by_twins() -> None:
    naive = Laplace(sensitivity=1, scale=2)
    found = protects(naive, query=sum, specification=TWINS, epsilon=0.5)
    assert not found
    assert found.epsilon == pytest.approx(1.0, rel=1e-12)
    assert "is broken: the largest log-ratio is 1, for 'record 0 is 0' against 'record 0 is 1'" in str(found)
    assert "checked 2 datasets, 2 pairs" in str(found)
    assert protects(naive, query=sum, specification=TWINS, epsilon=1.0)


def test_several_entries() -> None:
    naive = Laplace(sensitivity=1, scale=2)
    found = protects(naive, query=lambda d: (d[0], 1 - d[0], d[1]), specification=TWINS, epsilon=9)
    assert found.epsilon == pytest.approx(1.5, rel=1e-12)
    assert found.outputs == 8


def test_quilts_hold_over_all_sequences() -> None:
    quilt = MarkovQuilt(
        chain=[CHAIN, MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]])], length=7, epsilon=2.0
    )
    for query in (sum, lambda d: sum(d[i] != d[i + 1] for i in range(6)) / 2, max):
        found = protects(quilt, query=query)
        assert found.holds
        assert found.datasets == 128
    assert "holds" in str(found)


def test_what_cannot_be_checked_is_refused() -> None:
    quilt = MarkovQuilt(chain=CHAIN, length=9, epsilon=2.0)
    with pytest.raises(ParameterError, match="the mechanism has none; pass the query"):
        protects(quilt)
    cover = MarkovQuilt(chain=MarkovChainClass.covering(CHAIN), length=9, epsilon=2.0)
    with pytest.raises(ParameterError, match="has none that is finite"):
        protects(cover, query=sum)
    with pytest.raises(ParameterError, match="Laplace noise"):
        protects(Gaussian(sensitivity=1, stddev=3), query=sum, specification=TWINS, epsilon=1.0)
    with pytest.raises(ParameterError, match="the epsilon that is claimed"):
        protects(Laplace(sensitivity=1, scale=1), query=sum, specification=TWINS)
    long = MarkovQuilt(chain=CHAIN, length=12, lipschitz=1, epsilon=2.0)
    with pytest.raises(ParameterError, match="too many outputs"):
        protects(long, query=lambda d: [sum(d[:i]) for i in range(12)])


def test_the_margin_is_small() -> None:
    base = {"claimed": 1.0, "datasets": 1, "pairs": 1, "outputs": 1, "worst": ""}
    assert Verification(epsilon=1.0 + 1e-12, **base)  # type: ignore[arg-type]
    assert not Verification(epsilon=1.0 + 1e-10, **base)  # type: ignore[arg-type]
    assert math.isfinite(protects(MarkovQuilt(chain=CHAIN, length=2, epsilon=1.0), query=sum).epsilon)
