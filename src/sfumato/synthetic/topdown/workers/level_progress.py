"""What is shown of a long run of TopDown: which level, and how many of its places are done."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from sfumato._progress import StepProgress, shown_steps

__all__ = ["shown_levels"]


def shown_levels(
    progress: StepProgress | bool | None, levels: Sequence[str]
) -> AbstractContextManager[StepProgress | None]:
    """Show a run while the context lasts; yields what is called as places are done, or None.

    Parameters
    ----------
    progress : callable, bool or None
        A function is called itself, with a level's name and how many of its places are done, of how many;
        True shows a bar, False nothing, and None a bar on a terminal and in a notebook: there the curator
        alone sees it, who runs the mechanism on the rows.
    levels : sequence of str
        From the root.

    Raises
    ------
    ParameterError
        If it is something else.

    Notes
    -----
    How long a run takes depends on the data, and is outside of the guarantee.
    """
    return shown_steps(progress, lambda level: f"level {levels.index(level) + 1} of {len(levels)}: {level}")
