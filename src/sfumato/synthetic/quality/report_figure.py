"""A heat map of associations, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from sfumato.privacy.interpretation.plotting import axes, ticks
from sfumato.synthetic.quality.associations import Association

__all__ = ["association_figure", "columns_of"]

_TICKS: Final = 60


def columns_of(associations: Sequence[Association]) -> list[str]:
    """Return the columns of pairs, in the order in which they first come.

    Parameters
    ----------
    associations : sequence of Association
    """
    return list(dict.fromkeys(name for each in associations for name in each.columns))


def association_figure(associations: Sequence[Association], title: str, ax: Any = None) -> Any:
    """Draw by how much each pair's Cramer's V is off; return the axes.

    Parameters
    ----------
    associations : sequence of Association
    title : str
    ax : matplotlib.axes.Axes, optional

    Raises
    ------
    MissingExtra
        If matplotlib is absent and no axes are given.
    """
    given, ax = ax, axes(ax)
    if given is None:
        ax.figure.set_layout_engine("constrained")  # long names of columns stay within the picture
    names = columns_of(associations)
    off = np.full((len(names), len(names)), np.nan)
    for each in associations:
        one, other = map(names.index, each.columns)
        off[one, other] = off[other, one] = each.synthetic - each.real
    image = ax.imshow(off, cmap="RdBu", vmin=-1, vmax=1)
    ticks(ax.xaxis, names, _TICKS, rotation=90)
    ticks(ax.yaxis, names, _TICKS)
    ax.set_title(title, fontsize="small", wrap=True)
    ax.figure.colorbar(image, ax=ax, label="Cramer's V, synthetic less real")
    return ax
