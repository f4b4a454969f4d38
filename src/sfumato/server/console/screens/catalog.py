"""All screens of the console, in the order of its menu."""

from __future__ import annotations

from typing import Final

from sfumato.server.console.screens import accounts, log, members, releases, reviews

__all__ = ["SCREENS"]

SCREENS: Final = (
    *releases.SCREENS,
    *accounts.SCREENS,
    *members.SCREENS,
    *reviews.SCREENS,
    *log.SCREENS,
)
