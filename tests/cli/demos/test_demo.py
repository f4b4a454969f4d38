"""The demo: what it promises to show, and that its true answers are true."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.cli.data import ACS
from sfumato.cli.demos.truth import people_by_race, people_by_state
from sfumato.cli.process.interrupts import Interrupts

TOTALS = json.loads(Path(__file__).parents[1].joinpath("acs_totals.json").read_text(encoding="utf-8"))


def demo(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["demo", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def output() -> str:
    return demo()


def test_the_truth_is_that_of_the_rows() -> None:
    rows = pq.read_table(ACS, columns=["state", "income"]).to_pylist()
    for state, truth in people_by_state().items():
        incomes = [row["income"] for row in rows if row["state"] == state]
        earned = [min(max(income, 0), 200_000) for income in incomes if income is not None]
        assert truth.people == len(incomes)
        assert truth.income == pytest.approx(sum(earned) / len(earned), rel=1e-12)
    assert sorted(people_by_race().values()) == sorted(TOTALS["counts"]["RAC1P"].values())


def test_the_first_answer_stands_beside_the_truth(output: str) -> None:
    assert "AVG(income, contribution_bounds_per_group => (0, 200000)) AS income" in output
    for state, truth in people_by_state().items():
        (line,) = re.findall(rf"^ *{state} .*$", output, re.MULTILINE)
        assert f" {truth.people:,} " in line
        assert line.rstrip().endswith(f" {truth.income:,.0f}")
        assert len(re.findall(r"[0-9,]+\u2013[0-9,]+", line)) == 2
    # Each of 32 intervals misses with probability at most 0.05; below 10 hits has odds under 1e-15.
    (inside,) = re.findall(r"(\d+) of 32 intervals", output)
    assert 10 <= int(inside) <= 32
    assert "it may: the Census Bureau and NIST publish" in " ".join(output.split())


def test_rare_groups_are_hidden(output: str) -> None:
    (line,) = re.findall(r"^ *Alaska Native alone .*$", output, re.MULTILINE)
    assert line.split()[-2:] == ["hidden", "2"]
    (shown,) = re.findall(r"(\d+) of 9 groups are shown", output)
    assert 6 <= int(shown) < 9


def test_the_last_question_is_refused(output: str) -> None:
    assert output.count("Cost: 0.5-DP") >= 1
    assert output.count("BudgetExceeded:") == 1
    refusal = " ".join(output.split("BudgetExceeded:")[1].split())
    assert "nothing was charged" in refusal
    assert "Left: (" in refusal


@pytest.mark.parametrize("columns", ["80", "200"])
def test_no_line_is_over_80_characters(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert max(map(len, demo().splitlines())) <= 80


def test_every_group_has_a_line_of_its_own(output: str) -> None:
    (table,) = re.findall(r"^ *race  .*?\n\n", output, re.MULTILINE | re.DOTALL)
    assert len(table.strip().splitlines()) == 2 + len(people_by_race())


def test_an_interrupt_says_what_was_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    module, own = import_module("sfumato.cli.demos.demo"), Interrupts()
    monkeypatch.setattr(module, "_hide_rare_groups", interrupted)
    monkeypatch.setattr(module, "interrupts", own)
    with pytest.raises(KeyboardInterrupt):
        module.demo(tmp_path / "l")
    assert own.line().startswith("interrupted; charge 1 stays, (0.5, 1e-08)-DP, with the answer stored")


def test_a_stored_ledger_answers_the_same_again(tmp_path: Path) -> None:
    path = str(tmp_path / "demo.ledger")
    first, second = demo("--ledger", path), demo("--ledger", path)
    answers = [re.findall(r"^ *Iowa .*$", output, re.MULTILINE) for output in (first, second)]
    assert answers[0] == answers[1]
    assert "Cost: nothing" in second
    assert CliRunner().invoke(app, ["ledger", "verify", path]).exit_code == 0
