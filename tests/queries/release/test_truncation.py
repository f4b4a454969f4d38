"""Truncation beside an answer: near the true shares, with honest intervals, wherever a release is shown."""

from __future__ import annotations

import datetime as dt
import functools
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, LedgerUnavailable, OptionError
from sfumato.queries.outer.release import PostprocessedRelease
from sfumato.queries.plan.stated_limits import CutOff
from sfumato.queries.release.record import NoisyCut, ReleaseRecord
from sfumato.queries.release.table import TableRelease
from sfumato.queries.release.truncation import TruncatedShare, Truncation
from sfumato.session.rendering import render_sql
from sfumato.session.session import Session
from tests.chance import accepts_only
from tests.drawings import bars, new_axes, written

PAGE = Path(__file__).parents[3] / "docs" / "sql.md"
TEXT = """
    SELECT WITH DIFFERENTIAL_PRIVACY
      OPTIONS(epsilon=1, delta=1e-7, max_groups_contributed=5, truncation_epsilon=0.2)
    month, COUNT(DISTINCT rider) AS riders FROM rides GROUP BY month"""


@functools.cache
def rides(units: int = 5000) -> pa.Table:
    draw = random.Random(1)
    pairs = [(u, m) for u in range(units) for m in draw.sample(range(12), draw.choice([1, 3, 6, 9, 12]))]
    return pa.table({"rider": [u for u, _ in pairs], "month": [m for _, m in pairs]})


def opened(seed: int = 3, epsilon: float = 3.0) -> Session:
    return sf.connect({"rides": rides()}, privacy_unit="rider", epsilon=epsilon, delta=1e-5, rng=seed)


def report(release: object) -> Truncation:
    assert isinstance(release, TableRelease)
    assert release.truncation is not None
    return release.truncation


def true_shares(table: pa.Table) -> tuple[float, float]:
    """Return the share of units that lose a group, and of their groups that are dropped."""
    groups = table.group_by("rider").aggregate([("month", "count")])["month_count"].to_pylist()
    return sum(g > 5 for g in groups) / len(groups), sum(max(0, g - 5) for g in groups) / sum(groups)


def test_the_shares_are_near_the_true_ones() -> None:
    units, groups = true_shares(rides())
    for seed in range(2):
        with opened(seed) as session:
            found = report(session.sql(TEXT))
        assert found.rows is None
        assert found.values == {}
        for share, true in ((found.units, units), (found.groups, groups)):
            assert share is not None
            # a false alarm is one interval of four that misses, and by its own width again
            width = share.upper - share.lower
            accepts_only(_near(share, width), true, of_what_is_left=true / (1 - true))
            assert width < 0.05
            assert share.lower <= share.estimate <= share.upper


def _near(share: TruncatedShare, width: float) -> Callable[[float], None]:
    def check(true: float) -> None:
        assert share.lower - width < true < share.upper + width

    return check


def _coverage(cut: int, left: int, stated: Fraction) -> float:
    """Enumerate noise of scale 1/2, all but 2e-4 of its probability; intervals go by the stated scale."""
    covered, size = 0.0, (1 - math.exp(-2)) / (1 + math.exp(-2))
    for one in range(-4, 5):
        for other in range(-4, 5):
            noisy = NoisyCut(CutOff.UNITS, None, 1, 1, stated, cut + one, left + other)
            found = Truncation.of([noisy], 0.9).units
            assert found is not None
            assert 0 <= found.lower <= found.estimate <= found.upper <= 1
            if found.lower <= cut / (cut + left) <= found.upper:
                covered += size**2 * math.exp(-2 * (abs(one) + abs(other)))
    return covered


def test_intervals_hold_the_share_as_often_as_they_say() -> None:
    for cut, left in ((0, 12), (9, 9), (1, 0)):
        assert _coverage(cut, left, Fraction(1, 2)) >= 0.9
    assert _coverage(9, 9, Fraction(1, 2)) < 0.95  # a wider interval than need be would be above
    assert _coverage(9, 9, Fraction(1, 4)) < 0.8  # and one from too little noise is seen


def test_noise_above_the_counts_leaves_the_share_open() -> None:
    noisy = NoisyCut(CutOff.GROUPS, None, 20, 1024, Fraction(10**9), -5, 7)
    share = Truncation.of([noisy], 0.95).groups
    assert share == TruncatedShare(estimate=0.0, lower=0.0, upper=1.0, cap=20)
    assert str(share) == "0 % [0, 100]"


def test_it_is_one_charge_and_is_stored_with_the_answer(tmp_path: Path) -> None:
    budget = {"privacy_unit": "rider", "epsilon": 1.0, "delta": 1e-6, "ledger": tmp_path / "rides.ledger"}
    with sf.connect({"rides": rides()}, **budget) as session:  # type: ignore[call-overload]  # names and values
        release = session.sql(TEXT)
        assert len(session.ledger.entries()) == 1
        again = session.sql(TEXT)
        assert again.replayed
        stored = session.ledger.release(1)
        assert report(release) == report(again) == report(stored)
        assert release.loss.epsilon(delta=1e-7) <= 1.0
        with pytest.raises(BudgetExceeded):
            session.sql(TEXT.replace("0.2", "0.3"))  # another question
        assert len(session.ledger.entries()) == 1


def test_it_is_shown_wherever_a_release_is() -> None:
    with opened() as session:
        release = session.sql(TEXT)
        planned = session.explain(TEXT)
        stored = session.ledger.release(1)
    found = report(release)
    assert isinstance(stored, TableRelease)
    lines = str(release).splitlines()
    assert lines[-2:] == [f"cut off: {line}" for line in found.lines()]
    assert re.fullmatch(r"cut off: [\d.]+ % \[[\d.]+, [\d.]+\] of units' groups are dropped", lines[-1])
    assert "of units lose a group" in release._repr_html_()
    for text in (release.explain(), stored.explain()):
        assert f"In this answer: {next(found.lines())}." in text
    assert "a unit counts as 20 at most" in planned
    assert "cost: epsilon 0.2 of the whole" in planned
    assert found.to_arrow().to_pylist()[1]["cut_off"] == "groups"
    assert "cut off" not in str(replace(release, record=replace(release.record, truncation=())))


def test_the_builder_and_larger_sql_ask_for_it_too() -> None:
    with opened() as session:
        query = session.table("rides").group_by("month").agg(riders=sf.count_distinct("rider"))
        built = query.release(epsilon=1, delta=1e-7, max_groups_contributed=5, truncation_epsilon=0.2)
        larger = session.sql(f"SELECT month, riders FROM ({TEXT}) ORDER BY riders")
        assert isinstance(larger, PostprocessedRelease)
        assert report(larger.releases[0]) == report(built)  # the same question
        sets = session.sql(
            TEXT.replace("GROUP BY month", "GROUP BY ROLLUP(month)").replace("epsilon=1", "epsilon=2")
        )
        assert isinstance(sets, PostprocessedRelease)
        several = [each.truncation is not None for each in sets.releases]
        assert several == [True, False]  # over all rows no unit loses any


def test_what_is_bad_is_refused_before_anything_is_charged() -> None:
    with opened() as session:
        for old, new in (
            ("truncation_epsilon=0.2", "truncation_epsilon=-0.2"),
            ("truncation_epsilon=0.2", "truncation_epsilon=1"),
            ("max_groups_contributed=5, ", "max_groups_contributed=5, truncation_epsilon=0.1, "),
        ):
            with pytest.raises(OptionError):
                session.sql(TEXT.replace(old, new))
        with pytest.raises(OptionError, match="no stated limit or bound"):
            session.sql(TEXT.replace("month, COUNT", "COUNT").replace("GROUP BY month", ""))
        assert session.ledger.entries() == ()


def test_what_could_not_show_it_refuses_it() -> None:
    table = pa.table({"rider": [1, 2], "day": pa.array([dt.date(2024, 1, 1)] * 2)})
    with sf.connect({"rides": table}, privacy_unit="rider", epsilon=3, delta=1e-5, rng=1) as session:
        query = session.table().agg(riders=sf.count(bounds=(0, 3))).options(truncation_epsilon=0.1)
        terms = {"moment": "day", "start": dt.date(2024, 1, 1), "every": "day", "steps": 4, "max_periods": 2}
        with pytest.raises(OptionError, match="left out for a counter"):
            session.counter(query, epsilon=1, delta=1e-6, **terms)  # type: ignore[arg-type]  # of several types
        assert session.ledger.entries() == ()
    types = {"rides": {"rider": "BIGINT", "month": "BIGINT"}}
    with pytest.raises(OptionError, match="left out of a query that is rendered"):
        render_sql(TEXT, "duckdb", tables=types, privacy_unit="rider")


def test_a_record_is_read_back_as_it_was() -> None:
    with opened() as session:
        release = session.sql(TEXT)
    record = release.record
    assert ReleaseRecord.from_bytes(record.to_bytes()).truncation == record.truncation
    bare = replace(record, truncation=())
    assert b"truncation" not in bare.to_bytes()
    assert ReleaseRecord.from_bytes(bare.to_bytes()).truncation == ()
    broken = record.to_bytes().replace(b'"of":"units"', b'"of":"snits"')
    with pytest.raises(LedgerUnavailable):
        ReleaseRecord.from_bytes(broken)


def test_the_example_of_the_guide_runs() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("**Beside an answer.**")[2]
    (block,) = re.findall(r"^```python\n(.*?)^```", section.partition("\n## ")[0], re.DOTALL | re.MULTILINE)
    with opened() as session:
        space: dict[str, object] = {"session": session}
        exec(compile(block, str(PAGE), "exec"), space)
        release = space["release"]
    assert isinstance(release, TableRelease)
    assert str(release.truncation) in block


def test_shares_are_drawn_from_0_to_1() -> None:
    shares = {"units": TruncatedShare(0.2, 0.1, 0.4, 1), "values": {"n": TruncatedShare(0.0, 0.0, 1.0, 3)}}
    ax = Truncation(**shares).plot(new_axes())  # type: ignore[arg-type]
    assert bars(ax) == ([0.2, 0.0], [(0.1, pytest.approx(0.4)), (0.0, 1.0)])
    assert (written(ax), ax.get_ylim()) == (["units", "values of n"], (0.0, 1.0))
    assert not Truncation().plot(new_axes()).patches
