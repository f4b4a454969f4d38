"""The search against a plain loop over all nodes and quilts."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.pufferfish import MarkovChain, MarkovChainClass, max_influence
from sfumato.pufferfish.quilts import search as module
from sfumato.pufferfish.quilts.influence import ChainModel, influence_table
from sfumato.pufferfish.quilts.search import QuiltSearch

POINT = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]], start=[1, 0])
THREE = MarkovChain(transition=[[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.25, 0.25, 0.5]], start=[0.1, 0.2, 0.7])


def least(model: ChainModel, length: int, epsilon: float, *, reachable_only: bool) -> float:
    worst = 0.0
    for node in range(1, length + 1):
        best = length / epsilon
        for left in (None, *range(1, node)):
            for right in (None, *range(node + 1, length + 1)):
                leak = max_influence(
                    model, length=length, node=node, left=left, right=right, reachable_only=reachable_only
                )
                if (left or right) and leak < epsilon:
                    size = (right or length + 1) - (left or 0) - 1
                    best = min(best, size / (epsilon - leak))
        if model is POINT and node == 1:
            best = 0.0
        worst = max(worst, best)
    return worst


@pytest.mark.parametrize("reachable_only", [False, True])
@pytest.mark.parametrize("model", [POINT, THREE, [THREE, THREE], MarkovChainClass(pi_min=0.3, eigengap=1.5)])
def test_the_least_over_all_quilts(model: ChainModel, reachable_only: bool) -> None:
    for length, epsilon in ((9, 1.0), (5, 3.0), (1, 0.5)):
        table = influence_table(model, reachable_only=reachable_only)
        search = QuiltSearch(table, length, epsilon, (1.0, 0.0))
        scale, runs = search.solve()
        assert scale == pytest.approx(least(model, length, epsilon, reachable_only=reachable_only), rel=1e-11)
        assert search.price(runs) == pytest.approx(scale, rel=1e-13)
        assert [run.first for run in runs] == [1, *(run.last + 1 for run in runs[:-1])]
        assert runs[-1].last == length


@pytest.mark.parametrize("start", [None, [1.0, 0.0]])
def test_a_block_stands_for_its_nodes(start: list[float] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]], start=start)
    alone = QuiltSearch(influence_table(chain), 3000, 1.0, (1.0, 0.0)).solve()[0]
    long = QuiltSearch(influence_table(chain), 60_000, 1.0, (1.0, 0.0))
    scale, runs = long.solve()
    assert scale == pytest.approx(alone, rel=1e-12)
    assert long.price(runs) == pytest.approx(scale, rel=1e-12)
    assert runs[-1].last == 60_000


def test_the_pruned_scan_finds_what_the_whole_scan_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    for model in (POINT, THREE):
        whole = QuiltSearch(influence_table(model), 60, 0.4, (1.0, 0.25)).solve()
        monkeypatch.setattr(module, "_WHOLE", 0)
        pruned = QuiltSearch(influence_table(model), 60, 0.4, (1.0, 0.25)).solve()
        monkeypatch.undo()
        assert pruned[0] == whole[0]


def test_a_small_table_gives_valid_but_larger_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    best = QuiltSearch(influence_table(POINT), 100, 1.0, (1.0, 0.0)).solve()[0]
    monkeypatch.setattr(module, "_CELLS", 4)
    assert QuiltSearch(influence_table(POINT), 100, 1.0, (1.0, 0.0)).solve()[0] > best


def test_states_that_come_and_go_are_seen_one_by_one() -> None:
    # A ring with a chord has period one, and takes some steps before each state is possible.
    ring = np.roll(np.eye(5), 1, axis=1) * 0.5 + np.eye(5) * 0.5
    chain = MarkovChain(transition=ring, start=np.eye(5)[0])
    for length in (7, 9):
        table = influence_table(chain, reachable_only=True)
        found = QuiltSearch(table, length, 2.0, (1.0, 0.0)).solve()[0]
        worst = 0.0
        for node in range(2, length + 1):
            best = length / 2.0
            for left in (None, *range(1, node)):
                for right in (None, *range(node + 1, length + 1)):
                    leak = max_influence(
                        chain, length=length, node=node, left=left, right=right, reachable_only=True
                    )
                    if (left or right) and leak < 2.0:
                        best = min(best, ((right or length + 1) - (left or 0) - 1) / (2.0 - leak))
            worst = max(worst, best)
        assert found == pytest.approx(worst, rel=1e-11)
