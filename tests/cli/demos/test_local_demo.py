"""The demo of local privacy: two questions on devices, beside the curator's answers and the truth."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.cli.demos.truth import adults


@pytest.fixture(scope="module")
def output() -> str:
    result = CliRunner().invoke(app, ["demo", "--local"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_industry_stands_beside_the_truth(output: str) -> None:
    industries, _ = adults()
    inside = 0
    for name in sorted(set(industries)):
        start = re.escape(" ".join(name.split()[:1]))
        (line,) = re.findall(rf"^ *{start}.*\u2013.*\u2013.*$", output, re.MULTILINE)
        assert line.split()[-1] == f"{industries.count(name):,}"
        low, high = re.findall(r"([0-9,]+)\u2013([0-9,]+)", line)[0]
        inside += int(low.replace(",", "")) <= industries.count(name) <= int(high.replace(",", ""))
    # Each of 20 misses with probability 0.05: 12 misses or more have odds below 1e-10.
    assert inside > 8


def test_the_price_is_stated_for_counts_and_incomes(output: str) -> None:
    counts, incomes = (float(x) for x in re.findall(r"intervals ([0-9.]+) times as wide", output))
    assert 50 < counts < 400
    assert 20 < incomes < 150
    local, central, true = (
        float(re.findall(rf"^ *{name}.*?  ([0-9,]+)", output, re.MULTILINE)[0].replace(",", ""))
        for name in ("devices", "curator", "true, between 0 and 200,000")
    )
    _, exact = adults()
    assert true == round(float(exact.mean()))
    assert abs(central - true) < 500
    assert abs(local - true) < 10_000  # seven deviations
    assert "Census Bureau and NIST publish" in " ".join(output.split())


def test_a_shuffler_puts_a_million_devices_on_the_truth(output: str) -> None:
    lines = re.findall(r"^  (?!industry)(.{18}) +([0-9.]+) %  (.{23})  (.{23})$", output, re.MULTILINE)
    shares = [float(share) for _, share, _, _ in lines]
    assert len(lines) == 8
    assert shares == sorted(shares, reverse=True)
    assert 25 < shares[0] < 33
    for _, _, alone, mixed in lines:
        assert mixed == f"{'●':^23}"  # a column is 60 standard errors wide
        assert alone.count("●") == 1
        assert len(alone.strip()) > 5
    (errors,) = re.findall(r"Standard errors: ([0-9,]+) people for devices alone, (\d+) through", output)
    assert 1500 < int(errors[0].replace(",", "")) < 2200
    assert 5 < int(errors[1]) < 12


def test_no_line_is_over_80_characters(output: str) -> None:
    assert max(map(len, output.splitlines())) <= 80


def test_every_industry_has_a_line_of_its_own(output: str) -> None:
    industries, _ = adults()
    table, _ = re.findall(r"^ *industry  .*?\n\n", output, re.MULTILINE | re.DOTALL)
    assert len(table.strip().splitlines()) == 2 + len(set(industries))


def test_a_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "demo.ledger"
    result = CliRunner().invoke(app, ["demo", "--local", "--ledger", str(path)])
    assert result.exit_code != 0
    assert not path.exists()
    assert "--ledger must be left out with --local" in str(result.exception) + result.output
