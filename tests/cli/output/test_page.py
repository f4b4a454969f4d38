"""Pages of text: as wide as the terminal, and never wider than lines are read easily."""

from __future__ import annotations

import sys

import pytest

from sfumato.cli.output.page import Page
from sfumato.cli.output.tables import wide_console
from sfumato.cli.process.service_options import say_now


def test_lines_end_at_80_columns_or_where_the_terminal_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for columns, widest in ((200, 80), (40, 40)):
        monkeypatch.setenv("COLUMNS", str(columns))
        Page().say("word " * 60)
        lengths = [len(line) for line in capsys.readouterr().out.splitlines()]
        assert widest - 5 < max(lengths) <= widest


def test_without_a_standard_output_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    Page().say("word")
    wide_console().print("word")
    say_now("word")
