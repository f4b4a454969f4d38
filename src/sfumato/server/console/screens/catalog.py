"""All screens of the console, in the order of its menu."""

from __future__ import annotations

from typing import Final

from sfumato.server.console.screens import (
    accounts,
    ask,
    budget,
    dataset,
    dry_runs,
    epsilon,
    history,
    log,
    members,
    releases,
    reviews,
)

__all__ = ["SCREENS"]

SCREENS: Final = (
    *releases.SCREENS,
    *ask.SCREENS,
    *history.SCREENS,
    *dry_runs.SCREENS,
    *dataset.SCREENS,
    *accounts.SCREENS,
    *members.SCREENS,
    *reviews.SCREENS,
    *budget.SCREENS,
    *epsilon.SCREENS,
    *log.SCREENS,
)
