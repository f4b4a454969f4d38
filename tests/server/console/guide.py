"""Follow the guide of ``docs/console.md`` alone: what is in italics is pressed, what is bold is filled in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.cli.governance.console_demo import QUESTION
from tests.cli.governance.running_console import RunningDemo
from tests.server.console.visitor import Visitor, read_only

__all__ = ["DOCS", "follow_guide", "guide_steps"]

DOCS: Final = Path(__file__).parents[3] / "docs"

_STEP: Final = re.compile(r"^\d\. (.*?)(?=^\d\. |^$)", re.MULTILINE | re.DOTALL)
_ACT: Final = re.compile(
    r"(?P<sign>signs in)|(?P<back>goes back)|\*\*(?P<fill>.+?)\*\*|\*(?P<press>.+?)\*|`(?P<run>.+?)`"
)
_LOOKS: Final = 60
_TYPED: Final = {"Question": QUESTION.replace("\n", " "), "Purpose": "a table of people by state"}


def guide_steps() -> list[str]:
    """Return the steps of the guide, each in one line."""
    page = (DOCS / "console.md").read_text(encoding="utf-8")
    section = page.partition("## To publish an answer\n")[2].partition("\n## ")[0]
    return [" ".join(step.split()) for step in _STEP.findall(section)]


def follow_guide(
    demo: RunningDemo, visitor: Visitor, seen: Callable[[int, str], None] = lambda step, what: None
) -> None:
    """Do what the guide says, and nothing else.

    Parameters
    ----------
    demo : RunningDemo
    visitor : Visitor
    seen : callable
        Receives the number of the step and what was just done in it, while the page that came is open.
    """
    for number, step in enumerate(guide_steps(), 1):
        who = step.split()[1] if step.startswith("The ") else ""
        if not who and visitor.name:
            visitor.sign_out()
        for act in _ACT.finditer(step):
            _do(act, who, demo, visitor)
            seen(number, act[0])
        assert visitor.name == demo.names.get(who, ""), step


def _do(act: re.Match[str], who: str, demo: RunningDemo, visitor: Visitor) -> None:
    words: dict[str, Any] = act.groupdict()
    if words["sign"]:
        visitor.sign_in(demo.names[who], demo.tokens[who])
    elif words["back"]:
        visitor.go_back()
    elif words["fill"]:
        if not visitor.tick(words["fill"]):
            visitor.fill(words["fill"], _typed(words["fill"], demo))
    elif words["run"]:
        _sign(words["run"], demo, visitor)
    elif words["press"] == "Look again":  # until there is nothing to look for
        pressed = visitor.pressed
        while visitor.finds("Look again"):
            assert visitor.pressed - pressed < _LOOKS, visitor.text
            visitor.press("Look again")
        visitor.pressed = pressed + 1  # one act, however often
    else:
        visitor.press(words["press"])


def _typed(field: str, demo: RunningDemo) -> str:
    return (demo.folder / "signature").read_text() if field == "Signature" else _TYPED[field]


def _sign(command: str, demo: RunningDemo, visitor: Visitor) -> None:
    """Run the command that the guide names on a file with the statement."""
    statement = demo.folder / "statement.json"
    statement.write_text(read_only(visitor)["Statement"], encoding="utf-8")
    places = {"statement.json": str(statement), "KEY": str(demo.folder / f"{demo.names['reviewer']}.pem")}
    program, *words = [places.get(word, word) for word in shlex.split(command)]
    assert program == "sfumato"
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    (demo.folder / "signature").write_text(result.stdout.strip())
