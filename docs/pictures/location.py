"""Map of a guide: towns around Berlin, one true position and where its reports are."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from docs.pictures.style import BLUE, GRAY, INK, ORANGE, figure, save
from sfumato.location import PlanarLaplace, Projection

__all__ = ["cities", "draw"]

_CENTER = (52.52, 13.405)


def cities() -> list[tuple[str, float, float, int]]:
    """Return towns as name, latitude, longitude and population; see NOTICE.txt for their source."""
    with Path(__file__).with_name("cities.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        (row["name"], float(row["latitude"]), float(row["longitude"]), int(row["population"])) for row in rows
    ]


def draw(path: Path) -> None:
    """Draw reports of one position for two levels of protection; no tiles, and no network."""
    towns = cities()
    disc = Projection(latitude=_CENTER[0], longitude=_CENTER[1], radius=150_000)
    points = disc.to_plane([town[1] for town in towns], [town[2] for town in towns]) / 1000
    drawn = figure(7, 4.6)
    axes = drawn.subplots()
    true = disc.to_plane([52.40], [13.06])
    for radius, color in ((5000, ORANGE), (1000, BLUE)):
        report = PlanarLaplace.from_level(math.log(4), radius=radius)
        seen = report.release(np.repeat(true, 400, axis=0), rng=7) / 1000
        label = f"factor 4 within {radius // 1000} km"
        axes.scatter(seen[:, 0], seen[:, 1], s=4, color=color, linewidths=0, label=label)
    sizes = np.sqrt([town[3] for town in towns]) / 12
    axes.scatter(points[:, 0], points[:, 1], s=sizes, color=GRAY, alpha=0.5, linewidths=0)
    for (name, *_), point in list(zip(towns, points, strict=True))[:12]:
        axes.annotate(name, (point[0], point[1]), fontsize=7, color=INK, ha="center", va="bottom")
    axes.scatter(true[:, 0] / 1000, true[:, 1] / 1000, marker="+", s=90, color=INK, label="true position")
    axes.set_aspect("equal")
    axes.set_xlabel("km east of the centre")
    axes.set_ylabel("km north")
    axes.set_xlim(-75, 60)
    axes.set_ylim(-55, 40)
    axes.legend(frameon=False, loc="upper left", fontsize=8)
    save(drawn, path)
