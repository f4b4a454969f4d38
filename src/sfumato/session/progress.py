"""Progress of long queries, on the curator's own terminal or in the curator's own notebook.

How long a query takes and how far it is depend on the data: such a figure is outside of every guarantee. So
nothing of it is shown to an analyst, and nothing goes into pipes, files or logs.
"""

from __future__ import annotations

import importlib

from sfumato._check import refuse, refuse_type
from sfumato._progress import notebook_display, on_terminal
from sfumato.queries.engines.watched_run import Display

__all__ = ["display_of"]


def display_of(progress: bool | None, *, analyst: str | None) -> Display | None:
    """Return where the progress of queries is shown; None for nowhere.

    Parameters
    ----------
    progress : bool or None
        True shows it on standard error, also where that is no terminal; None only on a terminal or in a
        notebook's cell, from which it goes away, and only to the curator.
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
    seen = on_terminal() or notebook_display() is not None
    if progress or (progress is None and analyst is None and seen):
        shown: Display = importlib.import_module("sfumato.session.terminal_progress").shown
        return shown
    return None
