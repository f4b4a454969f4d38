"""Cramer's V against its formula by scipy's chi-squared statistic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from scipy.stats.contingency import association

from sfumato.synthetic import Ordered, TableDomain
from sfumato.synthetic.quality.associations import associations, cramers_v
from tests.synthetic.quality.test_marginal_distances import SMALL, drawn


def by_scipy(first: Any, second: Any) -> float:
    """Bergsma's correction of the V of values that occur."""
    (a, row), (b, column) = (np.unique(each, return_inverse=True) for each in (first, second))
    table = np.zeros((len(a), len(b)))
    np.add.at(table, (row, column), 1)
    n, (r, c) = table.sum(), table.shape
    phi = max(0.0, chi2_contingency(table, correction=False).statistic / n - (r - 1) * (c - 1) / (n - 1))
    rows, columns = r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)
    return float(np.sqrt(phi / min(rows - 1, columns - 1)))


def test_associations_are_those_of_scipy() -> None:
    domain = TableDomain(a=Ordered.integers(0, 399), b=Ordered.integers(0, 299), c=[0, 1, 2])
    for each, rows in ((SMALL, 400), (domain, 900)):
        real, synthetic = drawn(each, rows, 1), drawn(each, rows, 2)
        real[:, 0] //= 30 if each is domain else 1
        again = np.random.default_rng(1).integers(0, rows, rows)
        found = associations(real, synthetic, each, np.bincount(again, minlength=rows))
        assert [pair.columns for pair in found] == [("a", "b"), ("a", "c"), ("b", "c")]
        for pair in found:
            one, other = ("abc".index(name) for name in pair.columns)
            for value, table in (
                (pair.real, real),
                (pair.synthetic, synthetic),
                (pair.bootstrap, real[again]),
            ):
                assert value == pytest.approx(by_scipy(table[:, one], table[:, other]), abs=1e-9)
    assert found[1].real > 0.1


def test_the_correction_vanishes_for_many_rows() -> None:
    counts = np.array([[30, 10, 5], [5, 20, 30]])
    places = np.indices(counts.shape).reshape(2, -1)
    exact = association(counts, method="cramer")
    large = cramers_v(counts.ravel() / counts.sum(), places[0], places[1], rows=10**9)
    assert large == pytest.approx(exact, abs=1e-8)
    assert cramers_v(counts.ravel() / counts.sum(), places[0], places[1], rows=int(counts.sum())) < exact


def test_degenerate_tables_have_a_value() -> None:
    even = np.full(3, 1 / 3)
    assert cramers_v(even, np.arange(3), np.arange(3), rows=300) == pytest.approx(1)
    assert cramers_v(even, np.zeros(3, int), np.arange(3), rows=300) == 0
    assert cramers_v(even, np.arange(3), np.zeros(3, int), rows=300) == 0
    assert (
        cramers_v(even, np.arange(3), np.arange(3), rows=3) == 0
    )  # as many values as rows: nothing can be said
    assert math.isnan(cramers_v(even, np.arange(3), np.arange(3), rows=1))
