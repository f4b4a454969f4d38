"""``--json`` everywhere: one object with a format, from every command that prints facts; errors too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.cli.data import ACS

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
QUERY = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
BUDGET = ("--privacy-unit", "person_id", "--epsilon", "2", "--delta", "1e-7", "--ledger", "acs.ledger")
ANSWERS = ("--column", "said", "--design", "two-coins")


def ran(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def document(*words: object) -> dict[str, Any]:
    """Return what a command prints with --json: one object and nothing else, of a documented format."""
    result = ran(*words, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    assert type(found["version"]) is int
    assert f"`{found['format']}`" in DOCS.read_text(encoding="utf-8"), found["format"]
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_of_a_ledger_from_the_answer_to_the_page(here: Path) -> None:
    answer = document("sql", ACS, *BUDGET, QUERY)
    assert answer["cost"] == {"epsilon": 0.5, "delta": 0.0}
    assert list(answer["rows"][0]) == ["n", "n_lower", "n_upper"]
    assert document("explain", ACS, *BUDGET, QUERY)["format"] == "sfumato.explanation"
    for name in ("show", "verify", "head", "key", "accounts"):
        assert document("ledger", name, "acs.ledger")["format"].startswith("sfumato.ledger")
    assert document("ledger", "release", "acs.ledger", 1)["rows"] == answer["rows"]
    assert (
        document("ledger", "grant", "acs.ledger", "ada", "--epsilon", 1, "--delta", "1e-8")["analyst"]
        == "ada"
    )
    roles = document("members", "roles", "acs.ledger", "eve", "curator", "reviewer")
    assert roles["roles"] == ["curator", "reviewer"]
    key = document("review", "keygen", "eve.pem")["public_key"]
    assert document("members", "key", "acs.ledger", "eve", key, "--by", "eve")["public_key"] == key
    assert len(document("members", "list", "acs.ledger")["members"]) == 1
    assert document("review", "request", "acs.ledger", 1, "--by", "eve")["state"] == "requested"
    assert len(document("review", "list", "acs.ledger")["reviews"]) == 1
    assert document("report", "acs.ledger", 1, "--output", "page.html")["pages"][0]["path"] == "page.html"


def test_of_what_needs_no_table(here: Path) -> None:
    assert document("epsilon", "--gaussian", 1, "--delta", "1e-6")["format"] == "sfumato.epsilon"
    assert document("calibrate", "--epsilon", 1, "--delta", "1e-6")["delta"] == 1e-6
    public = {role: document("shuffle", "keygen", role, f"{role}.key") for role in ("analyst", "shuffler")}
    keys = [word for role, facts in public.items() for word in (f"--{role}", facts["public_key"])]
    mixed = ("--batch-size", 100, *keys, "--epsilon", 1, "--output")
    made = document("shuffle", "collection", "randomized-response", "--range", 3, *mixed, "c.json")
    assert (made["delta"], made["clients"]) == (1e-6, 100)
    sparse = document("shuffle", "sparse", "collection", "--encryption-key", "device.key", *mixed, "s.json")
    assert sparse["threshold"] > 1
    part = document("dap", "keygen", "collector", "c.secret")
    (here / "c.part").write_text(json.dumps(part))
    sums = ("--min-batch-size", 9, "--epsilon", 1, "--collector", "c.part")
    task = document("dap", "task", "Prio3Count", "task", *sums)
    assert (task["folder"], task["epsilon"]) == ("task", 1.0)
    mine = document("dap", "join", "task/task.json", "c.secret", "--output", "mine.json")
    assert (mine["role"], mine["task"], mine["agreement"]) == ("collector", task["task"], None)


def test_of_people_who_answer_for_themselves(here: Path) -> None:
    (here / "people.csv").write_text("said,age,sex\n" + "yes,31,f\nno,47,m\n" * 60)
    plan = ("frequencies", "--epsilon", 2, "--people", 120, "--domain", "yes,no", "--output", "p.json")
    planned = document("local", "plan", *plan)
    assert planned["protocol"]["bytes"] == planned["plans"][0]["bytes"]
    written = ("randomized-response", "--epsilon", 2, "--domain", "yes,no", "--output", "p.json")
    assert document("local", "protocol", *written)["epsilon"] == 2.0
    drawn = ("p.json", "people.csv", "--column", "said", "--output", "r.parquet")
    assert document("local", "randomize", *drawn)["reports"] == 120
    assert document("local", "aggregate", "p.json", "r.parquet", "--output", "counts")["reports"] == 120
    assert document("local", "estimate", "p.json", "counts")["reports"] == 120
    caps = ("--lifetime", 4, "--daily", 2, "--max-epsilon", 1)
    assert document("local", "budget", "device", *caps)["today"] == 2.0
    assert document("survey", "analyse", "people.csv", *ANSWERS)["respondents"] == 120
    assert "respondents" in document("survey", "report", "people.csv", *ANSWERS, "--question", "Q?")["text"]
    sheet = document("survey", "design", "two-coins", "--question", "Q?", "--output", "sheet.html")
    assert sheet["output"] == "sheet.html"
    known = ("people.csv", "--quasi-identifier", "age=intervals:20", "-q", "sex")
    assert document("anonymity", "check", *known)["format"] == "sfumato.anonymity-report"
    assert document("anonymity", "generalize", *known, "-o", "out.csv")["rows"] == 120
    (here / "d.toml").write_text("[sex]\nvalues = ['f', 'm']\n")
    made = document("synth", "people.csv", "--domain", "d.toml", "--order", 1, "-o", "o.csv", "--epsilon", 1)
    assert (made["output"], made["guarantee"]["epsilon"], made["receipts"][0]["sequence"]) == (
        "o.csv",
        1.0,
        1,
    )


def test_of_an_audit() -> None:
    pair = ("--pair", "[[1, 1], [1]]", "--trials", 1000)
    result = ran("audit", "builtins:len", "--epsilon", 1, *pair, "--json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["violated"] is True


def failure(*words: object) -> tuple[Any, dict[str, Any]]:
    result = ran(*words)
    assert result.stdout == ""
    return result, json.loads(result.stderr.splitlines()[-1])


def test_an_error_is_an_object_on_standard_error(here: Path) -> None:
    dear = QUERY.replace("0.5", "9")
    for words, kind, code in (
        (("sql", ACS, *BUDGET, dear, "--json"), "BudgetExceeded", 3),
        (("sql", ACS, *BUDGET, dear, "--format", "json"), "BudgetExceeded", 3),
        (("ledger", "show", "none.ledger", "--json"), "LedgerUnavailable", 1),
        (("epsilon", "--json"), "ParameterError", 2),
        (("epsilon", "--gaussin", 1, "--json"), "UsageError", 2),
        (("ledgr", "show", "--json"), "UsageError", 2),
        (("--shout", "--json"), "UsageError", 2),
        (("ledger", "show", "--json"), "UsageError", 2),
    ):
        result, found = failure(*words)
        assert (found["format"], found["version"]) == ("sfumato.error", 1)
        assert (found["error"], found["exit_code"], result.exit_code) == (kind, code, code), words
        assert found["message"]
    assert ran("epsilon", "--gaussin", 1).stderr.startswith("Usage: ")
    assert ran("ledger", "show", "none.ledger").stderr.startswith("sfumato: ")
