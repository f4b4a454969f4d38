"""Where answers go: never over rows or ledgers, whole or not at all, and what is said if that fails."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.ledger import Ledger
from tests.cases import cases
from tests.forks import COMMAND, Forks

COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
UNIT = ("--privacy-unit", "id", "--epsilon", "2")


def ask(folder: Path, output: str, *more: str, source: str = "people.parquet", ledger: str = "l") -> Any:
    named = ("sql", source, *UNIT, "--ledger", ledger, "--format", "csv", "--output", output, *more, COUNT)
    before = Path.cwd()
    os.chdir(folder)
    try:
        return CliRunner().invoke(app, named)
    finally:
        os.chdir(before)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def first_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("writing")
    rows = pa.table({"id": range(100), "g": ["a", "b"] * 50})
    (folder / "parts").mkdir()
    for name in ("people.parquet", "list.parquet", "visits.parquet", "parts/a.parquet"):
        pq.write_table(rows, folder / name)
    with duckdb.connect(str(folder / "other.duckdb")) as connection:
        connection.execute("CREATE TABLE data (id INTEGER)")
    assert ask(folder, "first.csv").exit_code == 0
    return folder


@pytest.fixture
def folder(first_folder: Path, tmp_path: Path) -> Path:
    """Tables, a ledger and its answer, and other names for them, of each test its own."""
    shutil.copytree(first_folder, tmp_path, dirs_exist_ok=True)
    shutil.copy(tmp_path / "l", tmp_path / "copy of ledger")
    (tmp_path / "link").symlink_to("l")
    (tmp_path / "away").symlink_to(tmp_path / "l-journal")
    os.link(tmp_path / "people.parquet", tmp_path / "hard")
    return tmp_path


@cases(
    ("output", "more"),
    [
        ("l", ()), ("./parts/../l", ()), ("link", ()), ("copy of ledger", ()), ("other.duckdb", ()),
        ("l-journal", ()), ("l-wal", ()), ("l-shm", ()), ("away", ()),
        ("people.parquet", ()), ("hard", ()), ("people.parquet.wal", ()),
        ("visits.parquet", ("--table", "visits=visits.parquet")),
        ("list.parquet", ("--public", "list=list.parquet")),
        ("parts/b.parquet", ("--public", "list=parts")),
        ("parts/a.parquet", ("--public", "list=parts")),
        ("parts/other.parquet", ("--public", "list=parts/*.parquet")),
    ],
)  # fmt: skip
def test_an_answer_never_goes_over_rows_or_ledgers(folder: Path, output: str, more: tuple[str, ...]) -> None:
    before = contents(folder)
    result = ask(folder, output, *more)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("sfumato: output must not be")
    assert contents(folder) == before


def test_a_ledger_that_is_not_there_yet_is_not_made_under_the_answer(folder: Path) -> None:
    for output in ("new", "NEW", "new-wal"):
        assert ask(folder, output, ledger="new").exit_code == 2
        assert not (folder / "new").exists()


def test_an_answer_replaces_an_older_answer_behind_its_link(folder: Path) -> None:
    (folder / "linked.csv").symlink_to("first.csv")
    (folder / "first.csv").chmod(0o640)
    (folder / "first.csv").write_text("old")
    assert ask(folder, "linked.csv").exit_code == 0
    assert (folder / "linked.csv").is_symlink()
    assert (folder / "first.csv").read_text().startswith('"n","n_lower"')
    assert (folder / "first.csv").stat().st_mode & 0o777 == 0o640


def test_an_output_that_is_no_plain_file_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert "plain file" in ask(folder, "pipe").stderr


def test_a_write_that_fails_leaves_the_old_file_and_says_what_became_of_the_charge(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(folder)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = ask(folder, "first.csv", "--no-intervals")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "no space left on device" in line
    assert "costs nothing" in line
    assert contents(folder) == before


FULL = Path("/dev/full")
GONE = "import os\nreading, writing = os.pipe()\nos.close(reading)\nos.dup2(writing, 1)\n"
"""A standard output that nobody reads."""


def _told(
    forks: Forks, folder: Path, *words: str, code: str = COMMAND, stdout: Path | None = None
) -> tuple[list[str], int]:
    """Return what a command says, and its exit code."""
    done = forks.start(code, "sfumato", *words, folder=folder, stdout=stdout).ended()
    return done.stderr.splitlines(), done.returncode


def _asked(query: str, *more: str) -> tuple[str, ...]:
    return ("sql", "people.parquet", *UNIT, *more, query)


@pytest.mark.parametrize("style", ["table", "csv"])
def test_standard_output_that_fails_is_an_error_in_words(
    command_forks: Forks, folder: Path, style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not FULL.exists():
        pytest.skip("this system has no /dev/full")
    query = COUNT.replace("0.5", "0.25")
    asked = _asked(query, "--ledger", "l", "--format", style)
    (line,), status = _told(command_forks, folder, *asked, stdout=FULL)
    assert status == 1
    assert line.startswith("sfumato: standard output must take what is printed, got ")
    assert line.endswith("is charged and stored: asking again with this --ledger shows it and costs nothing")
    with Ledger.read(folder / "l") as ledger:
        assert [entry.committed for entry in ledger.entries()] == [True, True]
    monkeypatch.chdir(folder)
    again = CliRunner().invoke(
        app, ["sql", "people.parquet", *UNIT, "--ledger", "l", "--format", style, query]
    )
    assert "cost nothing" in again.stderr


def test_a_reader_that_goes_away_is_no_error(command_forks: Forks, folder: Path) -> None:
    """What it cost is said as ever, and nothing of the pipe."""
    (line,), status = _told(command_forks, folder, *_asked(COUNT, "--ledger", "l"), code=GONE + COMMAND)
    assert (line.partition(":")[0], status) == ("cost nothing", 141)


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_an_answer_that_is_lost_is_told_how_to_be_kept(command_forks: Forks, folder: Path) -> None:
    (lost,), _ = _told(command_forks, folder, *_asked(COUNT), stdout=FULL)
    assert "pass --ledger" in lost


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@cases("words", ["ledger show l", "--version", "ledger head l", "ledger --help"])
def test_commands_that_spend_nothing_fail_in_words_too(
    command_forks: Forks, folder: Path, words: str
) -> None:
    (line,), status = _told(command_forks, folder, *words.split(), stdout=FULL)
    assert status == 1
    assert line.startswith("sfumato: standard output must")


@pytest.mark.parametrize("style", ["table", "csv", "json", "parquet"])
def test_arrays_are_written_in_every_format(folder: Path, style: str) -> None:
    bounds = "contribution_bounds_per_row => (0, 200)"
    query = COUNT.replace("COUNT(*) AS n", f"APPROX_QUANTILES(id, 2, {bounds}) AS q")
    target = folder / f"arrays.{style}"
    named = ("sql", str(folder / "people.parquet"), *UNIT, "--format", style, "--output", str(target), query)
    assert CliRunner().invoke(app, named).exit_code == 0
    if style == "parquet":
        (values,) = pq.read_table(target)["q"].to_pylist()
    elif style == "json":
        (values,) = (row["q"] for row in json.loads(target.read_text())["rows"])
    elif style == "csv":
        head, (first, *_) = csv.reader(target.read_text().splitlines())
        assert head == ["q", "q_lower", "q_upper"]
        values = json.loads(first)
    else:
        assert "q" in target.read_text()
        return
    assert len(values) == 3
    assert 0 <= values[0] <= values[1] <= values[2] <= 200
