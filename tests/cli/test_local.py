"""``sfumato local`` from a plan to an estimate, on files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato import local
from sfumato.cli.commands import app
from sfumato.local import device
from tests.cases import cases

COLOURS = ["red"] * 3000 + ["green"] * 1500 + ["blue"] * 500


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["local", *map(str, arguments)])


def done(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def protocol(folder: Path, *words: object) -> None:
    done("protocol", *words, "--output", folder / "p.json")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["id", "colour", "age", "site"])
        for place, colour in enumerate(COLOURS):
            writer.writerow([place, colour, place % 100, f"https://{'ab'[place % 2]}.example"])
        writer.writerow(["", "", "", ""])
    return path


def collected(folder: Path, people: Path, column: str) -> Path:
    """Randomize a column by the protocol that is in the folder, and count."""
    done("randomize", folder / "p.json", people, "--column", column, "--output", folder / "r.parquet")
    done("aggregate", folder / "p.json", folder / "r.parquet", "--output", folder / "counts")
    return folder / "counts"


def shown(folder: Path, counts: Path, *more: object) -> dict[str, Any]:
    return dict(json.loads(done("estimate", folder / "p.json", counts, "--json", *more)))


def test_from_a_plan_to_shares(tmp_path: Path, people: Path) -> None:
    plan = ["frequencies", "--epsilon", 4, "--people", 5000, "--domain", "red,green,blue"]
    said = done("plan", *plan, "--output", tmp_path / "p.json")
    assert "RandomizedResponse: 5 bytes a report; epsilon 4 for each" in said
    counts = collected(tmp_path, people, "colour")
    found = shown(tmp_path, counts)
    assert found["reports"] == 5000
    assert found["epsilon"] == 4.0
    assert found["simulated"] is False
    assert found["fit"]["p_value"] == 1.0
    shares = {row["name"]: row for row in found["estimates"]}
    for name in ("red", "green", "blue"):  # ten standard errors
        assert abs(shares[name]["estimate"] - COLOURS.count(name) / 5000) < 0.04
        assert shares[name]["lower"] < shares[name]["estimate"] < shares[name]["upper"]
    page = tmp_path / "page.html"
    table = done(
        "estimate", tmp_path / "p.json", counts, "--top", 2, "--consistent", "norm-sub",
        "--page", page, "--language", "de",
    )  # fmt: skip
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert 'lang="de"' in page.read_text()
    assert "5.000" in page.read_text(), "the respondents"
    assert "red" in table
    assert "blue" not in table
    assert "5000 reports; epsilon 4 for each" in table


def test_a_budget_pays_for_all_rows_before_any_is_drawn(tmp_path: Path) -> None:
    protocol(tmp_path, "randomized-response", "--epsilon", 0.5, "--domain", "a,b")
    rows, budget, out = tmp_path / "own.csv", tmp_path / "budget", tmp_path / "r.parquet"
    rows.write_text("answer\na\nb\na\n", encoding="utf-8")
    caps = ["--lifetime", 4, "--daily", 2, "--max-epsilon", 1]
    assert done("budget", budget, *caps) == "epsilon 2 left today, 4 in all\n"
    asked = [
        "randomize",
        tmp_path / "p.json",
        rows,
        "--column",
        "answer",
        "--output",
        out,
        "--budget",
        budget,
    ]
    assert "3 reports of 5 bytes" in done(*asked)
    assert done("budget", budget) == "epsilon 0.5 left today, 2.5 in all\n"
    first = out.read_bytes()
    result = run(*asked)
    assert result.exit_code
    assert "report must cost at most the epsilon 0.5 that is left today, got 1.5" in result.stderr
    assert out.read_bytes() == first
    assert done("budget", budget) == "epsilon 0.5 left today, 2.5 in all\n"
    for words, rule in (
        (["budget", tmp_path / "new", "--daily", 1], "--daily must be given with --lifetime, --daily and"),
        (["budget", budget, *caps], "budget must be new"),
        (["budget", tmp_path / "new"], "budget must be a file that can be read"),
    ):
        result = run(*words)
        assert result.exit_code
        assert rule in result.stderr


def test_reports_are_those_of_devices_in_another_order(tmp_path: Path, people: Path) -> None:
    protocol(tmp_path, "randomized-response", "--epsilon", 30, "--range", 5000)
    collected(tmp_path, people, "id")
    written = json.loads((tmp_path / "p.json").read_text())
    randomizer = device.Randomizer.from_specification(written["device"])
    oracle = local.RandomizedResponse(epsilon=30.0, domain=local.Domain(range(5000)))
    assert randomizer == oracle.device
    records = pq.read_table(tmp_path / "r.parquet")["report"].to_pylist()
    assert {len(record) for record in records} == {oracle.device.width}
    order = [int.from_bytes(record[:2], "little") for record in records]  # at epsilon 30 nearly all are true
    assert len(set(order)) > 4900
    assert sum(a == b for a, b in zip(order, range(5000), strict=True)) < 30


def test_counts_merge(tmp_path: Path, people: Path) -> None:
    protocol(tmp_path, "optimal-local-hashing", "--epsilon", 2, "--domain", "red,green,blue")
    first = collected(tmp_path, people, "colour")
    both = tmp_path / "both"
    said = done("aggregate", tmp_path / "p.json", tmp_path / "r.parquet", first, "--output", both)
    assert said.startswith("10000 reports counted; refused: 0 by width")
    twice, once = shown(tmp_path, both), shown(tmp_path, first)
    assert twice["estimates"][0]["estimate"] == pytest.approx(once["estimates"][0]["estimate"])
    assert shown(tmp_path, first, first)["reports"] == 10_000
    assert once["simulated"] is False


def test_means_ranges_and_strings(tmp_path: Path, people: Path) -> None:
    protocol(tmp_path, "hybrid-mean", "--epsilon", 4, "--parameter", "bounds=[0,100]")
    (row,) = shown(tmp_path, collected(tmp_path, people, "age"))["estimates"]
    assert row["name"] == "mean"
    assert abs(row["estimate"] - 49.5) < 6  # more than ten standard errors

    done("plan", "ranges", "--epsilon", 4, "--people", 5000, "--range", 100, "--output", tmp_path / "p.json")
    rows = shown(tmp_path, collected(tmp_path, people, "age"))["estimates"]
    assert [row["name"] for row in rows] == list(range(100))
    assert abs(sum(row["estimate"] for row in rows[:50]) - 0.5) < 0.2

    rappor = ["bits=64", "hashes=2", "cohorts=4", "permanent=0.25"]
    protocol(tmp_path, "rappor", *(x for one in rappor for x in ("--parameter", one)))
    counts = collected(tmp_path, people, "site")
    (tmp_path / "sites").write_text("https://a.example\nhttps://c.example\n\nhttps://b.example\n")
    found = shown(tmp_path, counts, "--candidates", tmp_path / "sites")["estimates"]
    shares = {row["name"]: row["estimate"] for row in found}  # now and then, chance shows the third one
    assert shares.keys() - {"https://c.example"} == {"https://a.example", "https://b.example"}
    assert shares.get("https://c.example", 0.0) < min(
        shares["https://a.example"], shares["https://b.example"]
    )
    result = run("estimate", tmp_path / "p.json", counts)
    assert result.exit_code == 2
    assert "--candidates must be given for rappor" in result.stderr


def test_a_share_far_below_0_is_below_detection(tmp_path: Path) -> None:
    oracle = local.OptimizedUnaryEncoding(epsilon=1.0, domain=local.Domain(["a", "b"]))
    protocol(tmp_path, "optimized-unary-encoding", "--epsilon", 1, "--domain", "a,b")
    # No report supports b: less than randomization alone would show.
    totals = oracle.aggregator()
    for record in oracle.randomize_batch(["a"] * 2000, rng=1):
        alone = oracle.aggregator()
        alone.add(record)
        if alone.totals.tolist() == [1, 0]:
            totals.add(record)
    (tmp_path / "counts").write_bytes(totals.to_bytes())
    assert "below detection" in done("estimate", tmp_path / "p.json", tmp_path / "counts")


def test_bad_input_is_one_line(tmp_path: Path, people: Path) -> None:
    written = "protocol {name} --epsilon 1 {more} --output {p}"
    done(*written.format(name="hybrid-mean", more="--parameter bounds=[0,9]", p=tmp_path / "m.json").split())
    done(*written.format(name="randomized-response", more="--domain a,b", p=tmp_path / "p.json").split())
    empty = local.RandomizedResponse(epsilon=1.0, domain=local.Domain(["a", "b"])).aggregator()
    (tmp_path / "none").write_bytes(empty.to_bytes())
    pq.write_table(pa.table({"report": ["text"]}), tmp_path / "text.parquet")
    delta = "--parameter delta=1e-6 --parameter clients=1000 --domain a,b"
    for words, message in (
        ("plan ranges --epsilon 1 --people 9", "--domain must be given, or --range"),
        ("protocol nope --output {x}", "protocol must be the name of a local"),
        (f"protocol shuffled-counts --epsilon 1 {delta} --output {{x}}", "a protocol without a shuffler"),
        ("randomize {people} {people} --column age --output {x}", "must be a protocol's file"),
        ("randomize {p} {people} --column nix --output {x}", "with the column 'nix'"),
        ("randomize {p} {people} --column colour --output {x}", "values must be categories of the domain"),
        ("randomize {m} {people} --column colour --output {x}", "values must be numbers for this protocol"),
        ("aggregate {p} {people} --output {x}", "state must be the bytes of an aggregator"),
        ("aggregate {p} {text} --output {x}", "binary"),
        ("aggregate {p} {no} --output {x}", "must be a file that can be read"),
        ("estimate {p} {none}", "counts must be of at least one report"),
        ("estimate {p} {none} --language de", "language must stand beside --page"),
        ("estimate {p} {none} --page {no}/x", "page must be a file in a folder that exists"),
    ):
        files = {name: tmp_path / name for name in ("x", "no", "none")}
        files |= {"p": tmp_path / "p.json", "m": tmp_path / "m.json", "text": tmp_path / "text.parquet"}
        result = run(*(word.format(people=people, **files) for word in words.split()))
        assert result.exit_code in {1, 2}, result.output
        assert message in result.stderr, result.stderr
        assert not (tmp_path / "x").exists()


@cases(
    ("text", "message"),
    [("[1", "must be a protocol's file"), ('{"format": "x"}', "be a document of the format")],
)
def test_another_file_is_no_protocol(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(text)
    result = run("estimate", tmp_path / "p.json", tmp_path / "p.json")
    assert result.exit_code == 2
    assert message in result.stderr
