"""Workloads: targets are met by the noise that is drawn, nothing is spent by planning, budgets are split."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, OptionError, ParameterError
from sfumato.privacy import compose
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    PEOPLE = pa.table(
        {
            "person": range(20_000),
            "state": np.repeat(["CA", "NY", "TX", "WA"], 5000),
            "pay": np.tile([10.0, 30.0, 50.0, 70.0], 5000),
        }
    )
COUNT = "SELECT state, COUNT(*) AS n FROM data GROUP BY state"
PAY = "SELECT state, AVG(pay, contribution_bounds_per_group => (0, 100)) AS pay FROM data GROUP BY state"
TOTAL = "SELECT SUM(pay, contribution_bounds_per_group => (0, 100)) AS total FROM data"
SUM_FOUND = "SELECT SUM(pay) AS s FROM data"
MIDDLE = "SELECT MEDIAN(pay, contribution_bounds_per_row => (0, 100)) AS m FROM data"
DEFAULTS = {"delta": 1e-9, "max_groups_contributed": 1}


def session(**given: Any) -> sf.Session:
    given = {"epsilon": 10, "delta": 1e-6, "rng": 5, **given}
    return sf.connect(PEOPLE, privacy_unit="person", defaults=DEFAULTS, **given)


def test_several_groupings_and_lists_are_planned_as_what_they_are_written_out_as() -> None:
    rollup = "SELECT state, COUNT(*) AS n FROM rows_ GROUP BY ROLLUP(state)"
    texts = {
        "sums": f"WITH rows_ AS (SELECT * FROM data WHERE pay > @least) {rollup}",
        "top": "SELECT state, APPROX_TOP_COUNT(pay, 2) AS top, COUNT(*) AS n FROM data GROUP BY state",
        "list": "SELECT APPROX_TOP_COUNT(pay, 2) AS top FROM data",
        "total": TOTAL,
    }
    with session() as opened:
        plan = opened.plan(texts, target={"n": 60, "total": 5000}, epsilon=4.0, params={"least": 20})
        names = ["sums.1", "sums.2", "top.1", "top.2", "list", "total"]
        assert [query.name for query in plan.queries] == names
        assert plan.epsilon <= 4
        keys = [[key.name for key in query.priced.query.keys] for query in plan.queries]
        assert keys == [["state"], [], ["state", "value"], ["state"], ["value"], []]
        deltas = [query.priced.query.options.delta for query in plan.queries]
        assert deltas == pytest.approx([5e-10] * 4 + [1e-9] * 2, rel=1e-9)
        assert opened.ledger.entries() == ()
        found = plan.release()
        assert abs(found["sums.2"].to_arrow()["n"][0].as_py() - 15_000) < 400
        assert len(opened.ledger.entries()) == 6
        private = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5)"
        stated = f"{private} COUNT(*) AS n FROM data GROUP BY CUBE(state)"
        fixed = opened.plan([stated], epsilon=1.0)
        assert [query.epsilon for query in fixed.queries] == pytest.approx([0.25, 0.25])
        with pytest.raises(ParameterError, match=r"have names of their own, got 'a\.1'; rename it"):
            opened.plan({"a": texts["top"], "a.1": TOTAL}, epsilon=1.0)


def half_width(release: Any, column: str, level: float = 0.95) -> float:
    table = release.to_arrow(intervals=True, level=level)
    widths: list[float] = [
        (high - low) / 2
        for low, high in zip(
            table[f"{column}_lower"].to_pylist(), table[f"{column}_upper"].to_pylist(), strict=True
        )
    ]
    return max(widths)


def test_the_least_epsilon_that_meets_the_target_is_chosen() -> None:
    with session() as book:
        plan = book.plan({"counts": COUNT, "total": TOTAL}, target={"n": 40, "total": 5000})
        assert plan.met
        counts, total = plan.queries
        assert 0.9 * 40 < counts.errors["n"] <= 40
        assert 0.9 * 5000 < total.errors["total"] <= 5000
        assert book.ledger.entries() == ()  # nothing is spent yet
        made = plan.release()
        assert len(book.ledger.entries()) == 2
    assert half_width(made["total"], "total") == pytest.approx(total.errors["total"])
    assert made["counts"].epsilon == counts.epsilon
    assert plan.epsilon == pytest.approx(counts.epsilon + total.epsilon)


def test_an_average_meets_its_target_where_groups_are_as_large_as_said() -> None:
    with session() as book:
        plan = book.plan([PAY], target=1.0, units=5000, level=0.9)
        made = plan.release()["1"]
    assert 0.5 < half_width(made, "pay", 0.9) <= 1.0  # planned for a mean at the end of its bounds
    assert np.allclose(made.to_arrow()["pay"].to_numpy(), 40, atol=3)


def test_an_epsilon_is_split_so_that_errors_keep_the_ratio_of_their_targets() -> None:
    with session() as book:
        plan = book.plan([COUNT, TOTAL], target={"n": 10, "total": 500}, epsilon=0.5)
        ratios = [
            query.errors[name] / bound for query in plan.queries for name, bound in query.targets.items()
        ]
        assert max(ratios) / min(ratios) < 1.06
        assert 0.48 < plan.epsilon <= 0.5
        assert plan.met == (max(ratios) <= 1.01)
        generous = book.plan([COUNT, TOTAL], target={"n": 10, "total": 500}, epsilon=5.0)
        assert generous.met


def test_without_targets_the_parts_are_equal_and_a_stated_epsilon_stands() -> None:
    stated = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.2) COUNT(*) AS n FROM data"
    with session() as book:
        plan = book.plan({"a": stated, "b": COUNT, "c": TOTAL}, epsilon=1.0)
    assert [query.epsilon for query in plan.queries] == [0.2, pytest.approx(0.4), pytest.approx(0.4)]


def test_targets_may_be_relative_to_public_and_released_figures() -> None:
    with session() as book:
        public = book.plan([COUNT], target=sf.relative(0.01, of=5000)).queries[0]
        before = book.sql(COUNT.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1)"))
        released = book.plan([COUNT], target=sf.relative(0.01, of=before)).queries[0]
        assert len(book.ledger.entries()) == 1
    assert public.targets == {"n": 50}
    assert released.targets["n"] == pytest.approx(0.01 * np.median(before.to_arrow()["n"].to_numpy()))


def test_a_pilot_is_paid_for_and_gives_the_magnitude() -> None:
    with session() as book:
        plan = book.plan([COUNT], target=sf.relative(0.01), pilot=0.3)
        (entry,) = book.ledger.entries()
        assert plan.pilots["1"].epsilon == 0.3
        assert entry is not None
        assert plan.queries[0].targets["n"] == pytest.approx(50, abs=2)
        plan.release()
        assert len(book.ledger.entries()) == 2


def test_only_a_magnitude_that_is_known_from_nowhere_else_has_a_pilot() -> None:
    with session() as book:
        targets = {"n": sf.relative(0.01), "total": sf.relative(0.01, of=8e5)}
        plan = book.plan({"a": COUNT, "b": TOTAL}, target=targets, pilot=0.3)
        assert list(plan.pilots) == ["a"]
        book.plan([TOTAL], target=4000.0, pilot=0.3)
        assert len(book.ledger.entries()) == 1


@cases(
    ("queries", "target", "words"),
    [
        ([COUNT], {"m": sf.relative(0.1)}, "the columns are n"),
        ([COUNT], {"n": -1}, "positive"),
        ([COUNT, TOTAL], {"n": sf.relative(0.1), "total": "much"}, "positive"),
        ([COUNT, TOTAL], {"n": sf.relative(0.1)}, "'2', got none"),
        ([COUNT, PAY], {"n": sf.relative(0.1), "pay": 1.0}, "units"),
        ([COUNT, SUM_FOUND], {"n": sf.relative(0.1), "s": 1.0}, "bounds of 's'"),
        ([COUNT, MIDDLE], {"n": sf.relative(0.1), "m": sf.relative(0.1)}, "relative to a number of rows"),
    ],
)
def test_no_pilot_is_paid_for_a_plan_that_cannot_be_made(queries: Any, target: Any, words: str) -> None:
    with session() as book:
        with pytest.raises(ParameterError, match=words):
            book.plan(queries, target=target, pilot=0.3)
        assert book.ledger.entries() == ()


def test_a_plan_states_what_the_ledger_charges() -> None:
    """Noise that keeps epsilon without the delta is charged none, and the same query twice only once."""
    rows = [f"SELECT COUNT(*) AS n FROM data WHERE pay > {bound}" for bound in range(8)]
    with session(epsilon=1, delta=1.5e-8) as book:
        # The deltas of OPTIONS are 9e-9, more than the half of the budget's that the basic filter has.
        plan = book.plan([*rows, COUNT, rows[0]], epsilon=1.0)
        assert plan.fits
        assert "1: epsilon 0.1, delta 0\n" in str(plan)
        assert "9: epsilon 0.1, delta 1e-09\n" in str(plan)
        assert "epsilons add up to 0.9, deltas to 1e-09; they fit into" in str(plan)
        assert (plan.epsilon, plan.delta) == (0.9, 1e-9)
        plan.release()
        entries = book.ledger.entries()
        assert [entry.delta for entry in entries] == [0.0] * 8 + [1e-9]
        assert plan.loss == compose([entry.loss for entry in entries])
        assert plan.fits  # it was paid for
        assert not book.plan(["SELECT COUNT(*) AS n FROM data"], epsilon=1.0).fits


def test_the_whole_budget_is_split_into_parts_that_fit() -> None:
    """A ninth of 5 is read as 0.5555555555555556, and nine of these are more than 5."""
    with session(epsilon=5, delta=0) as book:
        rows = [f"SELECT COUNT(*) AS n FROM data WHERE pay > {bound}" for bound in range(9)]
        plan = book.plan(rows, epsilon=5.0)
        assert plan.epsilon <= 5
        assert plan.fits
        plan.release()


def test_queries_of_the_builder_and_public_groups_are_planned_too() -> None:
    with session(delta=0) as book:
        rows = book.table().group_by("state", public_groups={"state": ["CA", "NY"]}).agg(n=sf.count())
        plan = book.plan({"rows": rows.options(delta=0)}, target=30)
        made = plan.release()["rows"]
    assert made.to_arrow()["state"].to_pylist() == ["CA", "NY"]
    assert half_width(made, "n") <= 30


def test_a_plan_is_told_in_words() -> None:
    with session() as book:
        text = str(book.plan([COUNT, PAY], target={"n": 40}, epsilon=1.0))
    assert "target 40" in text
    assert "not known beforehand" in text
    assert "they fit into" in text
    assert "Nothing is charged" in text


def test_asking_a_plan_again_costs_nothing() -> None:
    with session() as book:
        plan = book.plan([COUNT], target=40)
        first, second = plan.release()["1"], plan.release()["1"]
        assert second.replayed
        assert second.to_arrow() == first.to_arrow()
        assert len(book.ledger.entries()) == 1


def test_a_policy_holds_for_what_a_plan_chooses() -> None:
    policy = {"privacy_unit_column": "person", "max_epsilon_per_query": 0.05, "epsilon_budget": 10}
    with sf.connect(PEOPLE, policy=policy, rng=5, defaults={"delta": 0, "max_groups_contributed": 1}) as book:
        total = book.plan([TOTAL], target=20_000)
        assert total.queries[0].epsilon < 0.05
        total.release()
        dear = book.plan([TOTAL], target=500)
        with pytest.raises(OptionError, match="policy"):
            dear.release()
        assert len(book.ledger.entries()) == 1


def test_a_plan_beyond_the_budget_is_refused_when_it_is_asked() -> None:
    with session(epsilon=0.01) as book:
        plan = book.plan([COUNT], target=5)
        assert not plan.fits
        assert "do not fit" in plan.explain()
        with pytest.raises(BudgetExceeded):
            plan.release()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({}, ParameterError, "target"),
        ({"target": -1}, ParameterError, "target"),
        ({"target": {"m": 3}}, ParameterError, "the columns are n"),
        ({"target": sf.relative(0.1)}, ParameterError, "pilot"),
        ({"target": 40, "level": 1.5}, ParameterError, "level"),
        ({"target": 40, "epsilon": -1}, ParameterError, "epsilon"),
        ({"target": 40, "epsilon": 1e-12}, OptionError, "large enough|larger"),
    ],
)
def test_bad_input_gets_one_clear_error_and_costs_nothing(
    given: dict[str, Any], error: type[Exception], words: str
) -> None:
    with session() as book:
        with pytest.raises(error, match=words):
            book.plan([COUNT], **given)
        assert book.ledger.entries() == ()


def test_what_cannot_be_planned_is_said() -> None:
    with session() as book:
        with pytest.raises(ParameterError, match="units"):
            book.plan([PAY], target=1.0)
        with pytest.raises(ParameterError, match="several"):
            book.plan([], target=1.0)
        with pytest.raises(ParameterError, match="several"):
            book.plan(COUNT, target=1.0)
        many = COUNT.replace(
            "SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=100000)", 1
        )
        with pytest.raises(OptionError, match="cannot be met"):
            book.plan([many], target=0.5)
        with pytest.raises(ParameterError, match="none"):
            book.plan({"a": COUNT, "b": TOTAL}, target={"n": 40})
    with pytest.raises(ParameterError, match="share"):
        sf.relative(0)
    with pytest.raises(ParameterError, match="of"):
        sf.relative(0.1, of=-3)
