"""What answers questions, where a console has data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato import _check
from sfumato.server.console.asking.service import AskingService

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["asking_of"]


def asking_of(console: Console) -> AskingService:
    """Return what answers questions; what uses it is only there if it is.

    Parameters
    ----------
    console : Console
    """
    if console.asking is None:
        _check.refuse_state(
            "the console", "have data", "it has a ledger alone", "state [dataset] in its file"
        )
    return console.asking
