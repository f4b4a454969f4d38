"""All screens of the console, in the order of its menu."""

from __future__ import annotations

from typing import Final

from sfumato.server.console.screens import log, releases

__all__ = ["SCREENS"]

SCREENS: Final = (*releases.SCREENS, *log.SCREENS)
