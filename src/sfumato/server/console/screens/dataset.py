"""Dataset: tables, columns, who is protected and what was declared; no row is read for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sfumato.server.console.access.permissions import Action
from sfumato.server.console.pages.answer import Answer, Page
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit
from sfumato.server.console.services.asking_of import asking_of

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["SCREENS"]


def _show(console: Console, _: Visit) -> Answer:
    """Show what is public of the dataset."""
    return Page(template="dataset.html", title="Dataset", facts={"facts": asking_of(console).facts()})


SCREENS: Final = (Screen(path="/dataset", action=Action.VIEW_SCHEMA, show=_show, needs_data=True),)
