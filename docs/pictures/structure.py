"""Pictures of the code: its rooms with their imports, and the walks of one call through them."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

import sfumato
from docs.pictures.style import BLUE, GRAY, INK, PALE, figure, save
from tools.measures.imports import import_graph
from tools.measures.source import modules
from tools.walks.trace import Walk

__all__ = ["rooms", "storeys", "walk"]

ROOT = Path(sfumato.__file__).parent
PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def storeys() -> list[list[str]]:
    """Return the rooms from the top down, as the import contract lists them."""
    contracts = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    found = [[room.strip(" ()") for part in layer.split("|") for room in part.split(":")] for layer in layers]
    return [named for storey in found if (named := [room for room in storey if (ROOT / room).is_dir()])]


def _box(axes: Axes, x: float, y: float, width: float, height: float) -> None:
    style = "round,pad=0,rounding_size=0.08"
    axes.add_patch(
        FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=PALE, edgecolor=GRAY, lw=0.8)
    )


def rooms(path: Path) -> None:
    """Draw the rooms in their storeys, with their number of modules, and the imports between them."""
    stack = storeys()
    sizes = Counter(name.split(".")[1] for name in modules(ROOT) if name.count("."))
    pairs = {
        (name.split(".")[1], target.split(".")[1])
        for name, targets in import_graph(modules(ROOT)).items()
        for target in targets
        if name.count(".") and target.count(".")
    }
    drawn = figure(8, 0.95 * len(stack))
    axes = drawn.subplots()
    places: dict[str, tuple[float, float]] = {}
    for level, storey in enumerate(stack):
        width = min(2.2, 9.0 / len(storey) - 0.25)
        for number, room in enumerate(storey):
            x = 5 + (number - (len(storey) - 1) / 2) * (width + 0.3)
            y = float(len(stack) - level)
            places[room] = (x, y)
            _box(axes, x - width / 2, y - 0.27, width, 0.54)
            axes.text(x, y + 0.06, room, ha="center", va="center", fontweight="bold")
            axes.text(x, y - 0.16, f"{sizes[room]} modules", ha="center", va="center", fontsize=8, color=GRAY)
    for above, below in sorted(pairs):
        if above in places and below in places and above != below:
            (x0, y0), (x1, y1) = places[above], places[below]
            axes.plot([x0, x1], [y0, y1], color=BLUE, alpha=0.3, linewidth=0.9, zorder=0)
    axes.set_xlim(0, 10)
    axes.set_ylim(0.5, len(stack) + 0.5)
    axes.set_axis_off()
    save(drawn, path)


def walk(path: Path, walked: Walk, *, most: int = 4) -> None:
    """Draw the folders that a call enters, numbered in the order of first entry, each with its first files.

    Parameters
    ----------
    path : pathlib.Path
    walked : Walk
    most : int
        How many files of each folder are named; of more, the number is.
    """
    folders: Mapping[str, Sequence[str]] = {k: v for k, v in walked.folders().items() if k}
    drawn = figure(8, 0.62 * len(folders) + 0.4)
    axes = drawn.subplots()
    order = [room for storey in storeys() for room in storey]
    last = 0.0
    for number, (folder, files) in enumerate(folders.items()):
        y = len(folders) - number
        room = folder.split("/")[0]
        x = 0.3 + 0.28 * order.index(room)
        _box(axes, x, y - 0.24, 3.1, 0.48)
        axes.text(
            x + 0.1, y, f"{number + 1}  {folder}", va="center", fontweight="bold", fontsize=9, color=INK
        )
        names = [name.removesuffix(".py") for name in files]
        more = f" and {len(names) - most} more" if len(names) > most else ""
        axes.text(x + 3.2, y, ", ".join(names[:most]) + more, va="center", fontsize=8.5, color=INK)
        if number:
            arrow = {"arrowstyle": "->", "color": BLUE}
            axes.annotate("", (x + 0.2, y + 0.24), (last + 0.2, y + 0.76), arrowprops=arrow)
        last = x
    axes.set_xlim(0, 10.5)
    axes.set_ylim(0.5, len(folders) + 0.5)
    axes.set_axis_off()
    save(drawn, path)
