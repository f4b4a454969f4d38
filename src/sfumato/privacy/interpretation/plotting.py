"""Plots with matplotlib: curves, lines within their bands, and maps of two columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato._display import named, shortened
from sfumato.errors import MissingExtra
from sfumato.numerics.interval import Interval
from sfumato.privacy.interpretation.curves import Curve

__all__ = ["axes", "draw", "draw_line", "draw_map", "drawable", "label_text", "ticks"]

_TICKS: Final = 24
_LARGEST: Final = 1e300
"""Matplotlib adds margins to what it draws, which overflow beyond."""


def axes(ax: Any = None) -> Any:
    """Return the axes that were given, or new ones.

    Raises
    ------
    ParameterError
        If something else was given, such as a figure or several axes.
    MissingExtra
        If matplotlib is absent and no axes are given.
    """
    if ax is not None:
        if not callable(getattr(ax, "set_xlabel", None)):
            _check.refuse_type("ax", "be matplotlib's axes", ax, "leave it out for new ones")
        return ax
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - an optional library
    except ImportError as missing:
        raise MissingExtra("plot needs matplotlib; pip install 'sfumato[plot]'") from missing
    return plt.subplots()[1]


def label_text(value: object) -> str:
    r"""Return a name as matplotlib is to write it: no mathematics, nor long, nor left out of a legend.

    Examples
    --------
    >>> print(label_text("$x$"), label_text("_x"), label_text(None))
    \$x\$  _x NULL
    """
    text = shortened(named(value)).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text  # a legend has no line whose label begins with it


def drawable(values: Any) -> NDArray[np.float64]:
    """Return numbers as floats that can be drawn; NaN, of which nothing is drawn, for those without end."""
    found = np.asarray(values, np.float64)
    return np.where(np.abs(found) < _LARGEST, found, np.nan)


def ticks(axis: Any, names: Sequence[Any], most: int = _TICKS, **style: Any) -> None:
    """Write names along an axis, at 0, 1 and so on; of more than ``most`` some."""
    places = range(0, len(names), max(1, -(-len(names) // most)))
    axis.set_ticks(places, [label_text(names[place]) for place in places], **style)


def draw(curve: Curve, ax: Any = None) -> Any:
    """Draw a curve into axes and return them; the band between the bounds is filled.

    Raises
    ------
    MissingExtra
        If matplotlib is absent and no axes are given.
    """
    ax = axes(ax)
    # Few errors of an attack and few small losses are bad; elsewhere the promise is the upper bound.
    x, lower, upper = map(drawable, (curve.x, curve.lower, curve.upper))
    promised = lower if curve.kind in {"trade-off", "loss"} else upper
    ax.fill_between(x, lower, upper, alpha=0.3)
    ax.plot(x, promised)
    ax.set_xlabel(curve.x_label)
    ax.set_ylabel(curve.y_label)
    if curve.kind == "profile" and (promised > 0).any():
        ax.set_yscale("log")
    return ax


def draw_line(
    x: Sequence[Any] | NDArray[Any],
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
        Numbers, dates or texts, in their order; of many texts, some are written.
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
    y, texts = drawable(y), [*x] if any(isinstance(place, str) for place in x) else []
    if texts:
        x = range(len(texts))
    elif np.asarray(x).dtype.kind == "f":
        x = drawable(x)
    name = None if label is None else label_text(label)
    (line,) = ax.plot(x, y, marker="o" if len(y) <= _TICKS else None, label=name)
    if texts:
        ticks(ax.xaxis, texts)
    if ends is not None:
        lower, upper = (drawable(end) for end in ends[:2])
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
    image = ax.imshow(drawable(values), origin="lower", aspect="auto")
    ax.figure.colorbar(image, ax=ax, label=label)
    for axis, own in zip((ax.yaxis, ax.xaxis), names, strict=True):
        ticks(axis, own)
    return ax
