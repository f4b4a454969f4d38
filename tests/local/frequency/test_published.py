"""Variances of rare values for one report, as the literature's formulas give them."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter

import pytest

from sfumato import local
from tests.cases import cases

E = math.exp
FORMULAS: dict[str, Callable[[float, int], float]] = {
    # Wang, Blocki, Li, Jha (2017), Table 1.
    "RandomizedResponse": lambda e, d: (d - 2 + E(e)) / (E(e) - 1) ** 2,
    "SymmetricUnaryEncoding": lambda e, d: E(e / 2) / (E(e / 2) - 1) ** 2,
    "OptimizedUnaryEncoding": lambda e, d: 4 * E(e) / (E(e) - 1) ** 2,
    "baselines.BinaryLocalHashing": lambda e, d: (E(e) + 1) ** 2 / (E(e) - 1) ** 2,
}
FIGURES: dict[str, dict[float, float]] = {
    # By epsilon, at 1,024 categories.
    "RandomizedResponse": {0.5: 2432, 1: 347, 2: 25.2, 4: 0.375},
    "SymmetricUnaryEncoding": {0.5: 15.92, 1: 3.918, 2: 0.921, 4: 0.181},
    "OptimizedUnaryEncoding": {0.5: 15.67, 1: 3.683, 2: 0.724, 4: 0.0760},
    "OptimalLocalHashing": {0.5: 15.67, 1: 3.683, 2: 0.724, 4: 0.0760},
    "baselines.BinaryLocalHashing": {0.5: 16.67, 1: 4.683, 2: 1.724, 4: 1.076},
    "OneBitHadamard": {0.5: 16.67, 1: 4.683, 2: 1.724, 4: 1.076},
    "SubsetSelection": {0.5: 15.64, 1: 3.674, 2: 0.721, 4: 0.0739},
    "baselines.SummationHistogram": {0.5: 32, 1: 8, 2: 2, 4: 0.5},
    "baselines.ThresholdHistogram": {1: 4.81, 2: 1.28, 4: 0.285},
}


@cases("name", FORMULAS)
@cases("epsilon", [0.25, 1.0, 3.0])
def test_formulas(name: str, epsilon: float) -> None:
    oracle = attrgetter(name)(local)(epsilon=epsilon, domain=local.Domain(range(500)))
    # Short coins give up a share of epsilon below 0.0005 of its odds.
    assert oracle.variance(1) == pytest.approx(FORMULAS[name](epsilon, 500), rel=0.005)


@cases("name", FIGURES)
def test_figures(name: str) -> None:
    for epsilon, figure in FIGURES[name].items():
        oracle = attrgetter(name)(local)(epsilon=epsilon, domain=local.Domain(range(1024)))
        # Whole numbers of buckets cost local hashing up to 1.2 % more than the limit that is told.
        assert oracle.variance(1) == pytest.approx(figure, rel=0.012)
        assert oracle.variance(50) == pytest.approx(oracle.variance(1) / 50)


def test_subsets_of_few_categories() -> None:
    for epsilon, figure in {0.5: 15.41, 1: 3.610, 2: 0.697, 4: 0.0584}.items():
        oracle = local.SubsetSelection(epsilon=epsilon, domain=local.Domain(range(128)))
        assert oracle.variance(1) == pytest.approx(figure, rel=0.001)


def test_hashing_costs_what_its_buckets_give() -> None:
    for epsilon in (0.5, 1.0, 3.0):
        oracle = local.OptimalLocalHashing(epsilon=epsilon, domain=local.Domain(range(1024)))
        g = oracle.device.buckets
        exact = (E(epsilon) - 1 + g) ** 2 / ((E(epsilon) - 1) ** 2 * (g - 1))
        assert oracle.variance(1) == pytest.approx(exact, rel=1e-9)
