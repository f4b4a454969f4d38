"""What one unit adds to a measure on its grid never exceeds the sensitivity that noise is calibrated to."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sfumato.queries.plan.query import ColumnType, Expression
from sfumato.queries.plan.typed_expressions import column
from sfumato.queries.pricing.measures.counts import CountRows, CountUnits
from sfumato.queries.pricing.measures.sums import MeanOfUnits, SumOfRows

X = Expression(column("x", ColumnType.FLOAT).tree, ColumnType.FLOAT)
NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)


@st.composite
def bounds(draw: st.DrawFn) -> tuple[float, float]:
    low, high = sorted((draw(NUMBERS), draw(NUMBERS)))
    return low, high


def on_steps(value: float, exponent: int, low: int, high: int) -> int:
    """A value as the engines add it up: rounded to the grid, and clamped to the bounds in steps."""
    return min(max(round(Fraction(value) / Fraction(2) ** exponent), low), high)


@given(bounds(), st.integers(1, 5), st.lists(NUMBERS, max_size=5), st.integers(1, 1000))
def test_a_sum_of_rows_within_row_bounds(
    limits: tuple[float, float], max_rows: int, values: list[float], noise: int
) -> None:
    request = SumOfRows(expression=X, row_bounds=limits, max_rows=max_rows)
    measure = request.on_grid(Fraction(noise))
    (column,) = measure.value.columns
    added = sum(on_steps(value, column.exponent, column.lower, column.upper) for value in values[:max_rows])
    assert measure.lower <= added <= measure.upper or not values
    assert abs(added) <= measure.sensitivity


@given(bounds(), st.lists(NUMBERS, min_size=1, max_size=5), st.integers(1, 1000))
def test_a_sum_within_bounds_of_a_unit(limits: tuple[float, float], values: list[float], noise: int) -> None:
    measure = SumOfRows(expression=X, bounds=limits).on_grid(Fraction(noise))
    added = on_steps(sum(values), measure.exponent, measure.lower, measure.upper)
    assert abs(added) <= measure.sensitivity
    step = Fraction(2) ** measure.exponent
    assert max(map(abs, limits)) <= measure.sensitivity * step + step / 2


@given(bounds().filter(lambda b: b[1] - b[0] > 1e-3), NUMBERS, st.integers(1, 1000))
def test_a_mean_of_units_is_centred(limits: tuple[float, float], value: float, noise: int) -> None:
    measure = MeanOfUnits(expression=X, bounds=limits).on_grid(Fraction(noise))
    added = on_steps(value, measure.exponent, measure.lower, measure.upper) - measure.center
    assert abs(added) <= measure.sensitivity
    step = Fraction(2) ** measure.exponent
    assert limits[0] <= measure.lower * step
    assert measure.upper * step <= limits[1]


def test_counts_of_rows_and_units_move_by_what_a_unit_may_have() -> None:
    assert CountUnits().on_grid(Fraction(1)).sensitivity == 1
    for max_rows in (1, 3, 7):
        assert CountRows(max_rows=max_rows).on_grid(Fraction(1)).sensitivity == max_rows
    assert CountRows(bounds=(2.0, 5.0), max_rows=9).on_grid(Fraction(1)).sensitivity == 5


def test_all_rows_together_bound_what_a_unit_adds_to_all_groups() -> None:
    request = SumOfRows(expression=X, row_bounds=(-2.0, 3.0), max_rows=4, all_rows=6)
    measure = request.on_grid(Fraction(1))
    step = Fraction(2) ** measure.exponent
    assert measure.l1 is not None
    assert measure.l1 * step >= 6 * 3
    assert request.moved(10) == Fraction(3 * 6, 12)
    assert request.moved(1) == 1
    count = CountRows(max_rows=4, all_rows=6)
    assert [count.moved(groups) for groups in (1, 2, 10)] == [1, Fraction(3, 2), Fraction(3, 2)]
