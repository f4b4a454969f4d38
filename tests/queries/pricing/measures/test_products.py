"""Grids of centred values: how many bits their middles take."""

from __future__ import annotations

from sfumato.queries.plan.query import ColumnType, Expression
from sfumato.queries.plan.typed_expressions import column
from sfumato.queries.pricing.measures.products import Bounded
from tests.cases import cases

_X = Expression(column("x", ColumnType.FLOAT).tree, ColumnType.FLOAT)


@cases(
    ("bounds", "bits"),
    [
        ((0.0, 8.0), 1),
        ((-8.0, 8.0), 0),
        ((-1.0, 3.0), 1),
        ((2.0**30, 2.0**30 + 2), 31),
        ((7.0, 7.0), 3),
        ((0.0, 0.0), 0),
    ],
)
def test_a_middle_takes_as_many_bits_as_its_bounds_are_far_from_zero(
    bounds: tuple[float, float], bits: int
) -> None:
    assert Bounded(_X, bounds).farthest_bits() == bits
    reach = (bounds[1] - bounds[0]) / 2 or 1.0
    assert max(map(abs, bounds)) <= reach * 2**bits
