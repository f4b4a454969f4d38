"""Progress of long work: on a terminal, in a notebook, in a pipe, and for a function."""

from __future__ import annotations

import io
import sys
import types
from typing import Any

import pytest

from sfumato import _progress
from sfumato._progress import is_terminal, shown_progress, shown_steps
from sfumato.audit import audit
from sfumato.errors import ParameterError
from tests.run_time import run_time

if run_time(__name__):
    import pyarrow as pa

    from sfumato import anonymity
    from sfumato.session import progress as of_queries
    from sfumato.session import terminal_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(Terminal):
    """One whose window is closed after some writes."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    def write(self, text: str) -> int:
        self.left -= 1
        if self.left < 0:
            raise BrokenPipeError
        return super().write(text)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a notebook's cell was made to show, one after the other."""
    lines: list[str] = []

    class Handle:
        def update(self, line: dict[str, str], *, raw: bool) -> None:
            lines.append(line["text/plain"])

    def display(line: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        lines.append(line["text/plain"])
        return Handle()

    python: Any = types.ModuleType("IPython")
    python.get_ipython = lambda: types.SimpleNamespace(kernel=None)
    page: Any = types.ModuleType("IPython.display")
    page.display = display
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    return lines


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(_progress, "_PAUSE", 0.0)


def noisy(data: Any, size: int) -> list[int]:
    return [len(data)] * size


def audited(**given: Any) -> None:
    audit(noisy, epsilon=1.0, pairs=[([1], [1, 1])], trials=1000, **given)


def test_where_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, given, shown in (
        (Terminal(), None, True),
        (Terminal(), False, False),
        (io.StringIO(), None, False),
        (io.StringIO(), True, True),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        with shown_progress(given, "blocks") as show:
            show(1, 3)
        assert ("blocks" in stream.getvalue()) == shown
        goes_away = stream.getvalue().endswith("\x1b[2K")
        assert goes_away == (shown and stream.isatty())
        assert ("1/3" in stream.getvalue()) == shown


def test_a_stream_that_is_closed_or_absent_is_no_terminal() -> None:
    closed = io.StringIO()
    closed.close()
    assert is_terminal(Terminal())
    assert not is_terminal(closed)
    assert not is_terminal(None)


def test_no_name_is_markup_or_steers_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with shown_steps(True, str) as show:
        assert show is not None
        show("[/b][red]\x1b[2J", 1, 3)
    assert r"[/b][red]\x1b[2J" in terminal.getvalue()


def test_a_terminal_that_is_gone_does_not_end_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_progress, "_PATIENCE", 0.0)
    closed = Terminal()
    closed.close()
    for stream in (None, closed, Gone(0), Gone(2)):
        monkeypatch.setattr(sys, "stderr", stream)
        with shown_progress(True, "blocks") as show:
            show(1, 3)
        with terminal_progress.shown() as tell:
            tell(50.0)


def test_what_the_work_prints_stays_on_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with shown_progress(True, "blocks") as show:
        show(1, 3)
        sys.stdout.write("an answer\n")
    assert capsys.readouterr().out == "an answer\n"


def test_a_cell_shows_it_and_is_empty_at_the_end(cell: list[str]) -> None:
    audited()
    assert cell[0].startswith("auditing, runs, ")
    assert cell[0].endswith(" of 1000")
    assert cell[-1] == ""
    cell.clear()
    with terminal_progress.shown() as show:
        show(None)
        show(41.9)
    assert [line.rpartition(", ")[2] for line in cell] == ["0 of 100", "41 of 100", ""]
    assert of_queries.display_of(None, analyst=None) is terminal_progress.shown
    assert of_queries.display_of(None, analyst="ada") is None  # how long it takes is for the curator alone


def test_what_is_observed_is_not_disturbed(cell: list[str]) -> None:
    audited(observe=["time"])
    assert cell == []


def test_an_audit_counts_runs_that_are_planned_by_public_numbers() -> None:
    for pairs in (1, 3, 5):
        inputs = [([1] * k, [1] * (k + 1)) for k in range(1, pairs + 1)]
        totals: set[int] = set()
        done = [0]

        def seen(now: int, total: int, totals: Any = totals, done: Any = done) -> None:
            totals.add(total)
            done.append(now)

        audit(noisy, epsilon=1.0, pairs=inputs, trials=8000, progress=seen)
        assert done == sorted(done)
        (total,) = totals
        assert total == {1: 8000, 3: 24000, 5: 29000}[pairs]
        assert done[-1] <= total
        assert done[-1] == total or pairs > 1  # the events that promise most may be of fewer pairs


def test_something_else_is_refused() -> None:
    with pytest.raises(ParameterError, match="progress must be a function, True, False or None"):
        audited(progress="yes")


def test_anonymity_shows_what_is_decided(cell: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"age": [20, 20, 30, 30, 50, 50]})
    plain = anonymity.Microdata(table, quasi_identifiers=["age"])
    leveled = anonymity.Microdata(table, quasi_identifiers={"age": anonymity.Intervals((20, 40))})
    for call, words in (
        (lambda **given: anonymity.mondrian(plain, 2, **given), "recoding by Mondrian, rows, 6 of 6"),
        (lambda **given: anonymity.recode_locally(leveled, 2, **given), "recoding locally, rows, 6 of 6"),
        (lambda **given: anonymity.generalize(leveled, 2, **given), "generalizing, nodes of the lattice, "),
    ):
        cell.clear()
        call()
        assert any(line.startswith(words) for line in cell), cell
        assert cell[-1] == ""
        cell.clear()
        call(progress=False)
        assert cell == []
        with pytest.raises(ParameterError, match="progress must be a function, True, False or None"):
            call(progress="yes")
