"""A picture of the shares of strings that were found: bars with intervals, the largest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.mechanisms.base.release_table import Rows, drawn_few
from sfumato.numerics.interval import Interval

__all__ = ["drawn_shares"]


def drawn_shares(columns: Mapping[str, Any], name: str, most: int, ax: Any = None) -> Any:
    """Draw found strings and their shares; return the axes.

    Parameters
    ----------
    columns : mapping of str to list or array
        ``"frequency"``, ``"lower"``, ``"upper"``, and the strings; the largest first.
    name : str
        Of the column with the strings; bytes and others are drawn as Python writes them.
    most : int
        How many are drawn at most.
    ax : matplotlib.axes.Axes, optional
        New ones if left out.

    Raises
    ------
    ParameterError
        If ``most`` is no integer of at least 1.
    MissingExtra
        If matplotlib is absent and no axes are given.
    """
    texts = [each if isinstance(each, str) else repr(each) for each in columns[name]]
    rows = Rows({name: texts}, columns["frequency"], Interval(columns["lower"], columns["upper"]))
    ax = drawn_few(rows, most, ax)
    ax.set_ylabel("share")
    return ax
