"""All screens of the console, in the order of its menu."""

from __future__ import annotations

from typing import Final

from sfumato.server.console.screens import accounts, ask, epsilon, history, log, members, releases, reviews

__all__ = ["SCREENS"]

SCREENS: Final = (
    *releases.SCREENS,
    *ask.SCREENS,
    *history.SCREENS,
    *accounts.SCREENS,
    *members.SCREENS,
    *reviews.SCREENS,
    *epsilon.SCREENS,
    *log.SCREENS,
)
