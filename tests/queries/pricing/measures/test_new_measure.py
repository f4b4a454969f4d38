"""A measure that sfumato does not have is one class: here one is added, and goes the whole way."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sfumato as sf
from sfumato.queries.engines.compilation.measure_columns import MeasureColumns
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.measure import AtLeast, Measure, RowCount, UnitValue
from sfumato.queries.plan.query import AggregateKind
from sfumato.queries.pricing import aggregate_measures
from sfumato.queries.pricing.measures.measure_request import Grids, MeasureRequest
from sfumato.queries.pricing.price import PricedQuery, price
from tests.queries.noised import noised
from tests.run_time import run_time

if run_time(__name__):
    _TABLE = pa.table(
        {
            "id": [unit for unit in range(3000) for _ in range(1 + unit % 5)],
            "g": [f"group {unit % 2}" for unit in range(3000) for _ in range(1 + unit % 5)],
        }
    )
_MINIMUM = 3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsWithRows(MeasureRequest):
    """The number of units with at least so many rows in a group."""

    noun: ClassVar[str] = "units with enough rows"
    minimum: int

    def _measure(self, noise_multiplier: Fraction, grids: Grids) -> Measure:
        del noise_multiplier, grids
        return Measure(AtLeast(RowCount(), self.minimum))


@pytest.fixture(autouse=True)
def _counted_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """COUNT(DISTINCT id) names the new measure."""
    monkeypatch.setitem(
        aggregate_measures.MEASURES, AggregateKind.COUNT_UNITS, lambda *_: (UnitsWithRows(minimum=_MINIMUM),)
    )


def _text(epsilon: float) -> str:
    return (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={epsilon}, delta=1e-6, max_groups_contributed=1) "
        "g, COUNT(DISTINCT id) AS n FROM data GROUP BY g"
    )


def _truth() -> dict[str, int]:
    rows = Counter(zip(_TABLE["id"].to_pylist(), _TABLE["g"].to_pylist(), strict=True))
    return dict(Counter(group for (_, group), many in rows.items() if many >= _MINIMUM))


def _exact(table: pa.Table) -> tuple[PricedQuery, dict[str, int]]:
    with sf.connect(table, privacy_unit="id", epsilon=10.0, delta=1e-3, rng=1) as session:
        priced = price(session.read(_text(1.0)))
        assert isinstance(session.engine, DuckDBEngine)
        answer = session.engine.aggregate(priced.job, bytes(32))
    (index,) = (i for i, request in enumerate(priced.requests) if isinstance(request, UnitsWithRows))
    return priced, {row["k0"]: row[f"m{index}"] for row in answer.to_pylist()}


def test_it_is_computed_by_the_engine_as_its_value_says() -> None:
    assert _exact(_TABLE)[1] == _truth()


def test_a_value_that_no_engine_knows_is_not_taken_for_zero() -> None:
    with pytest.raises(TypeError, match="UnitValue has no SQL yet"):
        MeasureColumns([Measure(UnitValue())], None, DUCKDB)


def test_one_unit_moves_it_by_what_its_noise_is_made_for() -> None:
    priced, whole = _exact(_TABLE)
    (index,) = (i for i, request in enumerate(priced.requests) if isinstance(request, UnitsWithRows))
    assert (priced.measures[index].sensitivity, noised(priced.mechanisms[index]).sensitivity) == (1, 1)
    moves = []
    for unit in (3, 4, 5):  # with 4, 5 and 1 rows
        less = _exact(_TABLE.filter(pc.not_equal(_TABLE["id"], unit)))[1]
        moves.append(sum(abs(whole[group] - less[group]) for group in whole))
    assert moves == [1, 1, 0]


def test_it_is_released_with_intervals_and_words() -> None:
    """With so large an epsilon, noise is zero but for a chance of 1e-12."""
    with sf.connect(_TABLE, privacy_unit="id", epsilon=200.0, delta=0.5, rng=1) as session:
        text = _text(60.0)
        assert "Noise on the number of units with enough rows: " in session.explain(text)
        sure = session.sql(text).to_arrow(intervals=True).to_pylist()
        assert {row["g"]: (row["n_lower"], row["n"], row["n_upper"]) for row in sure} == {
            group: (number, number, number) for group, number in _truth().items()
        }
        release = session.sql(_text(0.5))
    index = release.record.columns[0].total
    width = release.record.measures[index].noise.half_width(0.95)[0]
    assert width > 1
    for row in release.to_arrow(intervals=True).to_pylist():
        assert (row["n_upper"] - row["n"], row["n"] - row["n_lower"]) == (width, width)
