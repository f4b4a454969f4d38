"""Progress of long queries, on the curator's own terminal.

How long a query takes and how far it is depend on the data: such a figure is outside of every guarantee. So
nothing of it is shown to an analyst, and nothing goes into pipes, files or logs.
"""

from __future__ import annotations

import importlib
import sys

from sfumato._check import refuse, refuse_type
from sfumato.queries.engines.watched_run import Display

__all__ = ["display_of"]


def display_of(progress: bool | None, *, analyst: str | None) -> Display | None:
    """Return where the progress of queries is shown; None for nowhere.

    Parameters
    ----------
    progress : bool or None
        True shows it on standard error, also where that is no terminal; None only on a terminal, and only to
        the curator.
    analyst : str or None
        Who asks; None is the curator.

    Raises
    ------
    ParameterError
        If it is neither, or is to be shown to an analyst.
    """
    given: object = progress
    if given is not None and not isinstance(given, bool):
        refuse_type("progress", "be True, False or None", given, "leave it out to show it on a terminal")
    if progress and analyst is not None:
        remedy = "leave it out: how long a query takes depends on the data, which only the curator may see"
        refuse("progress", "be left out for an analyst", progress, remedy)
    if progress or (progress is None and analyst is None and _is_terminal()):
        shown: Display = importlib.import_module("sfumato.session.terminal_progress").shown
        return shown
    return None


def _is_terminal() -> bool:
    """Return whether standard error is a terminal: only there the curator alone sees what is written."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # it was closed
        return False
