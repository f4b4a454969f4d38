"""Distances of marginals against sums over all cells by hand, dense and sparse."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Marginals, Ordered, TableDomain
from sfumato.synthetic.quality.cell_distributions import cell_distributions, total_variation
from sfumato.synthetic.quality.marginal_distances import k_marginal_score, marginal_distances
from tests.cases import cases

SMALL = TableDomain(a=[0, 1], b=[0, 1, 2], c=[0, 1, 2, 3])
LARGE = TableDomain(a=Ordered.integers(0, 399), b=Ordered.integers(0, 299), c=Ordered.integers(0, 1))


def drawn(domain: TableDomain, rows: int, seed: int) -> Any:
    """Rows that are not uniform, so that columns are associated."""
    rng = np.random.default_rng(seed)
    common = rng.random(rows) ** 2
    return np.stack(
        [np.minimum(size - 1, ((common + rng.random(rows)) / 2 * size).astype(int)) for size in domain.sizes],
        axis=1,
    ).astype(np.int64)


def shares(rows: Any, clique: Any) -> dict[Any, float]:
    counts = Counter(tuple(row[place] for place in clique) for row in rows.tolist())
    return {cell: count / len(rows) for cell, count in counts.items()}


def distance(first: Any, second: Any) -> float:
    off: float = sum(abs(first.get(cell, 0) - second.get(cell, 0)) for cell in {*first, *second})
    return off / 2


@cases(("domain", "rows"), [(SMALL, 60), (LARGE, 300)])
def test_distances_are_sums_over_all_cells(domain: TableDomain, rows: int) -> None:
    real, synthetic = drawn(domain, rows, 1), drawn(domain, rows // 2, 2)[::-1]
    again = np.random.default_rng(3).integers(0, rows, len(synthetic))
    resample = np.bincount(again, minlength=rows)
    cliques = ((), *Marginals.up_to(3).cliques(domain))
    found = marginal_distances(real, synthetic, domain, cliques, [resample])
    singles = [shares(real, (place,)) for place in range(3)]
    for clique, each in zip(cliques, found, strict=True):
        truth = shares(real, clique)
        assert each.columns == tuple("abc"[place] for place in clique)
        assert each.synthetic == pytest.approx(distance(truth, shares(synthetic, clique)), abs=1e-12)
        assert each.bootstrap == pytest.approx(distance(truth, shares(real[again], clique)), abs=1e-12)
        if len(clique) < 3 or domain is SMALL:
            cells = product(*(singles[place] for place in clique))
            independent = {
                cell: math.prod(singles[p][(v,)] for p, (v,) in zip(clique, cell, strict=True))
                for cell in cells
            }
            flat = {tuple(v for (v,) in cell): share for cell, share in independent.items()}
            assert each.independent == pytest.approx(distance(truth, flat), abs=1e-12)
    assert 0 < found[-1].bootstrap < 1
    assert found[0].synthetic == found[1].independent == 0


def test_the_score_of_nist_is_by_its_published_formula() -> None:
    """1000 (2 - d) / 2, with d the mean absolute difference of densities, summed over cells."""
    real, synthetic = drawn(SMALL, 80, 4), drawn(SMALL, 90, 5)
    cliques = Marginals.every(2).cliques(SMALL)
    differences = [
        sum(
            abs(shares(real, clique).get(cell, 0) - shares(synthetic, clique).get(cell, 0))
            for cell in product(*(range(SMALL.sizes[place]) for place in clique))
        )
        for clique in cliques
    ]
    found = marginal_distances(real, synthetic, SMALL, cliques, [])
    score = k_marginal_score(each.synthetic for each in found)
    assert score == pytest.approx((2 - np.mean(differences)) / 2 * 1000, abs=1e-9)
    assert math.isnan(k_marginal_score([]))
    assert math.isnan(found[0].bootstrap)
    assert k_marginal_score([1.0]) == 0
    assert k_marginal_score([0.0]) == 1000


def test_a_table_without_rows_has_no_distance() -> None:
    some, none = drawn(SMALL, 5, 1), np.zeros((0, 3), np.int64)
    for real, synthetic in ((some, none), (none, some), (none, none)):
        (found,) = marginal_distances(real, synthetic, SMALL, ((0, 2),), [np.ones(len(real), np.int64)])
        assert found.columns == ("a", "c")
        assert all(map(math.isnan, found[1:]))


def test_what_is_missing_to_a_distribution_is_elsewhere() -> None:
    assert total_variation(np.array([0.5, 0.5]), np.array([0.25, 0.25])) == 0.5
    assert math.isnan(total_variation(np.array([math.nan]), np.array([1.0])))


def test_a_table_of_too_many_cells_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"less than 2\*\*62 cells"):
        cell_distributions([np.zeros((1, 4), np.int64)], (2**20, 2**20, 2**20, 4), (0, 1, 2, 3))
