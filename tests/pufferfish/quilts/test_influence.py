"""Influences against all 2^T sequences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from mpmath import mp

from sfumato.errors import ParameterError
from sfumato.pufferfish import MarkovChain, MarkovChainClass, MarkovChainInterval, max_influence
from sfumato.pufferfish.quilts.influence import ChainModel

FULL = MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], start=[0.9, 0.1])
POINT = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]], start=[1, 0])


def sequences(chain: MarkovChain, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all sequences of two states, and their probabilities."""
    rows = np.array(list(itertools.product(range(2), repeat=length)))
    start = chain.stationary if chain.start is None else chain.start
    weights = start[rows[:, 0]]
    for node in range(1, length):
        weights = weights * chain.transition[rows[:, node - 1], rows[:, node]]
    return rows, weights


def enumerated(rows: np.ndarray, weights: np.ndarray, node: int, quilt: list[int]) -> float:
    """Return the max-influence by its definition, from the joint distribution of all sequences."""
    cell = (
        rows[:, [i - 1 for i in quilt]] @ (2 ** np.arange(len(quilt)))
        if quilt
        else np.zeros(len(weights), int)
    )
    joint = np.zeros((2, 2 ** len(quilt)))
    np.add.at(joint, (rows[:, node - 1], cell), weights)
    worst = 0.0
    for x, y in ((0, 1), (1, 0)):
        if joint[x].sum() > 0 and joint[y].sum() > 0:
            for p, q in zip(joint[x] / joint[x].sum(), joint[y] / joint[y].sum(), strict=True):
                if p > 0:
                    worst = max(worst, math.log(p / q) if q > 0 else math.inf)
    return worst


@pytest.mark.parametrize("chain", [FULL, POINT, MarkovChain(transition=[[0.6, 0.4], [0.1, 0.9]])])
def test_every_quilt_of_twelve_records(chain: MarkovChain) -> None:
    length = 12
    rows, weights = sequences(chain, length)
    for node in (1, 2, 6, 11, 12):
        for left in (None, *range(1, node, 2)):
            for right in (None, *range(length, node, -3)):
                quilt = [i for i in (left, right) if i is not None]
                truth = enumerated(rows, weights, node, quilt)
                exact = max_influence(
                    chain, length=length, node=node, left=left, right=right, reachable_only=True
                )
                assert truth - 1e-14 <= exact <= truth + 1e-12
                scanned = max_influence(chain, length=length, node=node, left=left, right=right)
                assert scanned >= exact - 1e-15
                if chain is not POINT:
                    assert scanned <= truth + 1e-12


def test_classes_known_by_bounds_are_above_their_chains() -> None:
    chains = [FULL, MarkovChain(transition=[[0.7, 0.3], [0.35, 0.65]], start=[0.2, 0.8])]
    models: list[ChainModel] = [
        MarkovChainClass.covering(*chains),
        MarkovChainInterval(lower=[[0.7, 0.2], [0.3, 0.65]], upper=[[0.8, 0.3], [0.35, 0.7]]),
    ]
    for left, right in ((None, 9), (3, None), (4, 10), (1, 12)):

        def at(model: ChainModel, left: int | None = left, right: int | None = right) -> float:
            return max_influence(model, length=12, node=6, left=left, right=right)

        both = at(chains)
        assert both == max(at(chain) for chain in chains)
        assert both == at(chains[::-1])
        for model in models:
            assert both <= at(model)
    # Far away the bounds forget too.
    for model in models:
        assert max_influence(model, length=200, node=100, left=1, right=200) < 1e-6


def test_the_approximate_class_in_closed_form() -> None:
    model = MarkovChainClass(pi_min=0.2, eigengap=0.75)
    deviation = [math.exp(-0.375 * steps) / 0.2 for steps in (6, 7)]
    sides = [math.log((1 + d) / (1 - d)) for d in deviation]
    found = max_influence(model, length=30, node=10, left=4, right=17)
    assert found == pytest.approx(2 * sides[0] + sides[1], rel=1e-10)
    assert max_influence(model, length=30, node=10, left=9) == math.inf


def test_zeros_of_the_transition() -> None:
    steady = MarkovChain(transition=np.eye(2), start=[0.5, 0.5])
    assert max_influence(steady, length=9, node=4, right=9) == math.inf
    independent = MarkovChain(transition=[[0.3, 0.7], [0.3, 0.7]])
    assert max_influence(independent, length=9, node=4, left=3, right=5) < 1e-12
    # Powers are rounded at each step, and the bound pays for it.
    assert max_influence(independent, length=999, node=500, left=1, right=999) > 998 * 2 * 2.0**-53
    known = MarkovChain(transition=np.eye(2), start=[1, 0])
    assert max_influence(known, length=9, node=4, right=9) == 0


def test_probabilities_of_all_sizes_are_bounded_from_above() -> None:
    rows = np.array([[1.0, 1e-120], [0.5, 0.5]])
    chain = MarkovChain(transition=rows, start=[1 - 1e-30, 1e-30])
    with mp.workdps(300):
        step = mp.matrix([[mp.mpf(x) for x in row] for row in chain.transition.tolist()])
        start = [mp.mpf(x) for x in chain.start.tolist()]
        for node, left, right in ((5, 2, 9), (3, 1, 4), (2, 1, 9)):
            before, after = step ** (node - left), step ** (right - node)
            first = mp.matrix([start]) * step ** (left - 1)
            here = first * before
            truth = max(
                mp.log(before[u, x] / here[x] * here[y] / before[u, y] * after[x, v] / after[y, v])
                for u in range(2)
                for v in range(2)
                for x, y in ((0, 1), (1, 0))
            )
            found = max_influence(chain, length=9, node=node, left=left, right=right)
            assert truth <= found <= truth + 1e-11


def test_quilts_outside_of_the_sequence_are_refused() -> None:
    for left, right in ((4, None), (None, 13), (5, None), (None, 4)):
        with pytest.raises(ParameterError, match="1 <= left < node < right <= length"):
            max_influence(FULL, length=12, node=4, left=left, right=right)
    with pytest.raises(ParameterError, match="the class is empty"):
        max_influence([], length=12, node=4)
    with pytest.raises(ParameterError, match="one number of states"):
        max_influence([FULL, MarkovChain(transition=[[1.0]])], length=12, node=4)
    with pytest.raises(ParameterError, match="be a MarkovChain"):
        max_influence([FULL, 3], length=12, node=4)  # type: ignore[list-item]
