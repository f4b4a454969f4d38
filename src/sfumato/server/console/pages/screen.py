"""A screen: at which path and method it stands, what one must be allowed to do, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from sfumato.server.console.access.permissions import Action
from sfumato.server.console.pages.answer import Answer
from sfumato.server.console.pages.visit import Visit

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["Screen"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """One screen, or what one of its forms does.

    Parameters
    ----------
    path : str
        Such as ``/releases/{number}``.
    action : Action
        What a request of it does; who may not do it gets 403, or is asked to sign in.
    show : callable
        Takes the console and the visit.
    method : str
        ``GET`` for what only shows, ``POST`` for what changes something.
    wait : callable, optional
        Returns for how many seconds the answer should wait, so that what is about to be there is on it.
    needs_data : bool
        Whether it is only there if the console has data, and not a ledger alone.
    again : callable, optional
        Shows the form's page anew where the form is refused; what was filled in stands there still.
    """

    path: str
    action: Action
    show: Callable[[Console, Visit], Answer]
    method: str = "GET"
    wait: Callable[[Console, Visit], float] | None = None
    needs_data: bool = False
    again: Callable[[Console, Visit], Answer] | None = None
