"""The commands: what they print, where, and with which exit code."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

import sfumato
from sfumato.cli.commands import app
from sfumato.cli.data import ACS
from sfumato.cli.process.groups import LazyGroup
from sfumato.cli.process.outlines import OUTLINES
from tests.cases import cases
from tests.forks import COMMAND, Forks

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
STATES = """
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-8, max_groups_contributed=1)
  state, COUNT(*) AS n, AVG(income, contribution_bounds_per_group => (0, 200000)) AS income
FROM data GROUP BY state"""
BUDGET = ("--privacy-unit", "person_id", "--epsilon", "2", "--delta", "1e-7")
BOUNDS = ["n_lower", "n_upper", "income_lower", "income_upper"]


def run(*arguments: object, stdin: str | None = None) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def answered(*arguments: object, stdin: str | None = None) -> Any:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name in group.commands:
        command = group.load(name) if isinstance(group, LazyGroup) else group.commands[name]
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


@pytest.fixture(scope="module")
def first_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("acs") / "acs.ledger"
    answered("sql", ACS, *BUDGET, "--ledger", path, COUNT)
    return path


@pytest.fixture
def ledger(first_ledger: Path, tmp_path: Path) -> Path:
    """A ledger with one answer, of each test its own."""
    return Path(shutil.copy(first_ledger, tmp_path / "acs.ledger"))


PROSE = {"demo", "completion", "console demo", "console serve", "local serve", "shuffle serve", "dap serve"}
"""A story, a script, and services, which write logs (``--json-log``)."""


def test_every_command_and_option_is_in_the_docs() -> None:
    page = DOCS.read_text(encoding="utf-8")
    found = dict(commands(get_command(app)))
    assert set(found) == {
        "sql",
        "explain",
        "local plan",
        "local protocol",
        "local randomize",
        "local serve",
        "local aggregate",
        "local budget",
        "local estimate",
        "epsilon",
        "calibrate",
        "audit",
        "check-model",
        "train",
        "predict",
        "evaluate",
        "ledger show",
        "ledger release",
        "ledger verify",
        "ledger head",
        "ledger key",
        "ledger export",
        "ledger accounts",
        "ledger grant",
        "members list",
        "members roles",
        "members key",
        "members decline",
        "console demo",
        "console serve",
        "console token create",
        "console token list",
        "console token revoke",
        "report",
        "review keygen",
        "review list",
        "review request",
        "review approve",
        "review return",
        "review sign",
        "review publish",
        "review withdraw",
        "shuffle keygen",
        "shuffle collection",
        "shuffle serve",
        "shuffle submit",
        "shuffle open",
        "shuffle sparse collection",
        "shuffle sparse open",
        "shuffle sparse submit",
        "dap keygen",
        "dap join",
        "dap task",
        "dap serve",
        "dap upload",
        "dap collect",
        "survey design",
        "survey analyse",
        "survey report",
        "survey score",
        "anonymity check",
        "anonymity generalize",
        "completion",
        "init",
        "demo",
        "synth",
    }
    for name, command in found.items():
        assert f"sfumato {name}" in page
        for option in (
            o for p in command.params for o in p.opts if o.startswith("-") and o not in {"--help", "-h"}
        ):
            assert option in page, f"{name} {option}"
    facts = {name for name, command in found.items() if any("--json" in each.opts for each in command.params)}
    assert set(found) - facts == PROSE


def test_the_help_of_a_group_is_what_its_commands_say_themselves() -> None:
    """Of an outline, as of the group; and every group has an outline."""
    group = get_command(app)
    assert isinstance(group, LazyGroup)
    groups = set()
    for name in group.homes:
        command = group.load(name)
        if hasattr(command, "commands"):
            groups.add(name)
            own = typer.Context(command, info_name=f"sfumato {name}", help_option_names=["-h", "--help"])
            with own.scope(), redirect_stdout(io.StringIO()) as said:
                command.format_help(own, own.make_formatter())
            shown = CliRunner().invoke(app, [name, "--help"])
            assert shown.exit_code == 0
            assert "Commands" in shown.stdout
            assert words_of(shown.stdout) == words_of(said.getvalue()), name
            assert CliRunner().invoke(app, [name]).exit_code == 2
    assert groups == set(OUTLINES)


def words_of(text: str) -> list[str]:
    """Return the words of a page, without frames."""
    return re.findall(r"[^\s\u2500-\u257f]+", text)


@cases("name", ["sql", "explain", "ledger show", "ledger verify", "ledger grant", "demo"])
def test_every_command_has_help(name: str) -> None:
    assert "Usage" in answered(*name.split(), "--help").output


def test_the_version() -> None:
    assert answered("--version").stdout == f"sfumato {sfumato.__version__}\n"


def test_a_table_has_the_intervals_and_the_cost_goes_to_stderr() -> None:
    result = answered("sql", ACS, *BUDGET, STATES)
    assert "Iowa" in result.stdout
    assert result.stdout.count("95 % interval") == 2
    (line,) = result.stderr.splitlines()
    assert "cost (0.5, 1e-08)-DP; left (1.5, 4e-08)-DP" in line
    assert "left (" in line
    assert "no --ledger" in line


def test_what_the_limits_cut_off_goes_to_stderr(tmp_path: Path) -> None:
    path = tmp_path / "acs.ledger"
    text = STATES.replace("epsilon=0.5", "epsilon=0.5, truncation_epsilon=0.2")
    first = answered("sql", ACS, *BUDGET, "--ledger", path, text).stderr.splitlines()
    assert [re.sub(r"[\d.]+", "x", line) for line in first[:-1]] == [
        "cut off: x % [x, x] of units lose a group",
        "cut off: x % [x, x] of units' groups are dropped",
        "cut off: x % [x, x] of rows are dropped",
        "cut off: x % [x, x] of values are clamped for income",
    ]
    again = answered("ledger", "release", path, "1").stderr.splitlines()
    assert again[:-1] == first[:-1]
    larger = f"SELECT state, n FROM ({text}) UNION ALL SELECT state, n FROM ({STATES})"
    several = answered("sql", ACS, *BUDGET, "--ledger", path, larger).stderr.splitlines()
    assert several[0] == first[0].replace("cut off", "cut off in private SELECT 1")
    assert len(several) == len(first)


def test_csv_and_json_hold_the_same_columns() -> None:
    text = answered("sql", ACS, *BUDGET, "--format", "csv", STATES).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    records = json.loads(answered("sql", ACS, *BUDGET, "--format", "json", STATES).stdout)["rows"]
    assert list(rows[0]) == list(records[0]) == ["state", "n", *BOUNDS[:2], "income", *BOUNDS[2:]]
    assert len(rows) == len(records) == 16


def test_parquet_goes_to_a_file_without_intervals(tmp_path: Path) -> None:
    out = tmp_path / "answer.parquet"
    result = answered("sql", ACS, *BUDGET, "--format", "parquet", "--output", out, "--no-intervals", STATES)
    assert result.stdout == ""
    assert pq.read_table(out).column_names == ["state", "n", "income"]


def test_a_table_goes_to_a_file(tmp_path: Path) -> None:
    out = tmp_path / "answer.txt"
    answered("sql", ACS, *BUDGET, "--output", out, STATES)
    assert "Iowa" in out.read_text(encoding="utf-8")


def test_the_query_is_read_from_standard_input() -> None:
    result = answered("sql", ACS, *BUDGET, "--format", "json", "-", stdin=COUNT)
    assert list(json.loads(result.stdout)["rows"][0]) == ["n", "n_lower", "n_upper"]


def test_each_row_may_be_a_unit() -> None:
    text = answered("sql", ACS, "--privacy-unit", "ROW", "--epsilon", "1", "--format", "csv", COUNT).stdout
    assert text.count("\n") == 2


def test_several_columns_are_one_unit(tmp_path: Path) -> None:
    source, ledger = tmp_path / "visits.parquet", tmp_path / "visits.ledger"
    pq.write_table(pa.table({"user": [1, 1, 2, 3], "device": ["a", "b", "b", "c"]}), source)
    unit = ("--privacy-unit", "user", "--privacy-unit", "device")
    rest = ("--epsilon", "1000", "--ledger", ledger, "--format", "json")
    query = COUNT.replace("epsilon=0.5", "epsilon=900")
    (row,) = json.loads(answered("sql", source, *unit, *rest, query).stdout)["rows"]
    assert row["n"] == 2, "users 1 and 2 share a device"
    assert 'connected component of "user" and "device"' in answered("ledger", "show", ledger).stdout


def test_a_named_source_is_queried_by_its_name() -> None:
    answered("sql", f"people={ACS}", *BUDGET, COUNT.replace("FROM data", "FROM people"))


def test_the_same_query_is_answered_again_for_nothing(ledger: Path) -> None:
    again = [answered("sql", ACS, *BUDGET, "--ledger", ledger, COUNT) for _ in range(2)]
    assert again[0].stdout == again[1].stdout
    assert "cost nothing" in again[1].stderr


def test_explaining_spends_nothing(ledger: Path) -> None:
    before = answered("ledger", "head", ledger).stdout
    assert answered("explain", ACS, *BUDGET, "--ledger", ledger, STATES).stdout.strip()
    assert answered("ledger", "head", ledger).stdout == before


def test_a_query_over_budget_exits_with_3_and_charges_nothing(ledger: Path) -> None:
    before = answered("ledger", "head", ledger).stdout
    result = run("sql", ACS, *BUDGET, "--ledger", ledger, COUNT.replace("0.5", "1.9"))
    assert result.exit_code == 3
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert "nothing was charged" in line
    assert answered("ledger", "head", ledger).stdout == before


@cases(
    ("arguments", "part"),
    [
        (("sql", ACS, *BUDGET, "SELECT FROM WHERE"), "line 1, column"),
        (("sql", ACS, *BUDGET, "SELECT * FROM data"), "would show raw rows"),
        (("sql", ACS, *BUDGET, COUNT.replace("data", "elsewhere")), "elsewhere"),
        (("sql", "missing.parquet", *BUDGET, COUNT), "missing.parquet"),
        (("sql", ACS, "--privacy-unit", "nobody", "--epsilon", "1", COUNT), "nobody"),
        (("sql", ACS, "--privacy-unit", "person_id", "--epsilon", "-1", COUNT), "epsilon"),
        (
            ("sql", ACS, "--privacy-unit", "id", COUNT),
            "--epsilon, --rho and --mu, but it is given by none of them",
        ),
        (
            ("sql", ACS, *BUDGET, "--rho", "1", COUNT),
            "but it is given by --epsilon and --rho; write --epsilon 1",
        ),
        (("sql", ACS, "--privacy-unit", "nobody", "--epsilon", "1", COUNT), "or pass ROW where"),
        (("sql", ACS, *BUDGET, "--table", "visits", COUNT), "NAME=PATH"),
        (("sql", ACS, *BUDGET, "--public", "=list.csv", COUNT), "NAME=PATH"),
        (("sql", ACS, *BUDGET, "--output", "no/such/folder/file.csv", COUNT), "output"),
        (("explain", ACS, *BUDGET, "SELECT * FROM data"), "would show raw rows"),
        (("ledger", "show", "missing.ledger"), "missing.ledger"),
    ],
)
def test_errors_are_one_line_and_exit_with_1(arguments: tuple[object, ...], part: str) -> None:
    result = run(*arguments)
    assert result.exit_code in {1, 2}
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("sfumato: ")
    assert part in line


def test_a_wrong_command_line_exits_with_2() -> None:
    assert run("sql").exit_code == 2
    assert run("sql", ACS, *BUDGET, "--format", "xml", COUNT).exit_code == 2


def test_release_shows_what_was_stored(ledger: Path, tmp_path: Path) -> None:
    shown = answered("ledger", "release", ledger, "1", "--format", "csv")
    assert "n_lower" in shown.stdout
    assert shown.stderr.startswith("receipt 1 of ledger")
    assert "n_lower" not in answered("ledger", "release", ledger, "1", "--no-intervals").stdout
    missing = run("ledger", "release", ledger, "9")
    assert missing.exit_code == 2
    assert "charge with a stored release" in missing.stderr
    over = run("ledger", "release", ledger, "1", "--output", ledger)
    assert over.exit_code == 2
    assert "ledger" in over.stderr


def test_show_has_budget_unit_rest_and_charges(ledger: Path) -> None:
    shown = answered("ledger", "show", ledger, "--delta", "1e-8").stdout
    assert re.search(r"^budget +\(2, 1e-07\)-DP$", shown, re.MULTILINE)
    assert re.search(r"^privacy unit +person_id$", shown, re.MULTILINE)
    assert re.search(r"^left +\(1\.", shown, re.MULTILINE)
    assert "epsilon=0.5" in shown or "COUNT(*)" in shown
    assert "yes" in shown


def test_nothing_that_is_shown_steers_the_terminal(tmp_path: Path) -> None:
    source, ledger = tmp_path / "people.parquet", tmp_path / "people.ledger"
    pq.write_table(
        pa.table({"id": range(900), "a\x1b[2J": ["\x1b[31mred", "\u202egreen", "two\nlines"] * 300}), source
    )
    query = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=9, delta=1e-9, max_groups_contributed=1)
        `a\x1b[2J`, COUNT(*) AS n FROM data GROUP BY 1 -- \x1b[31m"""
    unit = ("--privacy-unit", "id", "--epsilon", "20", "--delta", "1e-6", "--ledger", ledger)
    for text in (answered("sql", source, *unit, query).stdout, answered("ledger", "show", ledger).stdout):
        assert all(character.isprintable() or character == "\n" for character in text)
        assert "\\x1b[" in text


def test_verify_continues_an_exported_head(ledger: Path, tmp_path: Path) -> None:
    head = tmp_path / "head.json"
    head.write_text(answered("ledger", "head", ledger).stdout, encoding="utf-8")
    old = tmp_path / "old.ledger"
    assert "1 charge," in answered("ledger", "verify", ledger, "--head", head).stdout
    shutil.copy(ledger, old)
    answered("sql", ACS, *BUDGET, "--ledger", ledger, COUNT + " WHERE age >= 18")
    head.write_text(answered("ledger", "head", ledger).stdout, encoding="utf-8")
    assert run("ledger", "verify", old, "--head", head).exit_code == 1
    answered("ledger", "verify", old)


def test_verify_refuses_damage_and_what_is_no_head(ledger: Path, tmp_path: Path) -> None:
    assert run("ledger", "verify", ledger, "--head", tmp_path / "none").exit_code == 2
    torn = tmp_path / "torn.ledger"
    torn.write_bytes(ledger.read_bytes()[:5000])
    assert run("ledger", "verify", torn).exit_code == 1


def test_the_installed_command_answers() -> None:
    command = Path(sys.executable).with_name("sfumato")
    asked = [str(command), "sql", str(ACS), *BUDGET, "--format", "csv", COUNT]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('"n","n_lower","n_upper"\n')


def test_the_command_refuses(command_forks: Forks) -> None:
    query = COUNT.replace("0.5", "3")
    refused = command_forks.start(COMMAND, "sfumato", "sql", str(ACS), *BUDGET, query).ended()
    assert refused.returncode == 3
    assert "Traceback" not in refused.stderr


def test_analysts_are_granted_budgets_and_ask_within_them(ledger: Path) -> None:
    assert "no accounts" in answered("ledger", "accounts", ledger).stdout
    told = answered("ledger", "grant", ledger, "ada", "--epsilon", "0.75", "--delta", "1e-7").stdout
    assert told == "ada: (0.75, 1e-07)-DP\n"
    asked = answered("sql", ACS, *BUDGET, "--ledger", ledger, "--analyst", "ada", COUNT)
    assert "left (0.25," in asked.stderr
    refused = run("sql", ACS, *BUDGET, "--ledger", ledger, "--analyst", "ada", COUNT + " WHERE age > 2")
    assert refused.exit_code == 3
    assert "of analyst 'ada'" in refused.stderr
    assert run("sql", ACS, *BUDGET, "--ledger", ledger, "--analyst", "eve", COUNT).exit_code == 1
    nobody = run("sql", ACS, *BUDGET, "--ledger", ledger, "--analyst", "", COUNT)
    assert nobody.exit_code == 2, "a name that was lost on the way is not the curator's"
    assert "analyst must be a printable name" in nobody.stderr
    assert run("ledger", "show", ledger, "--analyst", "").exit_code == 2
    hers = answered("ledger", "show", ledger, "--analyst", "ada").stdout
    assert hers.count(" ada") >= 2
    assert "left          (0.25," in hers
    assert "1" in answered("ledger", "accounts", ledger).stdout.split("ada")[1]
    answered("ledger", "grant", ledger, "ada", "--close")
    assert "closed" in answered("ledger", "accounts", ledger).stdout


@pytest.mark.parametrize(
    "options", [(), ("--epsilon", "1", "--close"), ("--epsilon", "1", "--rho", "1"), ("--rho", "1")]
)
def test_a_grant_states_one_budget_of_the_datasets_kind(ledger: Path, options: tuple[str, ...]) -> None:
    assert run("ledger", "grant", ledger, "ada", *options).exit_code == 2
    assert "no accounts" in answered("ledger", "accounts", ledger).stdout


def test_an_export_is_verified_without_the_ledger(ledger: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    answered("ledger", "export", ledger, "--output", first)
    assert answered("ledger", "export", ledger).stdout == first.read_text(encoding="utf-8")
    answered("sql", ACS, *BUDGET, "--ledger", ledger, COUNT + " WHERE age >= 18")
    answered("ledger", "export", ledger, "--output", second)
    key = answered("ledger", "key", ledger).stdout.strip()
    digest = json.loads(second.read_text(encoding="utf-8").splitlines()[2])["digest"]
    ledger.unlink()
    known = ("--public-key", key, "--earlier", first, "--receipt", f"1:{digest}")
    told = answered("ledger", "verify", second, *known).stdout
    assert "intact: 7 events, 2 charges, 2 answered charges" in told
    assert f"signed with the key {key}, as expected" in told
    for wrong in (
        (first, "--earlier", second),
        (first, "--public-key", "00"),
        (first, "--receipt", "2:" + "0" * 64),
        (first, "--receipt", "x"),
        (first, "--head", second),
    ):
        assert run("ledger", "verify", *wrong).exit_code in {1, 2}
    first.write_text(first.read_text(encoding="utf-8")[:-300], encoding="utf-8")
    assert run("ledger", "verify", first).exit_code == 1


def test_an_export_is_a_new_file_of_its_kind(ledger: Path, tmp_path: Path) -> None:
    for output in (ledger, tmp_path / "export.txt", tmp_path / "none" / "export.jsonl"):
        before = ledger.read_bytes()
        assert run("ledger", "export", ledger, "--output", output).exit_code == 2
        assert ledger.read_bytes() == before
    taken = tmp_path / "taken.jsonl"
    taken.write_text("mine", encoding="utf-8")
    assert run("ledger", "export", ledger, "--output", taken).exit_code == 2
    assert taken.read_text(encoding="utf-8") == "mine"
    assert run("ledger", "verify", ledger, "--public-key", "00").exit_code == 2


def test_a_policy_names_unit_budget_and_limits(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    fields = {"privacy_unit_column": "person_id", "max_epsilon_per_query": 0.5, "epsilon_budget": 2.0}
    policy.write_text(json.dumps(fields | {"delta_per_query": 1e-8, "delta_budget": 1e-7}), encoding="utf-8")
    assert (
        "cost (0.5, 0)-DP; left (1.5, 5e-08)-DP"
        in answered("sql", ACS, "--policy", policy, COUNT.replace(", delta=0", "")).stderr
    )
    refused = run("sql", ACS, "--policy", policy, COUNT.replace("0.5", "0.75"))
    assert refused.exit_code == 1
    assert "by the privacy policy" in refused.stderr


def test_a_budget_that_renews_is_shown_with_its_lifetime_sum(tmp_path: Path) -> None:
    source, ledger = tmp_path / "visits.csv", tmp_path / "visits.ledger"
    source.write_text("id,day\n1,2026-01-01\n2,2026-02-01\n", encoding="utf-8")
    words = ("--privacy-unit", "id", "--epsilon", "1", "--ledger", ledger, "--renew", "month:day")
    usual = (source, *words, "--type", "day=DATE")
    query = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
    for month in ("2026-01", "2026-02"):
        answered("sql", *usual, "--period", month, query)
    shown = answered("ledger", "show", ledger, "--period", "2026-01").stdout
    assert "1-DP, for each month of day" in shown
    assert "(id, month of day)" in shown
    assert "lifetime sum  0.99999" in shown or "lifetime sum  1-DP" in shown
    assert "2026-02" in shown
    assert run("sql", *usual, query).exit_code == 2
    refused = run("sql", source, *words, "--period", "2026-01", query)
    assert refused.exit_code == 1
    assert "pass --type day=DATE" in refused.stderr


def test_parameters_and_larger_sql(tmp_path: Path) -> None:
    counts = STATES.replace("epsilon=0.5", "epsilon=@eps").replace(
        "FROM data", "FROM data WHERE state IN UNNEST(@states)"
    )
    text = f"SELECT state, n, n / SUM(n) OVER () AS share FROM ({counts}) ORDER BY n DESC"
    params = ("--param", "eps=0.5", "--param", 'states=["CA", "NY", "Iowa"]')
    budget = (*BUDGET, "--ledger", tmp_path / "l")
    first = answered("sql", ACS, *budget, *params, "--format", "json", text)
    records = json.loads(first.stdout)["rows"]
    assert sum(record["share"] for record in records) == pytest.approx(1)
    assert list(records[0]) == ["state", "n", "n_lower", "n_upper", "share", "share_lower", "share_upper"]
    assert "cost (0.5, 1e-08)-DP; left (1.5, 4e-08)-DP" in first.stderr
    assert "cost nothing" in answered("sql", ACS, *budget, *params, text).stderr
    assert "Around them: SQL over the answers" in answered("explain", ACS, *budget, *params, text).stdout
    for wrong, phrase in (
        ("eps", "param must be NAME=VALUE"),
        ("other=1", "params must be named in the query"),
    ):
        refused = run("sql", ACS, *budget, *params, "--param", wrong, text)
        assert refused.exit_code in {1, 2}
        assert phrase in refused.stderr
