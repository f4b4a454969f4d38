"""Plots with matplotlib: curves, lines within their bands, and maps of two columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from sfumato.errors import MissingExtra
from sfumato.numerics.interval import Interval
from sfumato.privacy.interpretation.curves import Curve

__all__ = ["axes", "draw", "draw_line", "draw_map"]

_TICKS: Final = 24


def axes(ax: Any = None) -> Any:
    """Return the axes that were given, or new ones.

    Raises
    ------
    MissingExtra
        If matplotlib is absent and no axes are given.
    """
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - an optional library
    except ImportError as missing:
        raise MissingExtra("plot needs matplotlib; pip install 'sfumato[plot]'") from missing
    return plt.subplots()[1]


def draw(curve: Curve, ax: Any = None) -> Any:
    """Draw a curve into axes and return them; the band between the bounds is filled.

    Raises
    ------
    MissingExtra
        If matplotlib is absent and no axes are given.
    """
    ax = axes(ax)
    # Few errors of an attack and few small losses are bad; elsewhere the promise is the upper bound.
    promised = curve.lower if curve.kind in {"trade-off", "loss"} else curve.upper
    ax.fill_between(curve.x, curve.lower, curve.upper, alpha=0.3)
    ax.plot(curve.x, promised)
    ax.set_xlabel(curve.x_label)
    ax.set_ylabel(curve.y_label)
    if curve.kind == "profile" and (promised > 0).any():
        ax.set_yscale("log")
    return ax


def draw_line(
    x: ArrayLike | Sequence[Any],
    y: ArrayLike,
    ends: Interval[Any] | None = None,
    *,
    ax: Any = None,
    label: str | None = None,
) -> Any:
    """Draw a line within its band into axes and return them.

    Parameters
    ----------
    x : sequence
        Numbers, dates or texts, in their order.
    y : array
    ends : Interval of arrays, optional
        The band; where an end is not finite, none is drawn.
    ax : matplotlib.axes.Axes, optional
        New ones if left out.
    label : str, optional
        What a legend calls the line.

    Raises
    ------
    MissingExtra
        If matplotlib is absent and no axes are given.
    """
    ax = axes(ax)
    y = np.asarray(y, np.float64)
    (line,) = ax.plot(x, y, marker="o" if len(y) <= _TICKS else None, label=label)
    if ends is not None:
        lower, upper = (np.asarray(end, np.float64) for end in ends[:2])
        known = np.isfinite(lower) & np.isfinite(upper)
        ax.fill_between(x, lower, upper, where=known, color=line.get_color(), alpha=0.3, linewidth=0)
    return ax


def draw_map(
    values: ArrayLike,
    names: tuple[Sequence[Any], Sequence[Any]],
    *,
    ax: Any = None,
    label: str = "",
) -> Any:
    """Draw numbers by two columns as a map of colours into axes, with its bar beside, and return them.

    Parameters
    ----------
    values : array of shape (rows, columns)
        The first row is the lowest one; NaN has no colour.
    names : two sequences
        What the rows and the columns are; of many, some are written.
    ax : matplotlib.axes.Axes, optional
        New ones if left out.
    label : str
        What the colours say.

    Raises
    ------
    MissingExtra
        If matplotlib is absent and no axes are given.
    """
    ax = axes(ax)
    image = ax.imshow(np.asarray(values, np.float64), origin="lower", aspect="auto")
    ax.figure.colorbar(image, ax=ax, label=label)
    for axis, own in zip((ax.yaxis, ax.xaxis), names, strict=True):
        places = range(0, len(own), max(1, -(-len(own) // _TICKS)))
        axis.set_ticks(places, [str(own[place]) for place in places])
    return ax
