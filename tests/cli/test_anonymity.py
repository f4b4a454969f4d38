"""``sfumato anonymity`` on small files: what it prints, and what it refuses in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli.anonymity import hierarchies_of
from sfumato.cli.commands import app
from sfumato.errors import ParameterError


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["anonymity", "check", *map(str, arguments)])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("age;sex;job\n31;F;cook\n34;F;nurse\n52;M;cook\n58;M;cook\n")
    (tmp_path / "sex.csv").write_text("F;*\nM;*\n")
    return path


def test_the_report_is_printed(table: Path) -> None:
    sex = f"sex={table.with_name('sex.csv')}"
    found = run(table, "-q", "age=intervals:10", "-q", sex, "-s", "job", "--level", "age=1")
    assert found.exit_code == 0, found.output
    lines = [" ".join(line.split()) for line in found.stdout.splitlines()]
    assert lines[0].startswith("FOR THE CURATOR ONLY")
    assert {"rows, classes 4, 2", "k-anonymity 2", "job: distinct l-diversity 1"} <= set(lines)


def test_json_is_one_object(table: Path) -> None:
    everyone = table.with_name("everyone.parquet")
    pq.write_table(pa.table({"age": [31, 34, 52, 58, 31], "sex": list("FFMMF")}), everyone)
    found = run(table, "-q", "age", "-q", "sex", "--population", everyone, "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert (document["k"], document["k_map"]) == (1, 1)
    assert document["risk"]["journalist"]["average"] == pytest.approx((0.5 + 3) / 4)


def test_wrong_input_is_one_line(table: Path) -> None:
    (table.with_name("short.csv")).write_text("F;*\n")
    short = f"sex={table.with_name('short.csv')}"
    for arguments, message in (
        ((table, "-q", "agee"), "name columns of the frame, got 'agee'; did you mean 'age'?"),
        ((table, "-q", short), "the hierarchy of 'sex' must cover every value, got 'M'"),
        ((table, "-q", "age", "-q", "age"), "--quasi-identifier must name each column once, got 'age'"),
        ((table, "-q", "age="), "--quasi-identifier must be COLUMN or COLUMN=HIERARCHY, got 'age='"),
        ((table, "-q", "age=intervals:x"), "--quasi-identifier must have numbers after the colon"),
        ((table, "-q", "age=intervals:5,8"), "widths must each be a multiple of the one before"),
        ((table, "-q", "age", "--level", "age"), "--level must be COLUMN=LEVEL, got 'age'"),
        ((table, "-q", "age", "--level", "age=x"), "--level must end in a number, got 'x'"),
        ((table, "-q", "age", "--population-size", 3), "population_size must be an integer of at least 4"),
        ((table, "-q", "age=none.csv"), "the hierarchy of 'age' must be a text file that can be read"),
    ):
        found = run(*arguments)
        assert found.exit_code == 2
        assert found.stdout == ""
        (line,) = found.stderr.splitlines()
        assert message in line
    assert run(table.with_name("none.csv"), "-q", "age").exit_code == 1


def test_builders_are_named_with_their_parameters() -> None:
    given = ["zip=prefixes", "code=prefixes:3,2", "day=dates", "born=dates:year"]
    found = hierarchies_of("--sensitive", given)
    assert [found[name].lengths for name in ("zip", "code")] == [None, (3, 2)]
    assert found["day"].units == ("month", "quarter", "year", "decade")
    assert found["born"].units == ("year",)
    with pytest.raises(ParameterError, match="widths must have at least one width"):
        hierarchies_of("--sensitive", ["age=intervals"])


def generalized(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["anonymity", "generalize", *map(str, arguments)])


def test_the_released_table_is_written(table: Path) -> None:
    sex, output = f"sex={table.with_name('sex.csv')}", table.with_name("out.parquet")
    found = generalized(table, "-q", "age=intervals:10", "-q", sex, "-s", "job", "-k", 2, "-o", output)
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[0].startswith("FOR THE CURATOR ONLY")
    assert lines[1:3] == ["age: level 1 of 2", "sex: level 0 of 1"]
    assert "2 classes; 0 of 4 rows suppressed" in lines
    assert pq.read_table(output).column("age").to_pylist() == ["[30, 40)", "[30, 40)", "[50, 60)", "[50, 60)"]


def test_models_and_suppression_as_json(table: Path) -> None:
    options = ("-q", "age=intervals:10", "-q", "sex", "-s", "job", "--json", "-o", table.with_name("out.csv"))
    found = generalized(table, *options, "-k", 2, "--model", "distinct-l:job=2", "--suppression", 0.5)
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert (document["levels"], document["suppressed"], document["rows"]) == ({"age": 1, "sex": 0}, 2, 4)
    assert sum(document["nodes"].values()) == 6
    assert table.with_name("out.csv").read_text().splitlines()[-1] == '"*","*",'
    kinds = {"entropy-l": 1, "alpha": 1, "t": 1, "ordered-t": 1, "hierarchical-t": 1, "beta": 9, "delta": 9}
    for kind, number in kinds.items():
        found = generalized(table, *options, "-k", 1, "--model", f"{kind}:job={number}")
        assert found.exit_code == 0, found.output
        top = {"age": 2, "sex": 1}  # only the whole table has both jobs
        assert (json.loads(found.stdout)["levels"] == top) == (kind == "delta")


def test_wrong_models_are_one_line(table: Path) -> None:
    options = ("-q", "age", "-s", "job", "-o", table.with_name("out.csv"))
    for arguments, message in (
        ((*options, "--model", "l:job=2"), "--model must be KIND:COLUMN=NUMBER, of distinct-l, entropy-l"),
        ((*options, "--model", "t:job=x"), "--model must end in a number, got 'x'"),
        ((*options, "--model", "distinct-l:job=inf"), "--model must end in a number, got 'inf'"),
        ((*options, "-k", 9), "k must be at most the number of rows, got 9"),
        (("-q", "age", "-o", "out.txt"), "--output must end in .parquet or .csv"),
    ):
        found = generalized(table, *arguments)
        assert (found.exit_code, found.stdout) == (2, "")
        assert message in found.stderr
