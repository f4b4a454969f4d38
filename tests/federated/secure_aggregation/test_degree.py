"""The planned degree against enumeration, and the graph that it is planned for."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import hypergeom

from sfumato.errors import ParameterError
from sfumato.federated import plan_neighbors
from sfumato.federated.secure_aggregation.graph import NeighborGraph
from sfumato.numerics.randomness.source import random_source


def test_the_failures_are_those_of_an_enumeration() -> None:
    """Ten clients, of whom two drop out and one is corrupt: every draw of a client's six neighbors."""
    plan = plan_neighbors(10, dropout=0.2, corruption=0.1, security_failure=0.09, correctness_failure=0.05)
    assert (plan.degree, plan.threshold) == (6, 4)
    draws = list(itertools.combinations(range(9), 6))
    corrupt = Fraction(sum(len({0} & set(draw)) >= 4 for draw in draws), len(draws))
    few = Fraction(sum(6 - len({0, 1} & set(draw)) < 4 for draw in draws), len(draws))
    rows = list(itertools.combinations(range(10), 3))
    apart = Fraction(sum(set(row) <= {0, 1, 2} for row in rows), len(rows))
    assert Fraction(plan.security_failure) >= 10 * (corrupt + apart)
    assert plan.security_failure == pytest.approx(float(10 * (corrupt + apart)), rel=1e-12)
    assert plan.correctness_failure == float(10 * few) == 0


def test_each_plan_is_the_smallest_that_holds() -> None:
    for clients, dropout, corruption in ((100, 0.1, 0.1), (1000, 0.1, 0.2), (10_000, 0.05, 0.3)):
        plan = plan_neighbors(clients, dropout=dropout, corruption=corruption)
        bad, gone = round(clients * corruption), round(clients * dropout)
        assert failures(clients, plan.degree, plan.threshold, bad, gone) == pytest.approx(
            (plan.security_failure, plan.correctness_failure), rel=1e-9
        )
        assert plan.security_failure <= 2**-40
        assert plan.correctness_failure <= 2**-20
        smaller = plan.degree - 2
        for threshold in range(smaller // 2 + 1, smaller + 1):
            security, correctness = failures(clients, smaller, threshold, bad, gone)
            assert security > 2**-40 or correctness > 2**-20


def failures(clients: int, degree: int, threshold: int, bad: int, gone: int) -> tuple[float, float]:
    """The union bounds, by scipy's hypergeometric tails and a product."""
    row = comb(bad + gone, degree // 2) / comb(clients, degree // 2)
    security = hypergeom.sf(threshold - 1, clients - 1, bad, degree) + row
    correctness = hypergeom.sf(degree - threshold, clients - 1, gone, degree)
    return clients * float(security), clients * float(correctness)


def test_few_clients_are_all_neighbors_and_too_many_corrupt_are_refused() -> None:
    assert plan_neighbors(8, dropout=0.0, corruption=0.4).degree == 7
    with pytest.raises(ParameterError, match=r"^dropout and corruption must leave a threshold"):
        plan_neighbors(30, dropout=0.5, corruption=0.5)
    with pytest.raises(ParameterError, match=r"^clients must be"):
        plan_neighbors(2, dropout=0.1, corruption=0.1)


@pytest.mark.parametrize(("clients", "degree"), [(3, 2), (8, 7), (9, 4), (50, 6)])
def test_the_graph_is_regular_and_its_edges_go_back(clients: int, degree: int) -> None:
    graph = NeighborGraph(clients, degree, random_source(3))
    for client, row in enumerate(graph.neighbors.tolist()):
        assert row == sorted(set(row))
        assert len(row) == degree
        assert client not in row
        for neighbor, back in zip(row, graph.opposite[client].tolist(), strict=True):
            owner, slot = divmod(back, degree)
            assert owner == neighbor
            assert graph.neighbors[owner, slot] == client


def test_every_pair_of_a_sparse_graph_is_equally_likely() -> None:
    """Five clients on a circle: each pair is joined with probability 1/2; fixed seed."""
    source, counts = random_source(11), np.zeros((5, 5))
    for _ in range(4000):
        graph = NeighborGraph(5, 2, source)
        counts[np.arange(5)[:, None], graph.neighbors] += 1
    apart = np.abs(counts - 2000)[~np.eye(5, dtype=bool)]
    assert apart.max() < 4 * np.sqrt(4000 / 4)
    assert apart.max() > 0
