"""Plots of curves with matplotlib."""

from __future__ import annotations

from typing import Any

from sfumato.errors import MissingExtra
from sfumato.privacy.interpretation.curves import Curve

__all__ = ["axes", "draw"]


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
