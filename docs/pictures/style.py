"""How all pictures look, and how they are written: SVG with the same bytes for the same content."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

from matplotlib.figure import Figure

__all__ = ["BLUE", "GRAY", "INK", "ORANGE", "PALE", "figure", "save"]

INK = "#1f2933"
GRAY = "#8a94a0"
PALE = "#e8edf2"
BLUE = "#2f6db3"
ORANGE = "#d9772b"

mpl.rcParams.update(
    {
        "svg.hashsalt": "sfumato",
        "svg.fonttype": "none",
        "font.family": ["DejaVu Sans"],
        "font.size": 11,
        "text.color": INK,
        "axes.edgecolor": GRAY,
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": INK,
        "ytick.color": INK,
    }
)


def figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def save(drawn: Figure, path: Path) -> None:
    """Write a figure as SVG on white, so that it can be read on a dark page too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, format="svg", facecolor="white", metadata={"Date": None})
