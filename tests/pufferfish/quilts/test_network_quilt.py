from __future__ import annotations

import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.pufferfish import (
    BayesianNetwork,
    MarkovChain,
    MarkovQuilt,
    NetworkQuilt,
    Specification,
    max_influence,
    protects,
)

STEP = {(0,): [0.55, 0.45], (1,): [0.45, 0.55]}
CHAIN = MarkovChain(transition=[[0.55, 0.45], [0.45, 0.55]], start=[0.5, 0.5])


def line(length: int) -> BayesianNetwork:
    parents = [(), *((node,) for node in range(length - 1))]
    return BayesianNetwork(parents=parents, tables=[{(): [0.5, 0.5]}, *[STEP] * (length - 1)])


def test_a_line_is_a_chain() -> None:
    for epsilon in (0.5, 1.0, 3.0):
        quilt = NetworkQuilt(networks=line(7), lipschitz=1, epsilon=epsilon)
        chain = MarkovQuilt(chain=CHAIN, length=7, lipschitz=1, epsilon=epsilon)
        assert quilt.scale == pytest.approx(chain.scale, rel=1e-11)
    middle = quilt.active_quilts[3]
    assert middle == (2, 4)
    assert max_influence(CHAIN, length=7, node=4, left=3, right=5) == pytest.approx(0.4013, abs=1e-4)


def test_a_household_that_all_catch_it_from_one() -> None:
    # Given the first, the others are independent: they hide behind it alone.
    caught = {(0,): [0.7, 0.3], (1,): [0.3, 0.7]}
    star = BayesianNetwork(parents=[(), (0,), (0,), (0,), (0,)], tables=[{(): [0.5, 0.5]}, *[caught] * 4])
    quilt = NetworkQuilt(networks=star, lipschitz=1, epsilon=2.0)
    assert quilt.active_quilts == ((), (0,), (0,), (0,), (0,))
    assert quilt.scale == 2.5
    specification = Specification.of_records(models=star)
    checked = protects(quilt, query=sum, specification=specification)
    assert checked.holds
    assert checked.epsilon < 2.0


def test_rounding_and_classes_cost_noise() -> None:
    whole = NetworkQuilt(networks=line(5), lipschitz=1, epsilon=1.0)
    real = NetworkQuilt(networks=[line(5)], lipschitz=1.0, epsilon=1.0, entries=9)
    assert whole.scale < real.scale < whole.scale * (1 + 1e-6)
    strong = BayesianNetwork(
        parents=line(5).parents, tables=[{(): [0.5, 0.5]}, *[{(0,): [0.8, 0.2], (1,): [0.2, 0.8]}] * 4]
    )
    both = NetworkQuilt(networks=[line(5), strong], lipschitz=1, epsilon=1.0)
    assert both.scale == NetworkQuilt(networks=strong, lipschitz=1, epsilon=1.0).scale > whole.scale
    assert isinstance(whole.release(3, rng=1).value, int)


def test_a_deterministic_link_leaks_without_end() -> None:
    same = {(0,): [1, 0], (1,): [0, 1]}
    copies = BayesianNetwork(parents=[(), (0,), (1,)], tables=[{(): [0.5, 0.5]}, same, same])
    assert NetworkQuilt(networks=copies, lipschitz=1, epsilon=0.5).scale == 6


def test_releases_are_not_added() -> None:
    guarantee = NetworkQuilt(networks=line(3), lipschitz=1, epsilon=1.0).guarantee
    with pytest.raises(NeighboringMismatch, match="one has no quilts"):
        guarantee + guarantee


def test_what_is_no_class_is_refused() -> None:
    for networks, message in (
        ([], "the class is empty"),
        ([CHAIN], "a BayesianNetwork"),
        ([line(3), line(4)], "one graph"),
    ):
        with pytest.raises(ParameterError, match=message):
            NetworkQuilt(networks=networks, lipschitz=1, epsilon=1.0)
