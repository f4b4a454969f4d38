"""Dry run: a question answered on rows that are made up from what is public; nothing is charged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sfumato.server.console.access.permissions import Action
from sfumato.server.console.pages.answer import Answer, Page
from sfumato.server.console.pages.rows import shown_rows
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit
from sfumato.server.console.screens.ask import question_of
from sfumato.server.console.services.asking_of import asking_of

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["SCREENS"]

_SHOWN: Final = 200


def _form(_: Console, __: Visit) -> Answer:
    """Show the empty form."""
    return Page(template="dry_run.html", title="Dry run", facts={"sql": "", "epsilon": "", "found": None})


def _run(console: Console, visit: Visit) -> Answer:
    """Show the answer on made-up rows."""
    found = asking_of(console).dry_run(visit.identity.name, question_of(visit))
    facts = {
        "sql": visit.text("sql"),
        "epsilon": visit.text("epsilon"),
        "found": found,
        "names": found.table.column_names,
        "rows": shown_rows(found.table, _SHOWN),
    }
    return Page(template="dry_run.html", title="Dry run", facts=facts)


SCREENS: Final = (
    Screen(path="/dry-run", action=Action.DRY_RUN, show=_form, needs_data=True),
    Screen(path="/dry-run", action=Action.DRY_RUN, show=_run, method="POST", needs_data=True, again=_form),
)
