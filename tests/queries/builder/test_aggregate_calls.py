"""Aggregate calls write the SQL that stands for them."""

from __future__ import annotations

from sfumato.queries.builder.aggregate_calls import count, count_distinct, quantile


def test_limits_are_written_where_they_are_given() -> None:
    assert count_distinct("person").sql == "COUNT(DISTINCT person)"
    assert (
        count_distinct("state", per_unit=3).sql
        == "APPROX_COUNT_DISTINCT(state, max_contributions_per_group => 3)"
    )
    assert count("state", bounds=(0, 2)).sql == "COUNT(state, contribution_bounds_per_group => (0, 2))"
    assert quantile("age", 0.9, bounds=(0, 120)).name == "quantile_age"
