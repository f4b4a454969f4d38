"""What a plot has drawn, as numbers, to be compared with those of the object that drew it."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["band", "bars", "line", "new_axes", "written"]


def new_axes() -> Any:
    """Return axes of a figure that no window shows."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and only for tests that draw

    return Figure().subplots()


def bars(ax: Any) -> tuple[list[float], list[tuple[float, float]]]:
    """Return the heights of bars, and the ends of their whiskers."""
    (whiskers,) = ax.collections
    ends = [(float(low), float(high)) for (_, low), (_, high) in whiskers.get_segments()]
    return [bar.get_height() for bar in ax.patches], ends


def line(ax: Any, place: int = 0) -> tuple[list[Any], list[float]]:
    """Return where the points of a line are, and how high."""
    return tuple(np.asarray(each).tolist() for each in ax.lines[place].get_data(orig=True))


def band(ax: Any, place: int = 0) -> list[tuple[float, float]]:
    """Return the lower and the upper end of a band at each of its places, from the left."""
    (path,) = ax.collections[place].get_paths()
    found: dict[float, list[float]] = {}
    for x, y in path.vertices:
        found.setdefault(float(x), []).append(float(y))
    return [(min(found[x]), max(found[x])) for x in sorted(found)]


def written(ax: Any) -> list[str]:
    """Return what stands below the bars."""
    return [each.get_text() for each in ax.get_xticklabels()]
