"""A dry run shows the form of an answer and nothing of the rows: it is the same whatever they are."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import ParameterError, SchemaError
from sfumato.queries.plan.nodes import Scan
from sfumato.server.console.asking.dry_run import dry_run
from sfumato.server.console.asking.generated_rows import RowMaker, Size
from sfumato.server.console.asking.planning_tables import planning_session, same_columns
from sfumato.server.console.asking.question import Question
from sfumato.synthetic import Ordered, TableDomain
from tests.cases import cases

GROUPED = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-9, max_groups_contributed=1)
state, COUNT(*) AS n, AVG(pay, contribution_bounds_per_group => (10, 20)) AS pay FROM data GROUP BY state"""


def table(secret: float) -> pa.Table:
    """Return rows of every type, whose values are all one secret."""
    return pa.table(
        {
            "person": pa.array(["one"] * 9),
            "state": [f"state {secret}"] * 9,
            "pay": [secret] * 9,
            "whole": pa.array([7] * 9, pa.int8()),
            "price": pa.array([None] * 9, pa.decimal128(38, 9)),
            "day": [dt.date(1900, 1, 1)] * 9,
            "moment": [dt.datetime(1900, 1, 1)] * 9,
            "yes": [True] * 9,
            "blob": pa.array([b"x"] * 9),
            "list": pa.array([[1]] * 9),
        }
    )


def connected(secret: float) -> sf.Session:
    states = pa.table({"state": ["Ohio", "Iowa"], "blob": pa.array([b"x", None])})
    return sf.connect(table(secret), privacy_unit="person", epsilon=1, delta=1e-6, public={"states": states})


def test_it_is_the_same_whatever_the_rows_are_and_charges_nothing() -> None:
    domains = {"data": TableDomain(pay=Ordered(10, 20, bins=5))}
    found = []
    for secret in (1.5, 123456.5):
        with connected(secret) as session:
            plan = planning_session(session)
            assert same_columns(plan.engine.schemas, session.engine.schemas)
            run = dry_run(plan, Question(sql=GROUPED), domains=domains, seed=7)
            found.append(json.dumps(run.to_json()))
            assert session.ledger.entries() == ()
            plan.engine.close()
    assert found[0] == found[1]
    rows = {row["state"]: row for row in run.table.to_pylist()}
    assert set(rows) == {"Iowa", "Ohio"}, "as a public table has them"
    assert all(10 <= row["pay"] <= 20 for row in rows.values())
    assert 800 < sum(row["n"] for row in rows.values()) < 1200


def test_every_type_of_column_is_made_up_within_what_is_public() -> None:
    with connected(1.0) as session:
        scan = session.catalog.private["data"]
    days = (dt.date(2026, 2, 1), dt.date(2026, 3, 1))
    made = maker(bounds={"whole": (-3.0, 3.0), "pay": (-1e308, 1e308)}, days=days).table(scan)
    assert made.column_names == table(1.0).column_names
    whole, pay = (np.asarray(made[name].to_pylist()) for name in ("whole", "pay"))
    assert set(whole) == set(range(-3, 4))
    assert np.isfinite(pay).all()
    assert len(set(made["person"].to_pylist())) == 200
    assert all(days[0] <= day < days[1] for day in made["day"].to_pylist())
    assert {day.date().month for day in made["moment"].to_pylist()} == {2}
    assert made["blob"].null_count == made["list"].null_count == made.num_rows == 400


def maker(**more: Any) -> RowMaker:
    return RowMaker(rng=np.random.default_rng(1), size=Size(units=200, rows_per_unit=2), **more)


def test_a_row_that_is_a_unit_is_one_row() -> None:
    with sf.connect(table(1.0), privacy_unit=sf.ROW, epsilon=1) as session:
        scan = session.catalog.private["data"]
    assert isinstance(scan, Scan)
    assert maker().table(scan).num_rows == 200


@cases("changes", [{"units": 0}, {"units": 10**6}, {"rows_per_unit": 10**5}, {"units": 1.5}])
def test_a_size_that_is_none_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="must"):
        Size(**changes)


def test_a_question_is_refused_with_the_error_of_a_real_one(tmp_path: Path) -> None:
    del tmp_path
    with connected(1.0) as session:
        plan = planning_session(session)
        with pytest.raises(SchemaError, match="did you mean 'pay'"):
            dry_run(plan, Question(sql=GROUPED.replace("(pay", "(payy")))
        plan.engine.close()
