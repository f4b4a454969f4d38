"""The error of quantiles against all datasets on small grids."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import bounds
from sfumato.errors import ParameterError
from sfumato.mechanisms import Grid, Quantile
from sfumato.privacy import Neighboring

CASES: dict[str, dict[str, Any]] = {
    "median": {"bounds": (0, 3), "epsilon": 1.0},
    "a third, replaced": {
        "bounds": (0, 2),
        "epsilon": 3.0,
        "quantile": Fraction(1, 3),
        "neighboring": Neighboring.REPLACE_ONE,
    },
    "nine tenths": {"bounds": (0, 4), "epsilon": 1.5, "quantile": 0.9},
}


def between(data: tuple[int, ...], point: int, quantile: Fraction) -> Fraction:
    """Return how far a point's ranks are from the target, by definition."""
    below, above = sum(x < point for x in data), sum(x > point for x in data)
    target = quantile * len(data)
    return max(Fraction(0), below - target, above - (len(data) - target))


def law(model: bounds.NoisyQuantile, data: tuple[int, ...]) -> list[tuple[Fraction, float]]:
    """Return distances and probabilities of all answers, from the definition of the mechanism."""
    quantile = Fraction(model.quantile).limit_denominator(1000)
    sensitivity = max(quantile, 1 - quantile) if model.neighboring is Neighboring.ADD_REMOVE else 1
    lower, upper = model.bounds
    gaps = [between(data, point, quantile) for point in range(int(lower), int(upper) + 1)]
    weights = [math.exp(-model.epsilon * gap / (2 * sensitivity)) for gap in gaps]
    return [(gap, weight / math.fsum(weights)) for gap, weight in zip(gaps, weights, strict=True)]


@pytest.mark.sharpest("median", "nine tenths")
@pytest.mark.parametrize("name", CASES)
def test_the_worst_data_of_all_err_so_much(name: str) -> None:
    model = bounds.NoisyQuantile(**CASES[name])
    quantile = Fraction(model.quantile).limit_denominator(1000)
    lower, upper = (int(bound) for bound in model.bounds)
    attained = 0
    for rows in range(1, 7):
        laws = [law(model, d) for d in itertools.combinations_with_replacement(range(lower, upper + 1), rows)]
        for confidence in (0.05, 0.5, 0.8, 0.95, 0.999):
            error = model.error(rows, confidence)
            worst = max(
                min(
                    Fraction(gap, rows)
                    for gap, _ in one
                    if math.fsum(p for g, p in one if g > gap) <= 1 - confidence
                )
                for one in laws
            )
            assert worst <= error < worst + Fraction(1, rows)
            attained += 0 < error == pytest.approx(float(worst), rel=1e-12)
        squares = max(math.fsum(float(gap) ** 2 * p for gap, p in one) for one in laws)
        stddev = model.stddev(rows)
        assert math.sqrt(squares) / rows <= stddev * (1 + 1e-9)
        # Of gaps that rows can have, the formula is the truth.
        rate = model.epsilon / (2 * (max(quantile, 1 - quantile) if name != "a third, replaced" else 1))
        points = upper - lower
        possible = [float(abs(c - quantile * rows)) for c in range(rows + 1)]
        formula = max(g**2 * points / (points + math.exp(rate * g)) for g in possible)
        assert squares == pytest.approx(formula, rel=1e-12)
        assert stddev <= float(max(quantile, 1 - quantile))
    assert attained >= 3


def test_the_mean_square_is_the_greatest_over_gaps() -> None:
    model = bounds.NoisyQuantile(bounds=(0, 10**6), epsilon=0.5)
    gaps = np.linspace(0, 500, 200_001)  # in records
    squares = gaps**2 * 10**6 / (10**6 + np.exp(0.5 * gaps))
    assert model.stddev(10_000) * 10_000 == pytest.approx(math.sqrt(squares.max()), rel=1e-6)
    # The worst gap of few rows is that of all of them.
    assert model.stddev(2) == pytest.approx(0.5, rel=1e-5)


def test_more_rows_or_epsilon_never_err_more() -> None:
    model = bounds.NoisyQuantile(bounds=(0, 50), epsilon=0.7, quantile=0.3)
    errors = [model.error(rows, 0.9) for rows in range(1, 200)]
    deviations = [model.stddev(rows) for rows in range(1, 200)]
    for values in (errors, deviations):
        assert (np.diff(values) <= 1e-15).all()
    epsilons = (0.1, 0.5, 1.0, 8.0, 100.0)
    assert (np.diff([model.with_epsilon(e).error(100, 0.9) for e in epsilons]) <= 0).all()
    assert (np.diff([model.with_epsilon(e).stddev(100) for e in epsilons]) <= 0).all()
    assert model.with_epsilon(2.0).mechanism.epsilon == 2


def test_it_is_sharper_than_the_mechanism_says() -> None:
    for model in (
        bounds.NoisyQuantile(bounds=(0, 120), epsilon=0.5),
        bounds.NoisyQuantile(bounds=(0.0, 1.0), epsilon=1.0, quantile=0.99, grid=Grid(exponent=-7)),
    ):
        for confidence in (0.5, 0.95, 1 - 1e-9):
            said = model.mechanism.rank_bound(1 - confidence)
            assert said - 2 <= model.error(10**6, confidence) * 10**6 <= said
    assert isinstance(model, bounds.EpsilonErrorModel)
    assert isinstance(model.mechanism, Quantile)


def test_rows_epsilon_and_tables_for_a_quantile() -> None:
    model = bounds.NoisyQuantile(bounds=(0, 120), epsilon=0.5)
    rows = bounds.sample_size(model, error=0.01)
    assert model.error(rows, 0.95) <= 0.01 < model.error(rows - 1, 0.95)
    epsilon = bounds.epsilon_for(model, rows=1000, error=0.01)
    assert model.with_epsilon(epsilon).error(1000, 0.95) <= 0.01
    assert model.with_epsilon(epsilon * (1 - 3e-6)).error(1000, 0.95) > 0.01
    free = bounds.free_rows(model, population_stddev=0.5, slack=0.1)
    here, before = bounds.tradeoff_table(model, rows=[free, free - 1], epsilons=[0.5], population_stddev=0.5)
    # Errors that are not independent add up.
    assert here.inflation == pytest.approx(1 + here.noise / here.sampling, rel=1e-12)
    assert here.inflation <= 1.1 < before.inflation
    assert not here.independent
    (counted,) = bounds.tradeoff_table(
        bounds.NoisyCounts(epsilon=1.0), rows=[9], epsilons=[1.0], population_stddev=0.5
    )
    assert counted.independent


def test_odd_parameters() -> None:
    model = bounds.NoisyQuantile(bounds=(0, 1), epsilon=1.0)
    assert model.error(1, 5e-324) == model.error(7, 0.5) == 0
    assert model.error(1, 1 - 2.0**-53) == 0.5 == model.error(70, 1 - 2.0**-53)
    assert model.stddev(10**400) == 0
    assert model.error(10**400, 0.95) == 5e-324
    wide = bounds.NoisyQuantile(bounds=(0, 1 << 59), epsilon=1e-6)
    assert wide.error(1, 0.95) == wide.stddev(1) == 0.5
    assert bounds.NoisyQuantile(bounds=(0, 9), epsilon=1e300).stddev(10) < 1e-290
    with pytest.raises(ParameterError, match=r"quantile must have a denominator of at most 2\*\*15"):
        bounds.NoisyQuantile(bounds=(0, 1), epsilon=1.0, quantile=math.pi / 4)
    with pytest.raises(ParameterError, match="quantile must be strictly between 0 and 1"):
        bounds.NoisyQuantile(bounds=(0, 1), epsilon=1.0, quantile=1)
    with pytest.raises(ParameterError, match="epsilon must be positive"):
        bounds.NoisyQuantile(bounds=(0, 1), epsilon=0.0)
    with pytest.raises(ParameterError, match="confidence must be strictly between 0 and 1"):
        model.error(1, 1.0)
    for number in (model.stddev, lambda rows: model.error(rows, 0.5)):
        with pytest.raises(ParameterError, match="rows must be an integer of at least 1"):
            number(0)
