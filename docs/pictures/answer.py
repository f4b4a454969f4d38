"""The README's picture: the answer to its query, with 95 % intervals.

Run ``python -m docs.pictures.answer`` at the project's root to draw it again. The noise is seeded, so
the answer is a simulation; a real one has other noise.
"""

from __future__ import annotations

from pathlib import Path

import sfumato as sf
from docs.pictures.style import BLUE, INK, figure, save

__all__ = ["QUERY", "draw"]

QUERY = """
    SELECT WITH DIFFERENTIAL_PRIVACY
      OPTIONS(epsilon=0.5, delta=1e-8, max_groups_contributed=1)
      state, COUNT(*) AS n, AVG(income, contribution_bounds_per_group => (0, 200000)) AS income
    FROM data GROUP BY state"""
DATA = Path(sf.__file__).parent / "cli" / "data" / "acs.parquet"


def draw(path: Path) -> None:
    """Draw mean income by state, as the query of the README answers it."""
    people = sf.connect(str(DATA), privacy_unit="person_id", epsilon=2.0, delta=1e-7, rng=1)
    rows = sorted(people.sql(QUERY).to_arrow(intervals=True).to_pylist(), key=lambda row: row["income"])
    names = [row["state"] for row in rows]
    drawn = figure(7, 4.2)
    axes = drawn.subplots()
    middle = [row["income"] / 1000 for row in rows]
    ends = [[row["income_lower"] / 1000 for row in rows], [row["income_upper"] / 1000 for row in rows]]
    axes.hlines(names, *ends, color=BLUE, linewidth=5, alpha=0.45)
    axes.plot(middle, names, "o", color=INK, markersize=4)
    axes.set_xlabel("mean income, thousand dollars: the private answer and its 95 % interval")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#d8dee5", linewidth=0.6)
    axes.set_axisbelow(True)
    save(drawn, path)


if __name__ == "__main__":
    draw(Path(__file__).parent / "answer.svg")
