"""The options of ``sfumato sql``: words to typed values, what is clamped, and what is passed to connect."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.cli import opening
from sfumato.cli.commands import app
from sfumato.cli.data import ACS
from sfumato.cli.opening import columns_of
from sfumato.cli.sql import params_of
from sfumato.errors import ParameterError
from sfumato.ledger.ledger import Ledger
from tests.cases import cases

READ = [
    ("a=18", 18), ("a=-3", -3), ("a=0", 0), ("a=0.5", 0.5), ("a=1e-8", 1e-8), ("a=TRUE", True),
    ("a=CA", "CA"),
    ("a=02139", "02139"), ("a=", ""), ("a=b=c", "b=c"), ('a=["x", "y"]', ["x", "y"]), ("a=[1, 2]", [1, 2]),
    ("a:STRING=18", "18"), ("a:string=[1]", "[1]"), ("a:INT64=007", 7), ("a:FLOAT64=2", 2.0),
    ("a:DATE=2020-01-31", dt.date(2020, 1, 31)), ("a:BOOL=false", False),
    ("a:NUMERIC=18446744073709551615.10", Decimal("18446744073709551615.10")),
    ("a:TIMESTAMP=2020-01-31 12:00:00", dt.datetime(2020, 1, 31, 12)), ("a=2020-01-31", "2020-01-31"),
]  # fmt: skip


@cases(("word", "value"), READ)
def test_a_value_is_what_it_looks_like_or_what_is_said(word: str, value: object) -> None:
    (found,) = params_of([word]).values()
    assert found == value
    assert type(found) is type(value)


REFUSED = [
    (["a"], "param must be NAME=VALUE or NAME:TYPE=VALUE, got 'a'"),
    (["=1"], "param must be NAME=VALUE"),
    (["a=1", "a=2"], "param must name each parameter once"),
    (["a:INT64=x"], "param must hold a value of INT64"),
    (["a:BOOL=2"], "param must hold a value of BOOL"),
    (["a:DATE=31.1.2020"], "param must hold a value of DATE"),
    (["a:NUMERIC=1e3"], "param must hold a value of NUMERIC"),
    (["a:JSON=1"], "param must be of a type BOOL, INT64"),
    (["a=[1"], "param must hold a list in JSON"),
]


@cases(("words", "phrase"), REFUSED)
def test_other_words_are_refused(words: list[str], phrase: str) -> None:
    with pytest.raises(ParameterError, match=phrase):
        params_of(words)


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


UNIT = ("--privacy-unit", "person_id", "--epsilon", "4000")
EMPTY = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.{}1, delta=0, max_groups_contributed=1, "
    "group_selection_strategy=PUBLIC_GROUPS) k, COUNT(*) AS n "
    "FROM data RIGHT JOIN UNNEST(GENERATE_ARRAY(1001, 1040)) AS k ON age = k GROUP BY k"
)


def test_clamped_numbers_are_possible_and_the_same_noise_is_paid_for_once(tmp_path: Path) -> None:
    asked = ("sql", ACS, *UNIT, "--ledger", tmp_path / "l", "--format", "json")
    raw, clamped = (run(*asked, *more, EMPTY.format(0)) for more in ((), ("--clamp",)))
    assert "cost nothing" in clamped.stderr
    noisy, possible = ([row["n"] for row in json.loads(made.stdout)["rows"]] for made in (raw, clamped))
    assert min(noisy) < 0
    assert possible == [max(0, number) for number in noisy]


def test_what_is_around_an_answer_is_not_clamped_and_costs_nothing(tmp_path: Path) -> None:
    ledger = tmp_path / "l"
    text = f"SELECT SUM(n) AS n FROM ({EMPTY.format(0)})"
    refused = run("sql", ACS, *UNIT, "--ledger", ledger, "--clamp", text)
    assert refused.exit_code == 2
    assert "--clamp must be of one private SELECT alone, but there is SQL around it" in refused.stderr
    with Ledger.read(ledger) as book:
        assert book.entries() == ()
    assert run("explain", ACS, *UNIT, "--clamp", EMPTY.format(0)).exit_code == 2


def test_columns_and_the_time_limit_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def connect(source: object, **given: Any) -> None:
        seen.update(given, source=source)
        raise ParameterError("enough")

    monkeypatch.setattr(opening, "connect", connect)
    address = "postgresql://ada@host/shop"
    more = ("--columns", "people=person,state", "--columns", "visits=person", "--statement-timeout", "2.5")
    assert run("sql", address, *UNIT, *more, "--output", "answer.csv", "--format", "csv", "-").exit_code == 2
    assert seen["source"] == address
    assert seen["columns"] == {"people": ["person", "state"], "visits": ["person"]}
    assert (seen["statement_timeout"], seen["head"]) == (2.5, None)
    run("explain", ACS, *UNIT, "--head", "head.json", "SELECT 1")
    assert (seen["columns"], seen["statement_timeout"], seen["head"]) == (None, None, "head.json")


@cases(
    ("words", "phrase"),
    [
        (["--columns", "person_id"], "columns must be left out for files and frames"),
        (["--columns", "a,,b"], "--columns must be COLUMN,COLUMN, or for every table TABLE=COLUMN,COLUMN"),
        (["--columns", "=a"], "--columns must be COLUMN,COLUMN"),
        (["--columns", "t=a", "--columns", "b"], "--columns must be COLUMN,COLUMN"),
        (["--columns", "b", "--columns", "t=a"], "--columns must be COLUMN,COLUMN"),
        (
            ["--statement-timeout", "5"],
            "left out for files and frames, got 5.0; leave it out: Ctrl-C stops a",
        ),
        (["--head", "head.json"], "head must be a file that can be read"),
        (["--head", "{}"], "head"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: list[str], phrase: str) -> None:
    result = run("sql", ACS, *UNIT, *words, "SELECT 1")
    assert result.exit_code == 2
    assert phrase in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_time_limit_is_a_number() -> None:
    assert run("sql", ACS, *UNIT, "--statement-timeout", "soon", "SELECT 1").exit_code == 2


def test_a_ledger_must_continue_the_head(tmp_path: Path) -> None:
    ledger, head = tmp_path / "l", tmp_path / "head.json"
    asked = ("sql", ACS, *UNIT, "--ledger", ledger)
    assert run(*asked, EMPTY.format(0)).exit_code == 0
    before = ledger.read_bytes()
    assert run(*asked, EMPTY.format(1)).exit_code == 0
    head.write_text(run("ledger", "head", ledger).stdout, encoding="utf-8")
    assert run(*asked, "--head", head, EMPTY.format(1)).exit_code == 0
    assert run("sql", ACS, *UNIT, "--head", head, EMPTY.format(1)).exit_code == 2  # in memory
    ledger.write_bytes(before)
    restored = run(*asked, "--head", head, EMPTY.format(1))
    assert restored.exit_code == 1
    assert "head" in restored.stderr


def test_columns_are_of_one_table_or_of_each() -> None:
    assert columns_of([]) is None
    assert columns_of(["a,b", "c"]) == ["a", "b", "c"]
    assert columns_of(["t=a", "t=b,c", "u=a"]) == {"t": ["a", "b", "c"], "u": ["a"]}
