"""What is shown of a run: a bar on a terminal, a line in a notebook, nothing in a pipe."""

from __future__ import annotations

import io
import sys
import types
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import _progress
from sfumato._display import html_block
from sfumato.errors import ParameterError
from sfumato.synthetic import Hierarchy, TableDomain, TopDown, UnitCounts
from sfumato.synthetic.topdown.workers import level_progress

LEVELS = ("all", "state", "town")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def released(**given: Any) -> None:
    places = Hierarchy.from_table(pa.table({"state": [0, 0, 1], "town": [1, 2, 3]}), ["state", "town"])
    mechanism = TopDown(hierarchy=places, domain=TableDomain(sex=["f", "m"]), queries=[("sex",)], rho=1)
    mechanism.release(UnitCounts(np.arange(3), np.zeros(3, np.int64), np.full(3, 9)), rng=1, **given)


def test_a_terminal_has_a_bar_after_a_while_and_a_pipe_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, patience, given, shown in (
        (Terminal(), 0.0, None, True),
        (Terminal(), 1e9, None, False),
        (Terminal(), 0.0, False, False),
        (io.StringIO(), 0.0, None, False),
        (io.StringIO(), 0.0, True, True),
        (None, 0.0, None, False),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(_progress, "_PATIENCE", patience)
        with level_progress.shown_levels(given, LEVELS) as show:
            for step in (("state", 1, 2), ("state", 2, 2)) if show else ():
                show(*step)  # type: ignore[misc]
        assert bool(stream is not None and stream.getvalue()) == shown
        if isinstance(stream, Terminal):
            assert ("level 2 of 3: state" in stream.getvalue()) == shown
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    with level_progress.shown_levels(None, LEVELS) as show:
        assert show is None


def test_a_release_on_a_terminal_shows_its_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    for given, many in ((None, 1), (False, 0)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        released(progress=given)
        assert terminal.getvalue().count("level 3 of 3: town") >= many
        assert bool(terminal.getvalue()) == bool(many)


def test_a_notebook_has_one_line_that_changes_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    class Handle:
        def update(self, line: Any, *, raw: bool) -> None:
            shown.append((line["text/plain"], raw))

    def display(line: Any, *, raw: bool, display_id: bool) -> Handle:
        shown.append((line["text/html"], raw and display_id))
        return Handle()

    shell = types.SimpleNamespace(kernel=None)
    python: Any = types.ModuleType("IPython")
    python.get_ipython = lambda: shell
    page: Any = types.ModuleType("IPython.display")
    page.display = display
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(_progress, "_PAUSE", 0.0)
    with level_progress.shown_levels(None, LEVELS) as show:
        assert show is not None
        show("state", 1, 2)
        show("town", 3, 3)
    assert shown == [
        (html_block('<progress max="2" value="1"></progress> level 2 of 3: state, 1 of 2'), True),
        ("level 3 of 3: town, 3 of 3", True),
        ("", True),
    ]
    python.get_ipython = types.SimpleNamespace  # IPython on a terminal
    with level_progress.shown_levels(None, LEVELS) as show:
        assert show is None


def test_something_else_is_refused() -> None:
    wrong: Any = "yes"
    with pytest.raises(ParameterError, match="progress must be a function, True, False or None"):
        released(progress=wrong)
