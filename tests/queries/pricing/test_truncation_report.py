"""The price of a truncation report: its noise, one loss with the answer's, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.errors import OptionError
from sfumato.privacy.loss import compose
from sfumato.queries.plan.query import Column, ColumnType, Query, Scan, Schema
from sfumato.queries.pricing.price import loss_at, price
from sfumato.queries.pricing.truncation_report import price_truncation
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog

GROUPED = "g, COUNT(*) AS n FROM data GROUP BY g"
OF_UNITS = "COUNT(DISTINCT id) AS n FROM data"


def query(options: str, rest: str = GROUPED, **defaults: object) -> Query:
    columns = (Column("id", ColumnType.INTEGER), Column("g", ColumnType.TEXT), Column("x", ColumnType.FLOAT))
    catalog = Catalog({"data": Scan("data", Schema(columns), "id")})
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {rest}"
    return read(text, catalog, defaults=defaults)


def test_every_limit_has_an_equal_part_and_all_of_them_add_up() -> None:
    asked = query("epsilon=1, delta=1e-6, max_groups_contributed=5, truncation_epsilon=0.3")
    report = price_truncation(asked)
    assert report is not None
    assert [(cut.count.cap, cut.reach) for cut in report.cuts] == [(1, 1), (20, 20480), (20, 20480)]
    for cut in report.cuts:
        alone = cut.mechanism.privacy_loss.epsilon()
        assert 0.1 - 1e-9 < alone <= 0.1
        # what both numbers may move by together, over the scale
        assert Fraction(cut.reach) / Fraction(cut.mechanism.scale) <= Fraction(0.3) / 3
    assert 0.3 - 1e-8 < report.loss.epsilon() <= 0.3


def test_the_answer_and_the_report_meet_the_options_together() -> None:
    unknown = "epsilon=0.5, delta=1e-6, truncation_epsilon=0.2, max_groups_contributed="
    for asked in (query(f"{unknown}1"), query(f"{unknown}30"), _public(1), _public(30)):
        priced, report = price(asked), price_truncation(asked)
        assert report is not None
        assert priced.truncation == report
        answer = price(_without(asked, 0.3))
        assert repr(priced.loss) == repr(compose([answer.loss, report.loss]))
        assert priced.loss.epsilon(delta=asked.options.delta) <= 0.5
        if not asked.options.delta:  # pure epsilons add up
            assert priced.loss.epsilon() > 0.5 - 1e-7


def _public(many: int) -> Query:
    columns = (Column("id", ColumnType.INTEGER), Column("g", ColumnType.TEXT))
    catalog = Catalog({"data": Scan("data", Schema(columns), "id")})
    options = f"epsilon=0.5, delta=0, max_groups_contributed={many}, truncation_epsilon=0.2"
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {GROUPED}"
    return read(text, catalog, public_groups={"g": ["a", "b"]})


def _without(asked: Query, epsilon: float) -> Query:
    options = replace(asked.options, epsilon=epsilon, truncation_epsilon=None)
    return replace(asked, options=options)


def test_a_smaller_budget_is_offered_in_proportion() -> None:
    asked = query("epsilon=1, delta=1e-6, max_groups_contributed=2, truncation_epsilon=0.4")
    whole, half = price(asked).loss, loss_at(asked)(0.5)
    assert half.epsilon(delta=1e-6) <= 0.5
    assert half.epsilon(delta=1e-6) == pytest.approx(whole.epsilon(delta=1e-6) / 2, rel=0.02)


def test_what_has_no_report_is_refused() -> None:
    grouped = "epsilon=1, delta=1e-6, max_groups_contributed=2"
    for options, rest, words in (
        (f"{grouped}, truncation_epsilon=-0.1", GROUPED, "truncation_epsilon must be positive"),
        (f"{grouped}, truncation_epsilon=0", GROUPED, "truncation_epsilon must be positive"),
        (f"{grouped}, truncation_epsilon='x'", GROUPED, "truncation_epsilon must be positive"),
        (f"{grouped}, truncation_epsilon=1.5", GROUPED, "must not exceed the query's, got 1.5 of 1"),
        (f"{grouped}, truncation_epsilon=1", GROUPED, "must leave some of 1 for n, got none left"),
        (f"{grouped}, truncation_epsilon=1e-9", GROUPED, "truncation_epsilon must leave the noise within 2"),
        ("epsilon=1, delta=0, truncation_epsilon=0.1", OF_UNITS, "must be left out where no stated limit"),
    ):
        with pytest.raises(OptionError, match=words):
            price(query(options, rest))


def test_a_default_asks_for_a_report_where_something_is_limited_only() -> None:
    assert query("epsilon=1, delta=0", OF_UNITS, truncation_epsilon=0.1).options.truncation_epsilon is None
    grouped = query("epsilon=1, delta=1e-6, max_groups_contributed=2", truncation_epsilon=0.1)
    assert grouped.options.truncation_epsilon == 0.1
    assert math.isclose(price(grouped).loss.quick_epsilon(1e-6), 1.0, rel_tol=1e-3)
