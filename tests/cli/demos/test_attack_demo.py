"""The attack demo: what is found shrinks to what is found of others, and what was promised is shown."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.cli.demos import attack_story


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["demo", *arguments])
    return result.exit_code, result.output


def test_four_publications_and_what_an_attack_finds_in_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack_story, "_BLOCKS", 4)
    monkeypatch.setattr(attack_story, "_SOLVE", 1.0)
    code, output = run("--attack")
    assert code == 0, output
    assert [title[0] for title in re.findall(r"^\d\. .*$", output, re.MULTILINE)] == ["1", "2", "3", "4"]
    found = re.findall(r"^ *(in the release|not in it) +([\d,]+) +([\d,]+) +([\d,]+) ", output, re.MULTILINE)
    people, claims, right = ([int(row[place].replace(",", "")) for row in found] for place in (1, 2, 3))
    assert [row[0] for row in found] == ["in the release", "not in it"] * 4
    share = [one / all_ for one, all_ in zip(right, people, strict=True)]
    assert right[0] == claims[0] > 5_000  # whoever is alone among the rows is found for sure
    assert right[2] == claims[2] > 100  # and whoever's class agrees
    assert right[3] < claims[3]
    assert share[4] > 0.7
    assert share[5] < 0.4
    # The noise is real. Some 3 of 80 are found; were 8 expected, 35 would have odds of 1e-11 (Poisson).
    assert right[6] < 35
    assert output.count("No bound") == 3
    assert "the loss allows at most" in " ".join(output.split())


def test_options_that_do_not_go_with_it_are_refused() -> None:
    for arguments, message in (
        (("--attack", "--ledger", "x.ledger"), "--ledger must be left out with --attack"),
        (("--attack", "--local"), "--attack must be left out with --local"),
    ):
        code, output = run(*arguments)
        assert code == 2
        assert message in output
