"""Suggested limits end to end: near the best ones by brute force, paid for once, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, LedgerUnavailable, OptionError, ParameterError, SourceError
from sfumato.privacy import Neighboring
from sfumato.queries.planner.limit_record import LimitsRecord
from tests.drawings import band, line, new_axes
from tests.run_time import run_time

GOLDEN = Path(__file__).parents[2] / "golden" / "queries" / "limits.json"
MONTHS = 12
SELECT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7) "
RIDERS = f"{SELECT}month, COUNT(DISTINCT rider) AS n FROM data GROUP BY month"
FARES = f"{SELECT}month, SUM(fare) AS s, AVG(fare) AS a, COUNT(*) AS n FROM data GROUP BY month"


def _rides() -> pa.Table:
    """Draw riders of 1 to 12 months, with 1 to 30 rides in each, of fares around 20."""
    draw = np.random.default_rng(5)
    months = np.minimum(MONTHS, draw.geometric(0.2, 3000))
    riders, when = [], []
    for rider, many in enumerate(months):
        for month in draw.choice(MONTHS, many, replace=False):
            rides = min(30, draw.geometric(0.4))
            riders += [rider] * rides
            when += [int(month)] * rides
    return pa.table({"rider": riders, "month": when, "fare": draw.gamma(2.0, 10.0, len(riders))})


if run_time(__name__):
    RIDES = _rides()


def connect(**given: Any) -> sf.Session:
    terms = {"privacy_unit": "rider", "epsilon": 4.0, "delta": 1e-6, "rng": 3, "threads": 1, **given}
    return sf.connect(RIDES, **terms)  # type: ignore[no-any-return]


def row(suggested: Any, limit: str, value: float) -> dict[str, Any]:
    return next(
        each for each in suggested.to_arrow().to_pylist() if (each["limit"], each["value"]) == (limit, value)
    )


def test_truncation_that_no_interval_shows_is_seen() -> None:
    text = RIDERS.replace("delta=1e-7", "delta=1e-7, max_groups_contributed=5")
    months = np.array(
        RIDES.group_by("rider").aggregate([("month", "count_distinct")])["month_count_distinct"]
    )
    true = np.maximum(0, months - 5).sum() / months.sum()
    with connect() as session:
        suggested = session.suggest_limits(text, epsilon=1.0)
        assert "suggest_limits" in session.explain(text)
    stated = row(suggested, "max_groups_contributed", 5)
    assert stated["stated"]
    assert stated["cut_lower"] <= true <= stated["cut_upper"]
    assert abs(stated["cut"] - true) < 0.02
    assert abs(stated["above"] - (months > 5).mean()) < 0.02
    # the error of a limit is what it cuts off and the noise together
    assert stated["error"] == pytest.approx(np.hypot(stated["cut"], stated["noise"]))
    assert suggested.recommended == {"max_groups_contributed": 12}
    assert f"{stated['cut']:.1%}" in suggested.explain()


def test_what_is_recommended_is_near_the_best_limit_by_brute_force() -> None:
    with connect() as session:
        suggested = session.suggest_limits(FARES, epsilon=2.0, groups=MONTHS)
    found = suggested.recommended
    assert list(found) == [
        "max_groups_contributed",
        "max_rows_per_group",
        "contribution_bounds_per_row of s",
        "contribution_bounds_per_group of a",
    ]
    low, high = found["contribution_bounds_per_row of s"]  # type: ignore[misc]
    table = suggested.to_arrow().to_pylist()
    rows = found["max_rows_per_group"]

    def error(limit: str, value: object) -> float:
        return max(float(e["error"] or 0) for e in table if (e["limit"], e["value"]) == (limit, value))

    # the exact error of each candidate: what is cut off of the true sum, and the noise that was stated
    pairs = RIDES.group_by(["rider", "month"]).aggregate([("fare", "count")])["fare_count"].to_numpy()
    fares = RIDES["fare"].to_numpy()
    cut_rows = np.maximum(0, pairs - rows).sum() / pairs.sum()
    cut_fares = np.maximum(0, fares - high).sum() / fares.sum()
    of_sum = next(
        e for e in table if (e["limit"], e["value"], e["aggregate"]) == ("max_rows_per_group", rows, "s")
    )
    assert low == 0
    true = np.hypot(1 - (1 - cut_rows) * (1 - cut_fares), of_sum["noise"])
    assert of_sum["error"] == pytest.approx(true, rel=0.3)
    assert of_sum["error_lower"] <= true <= of_sum["error_upper"]
    for limit in ("max_groups_contributed", "max_rows_per_group"):
        values = {e["value"] for e in table if e["limit"] == limit}
        assert error(limit, found[limit]) == min(error(limit, value) for value in values)
    assert all(e["error"] is None for e in table if e["aggregate"] == "a")


def test_it_is_charged_before_and_replayed_after(tmp_path: Path) -> None:
    book = tmp_path / "a.ledger"
    with connect(ledger=book, rng=None) as session:
        first = session.suggest_limits(RIDERS, epsilon=0.5)
        (entry,) = session.ledger.entries()
        again = session.suggest_limits(RIDERS.lower(), epsilon=0.5, level=0.8)
        assert len(session.ledger.entries()) == 1
    assert entry.epsilon == pytest.approx(0.5, rel=1e-6)
    assert (entry.committed, entry.description[:11]) == (True, "limits for ")
    assert first.loss.epsilon() <= 0.5
    assert (first.epsilon, first.neighboring, first.privacy_unit) == (0.5, Neighboring.ADD_REMOVE, "rider")
    assert first.receipt is not None
    assert (again.replayed, again.receipt) == (True, None)
    assert again.record.histograms == first.record.histograms
    assert not first.simulated
    with connect(ledger=book, rng=None) as session:
        assert session.suggest_limits(RIDERS, epsilon=0.5).record == again.record
        with pytest.raises(BudgetExceeded):
            session.suggest_limits(RIDERS, epsilon=3.9)
        assert len(session.ledger.entries()) == 1


def test_other_forms_of_queries() -> None:
    with connect() as session:
        built = (
            session.table().group_by("month").agg(n=sf.count_distinct("rider")).options(epsilon=1, delta=1e-7)
        )
        assert session.suggest_limits(built, epsilon=0.5).recommended == {"max_groups_contributed": 12}
        with pytest.raises(ParameterError, match="public_groups must be left out"):
            session.suggest_limits(built, epsilon=0.5, public_groups={"month": [1]})
        ungrouped = session.suggest_limits(f"{SELECT}SUM(fare) AS s FROM data", epsilon=0.5)
        assert set(ungrouped.recommended) == {"max_rows_per_group", "contribution_bounds_per_row of s"}
        listed = session.suggest_limits(
            RIDERS.replace("delta=1e-7", "delta=0"), epsilon=0.5, public_groups={"month": range(4)}
        )
        assert listed.recommended == {"max_groups_contributed": 4}
        text = RIDERS.replace("delta=1e-7", "delta=1e-7, max_rows_contributed=3").replace(
            "DISTINCT rider", "*"
        )
        assert list(session.suggest_limits(text, epsilon=0.5).recommended) == ["max_rows_contributed"]
        weak = session.suggest_limits(RIDERS, epsilon=1e-4, groups=MONTHS)
        assert "nothing stands out" in weak.explain()
        assert weak.recommended == {}
        assert "recommended: nothing" in str(weak)
        assert weak.to_arrow().num_rows > 0
    with sf.connect(RIDES, privacy_unit=sf.ROW, epsilon=2, delta=1e-6, rng=3) as session:
        rows = session.suggest_limits(f"{SELECT}SUM(fare) AS s FROM data", epsilon=0.5)
        assert list(rows.recommended) == ["contribution_bounds_per_row of s"]


def test_what_is_shown() -> None:
    with connect() as session:
        suggested = session.suggest_limits(RIDERS, epsilon=0.5)
    text, page = str(suggested), suggested._repr_html_()
    assert "recommended: max_groups_contributed = 12" in text
    assert "<table" in page
    frame = suggested.to_pandas()
    assert list(frame["value"]) == sorted(frame["value"])
    assert frame["recommended"].sum() == 1


def test_wrong_questions_are_refused_and_cost_nothing() -> None:
    several = f"{SELECT}month, rider > 5 AS k, COUNT(*) AS n FROM data GROUP BY month, k"
    with connect(policy=None) as session:
        for text, given, error, words in (
            (RIDERS, {"epsilon": 0}, ParameterError, "epsilon must be positive"),
            (RIDERS, {"epsilon": "1"}, ParameterError, "epsilon must be positive"),
            (RIDERS, {"epsilon": 1e-14}, ParameterError, "scale of the noise"),
            (RIDERS, {"epsilon": 1, "level": 1}, ParameterError, "level must be strictly"),
            (RIDERS, {"epsilon": 1, "groups": -3}, ParameterError, "groups must be positive"),
            (several, {"epsilon": 1}, ParameterError, "groups must be given"),
            (f"{SELECT}COUNT(DISTINCT rider) AS n FROM data", {"epsilon": 1}, ParameterError, "limit bounds"),
            ("SELECT COUNT(*) AS n FROM data", {"epsilon": 1}, OptionError, "plain SELECT"),
            (3, {"epsilon": 1}, ParameterError, "query must be a text or a PrivateQuery"),
        ):
            with pytest.raises(error, match=words):
                session.suggest_limits(text, **given)  # type: ignore[arg-type]
        assert session.ledger.entries() == ()
    with pytest.raises(SourceError, match="closed"):
        session.suggest_limits(RIDERS, epsilon=1)
    limits = {"privacy_unit_column": "rider", "max_epsilon_per_query": 1.0}
    with connect(policy=limits) as session, pytest.raises(OptionError, match="privacy policy"):
        session.suggest_limits(RIDERS, epsilon=1.5)


def test_a_record_is_read_back_and_another_is_refused() -> None:
    stored = GOLDEN.read_bytes()
    record = LimitsRecord.from_bytes(stored)
    assert record.to_bytes() == stored
    assert record.to_arrow().num_rows == sum(len(each.counts) for each in record.histograms)
    for old, new in (
        (b"limit-histograms", b"another"),
        (b'"cap"', b'"cup"'),
        (b'"version":1', b'"version":9'),
    ):
        assert old in record.to_bytes()
        with pytest.raises(LedgerUnavailable, match="install a newer sfumato"):
            LimitsRecord.from_bytes(record.to_bytes().replace(old, new))


def test_what_a_limit_cuts_off_is_drawn_with_the_error() -> None:
    with connect() as session:
        suggested = session.suggest_limits(RIDERS, epsilon=1.0, groups=MONTHS)
    rows = suggested.to_arrow().to_pylist()
    ax = suggested.plot(new_axes())
    for place, column in enumerate(("cut", "error")):
        assert line(ax, place) == ([row["value"] for row in rows], [row[column] for row in rows])
        assert band(ax, place) == [(row[f"{column}_lower"], row[f"{column}_upper"]) for row in rows]
    assert [each.get_label() for each in ax.lines] == [
        "max_groups_contributed cuts off",
        "error of n",
        "recommended: 12",
    ]
    with pytest.raises(ParameterError, match="limit must be one of max_groups_contributed, got 'x'"):
        suggested.plot(new_axes(), limit="x")
