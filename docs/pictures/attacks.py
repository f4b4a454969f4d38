"""Picture of the demo's attacks: what is found of people in a release, and of people who are not in it."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

from docs.pictures.style import BLUE, GRAY, INK, ORANGE, figure, save
from sfumato.attacks.base.findings import Findings
from sfumato.cli.demos.attack_story import publications

__all__ = ["draw"]


def draw(path: Path) -> None:
    """Draw the four publications of the demo; the noise of the last one is real."""
    drawn = figure(7, 3.4)
    axes = drawn.subplots()
    found = list(publications())
    for place, publication in enumerate(found):
        shares = _shares(publication.found)
        axes.bar(place - 0.2, shares[0], 0.36, color=ORANGE, label="" if place else "in the release")
        axes.bar(place + 0.2, shares[1], 0.36, color=GRAY, label="" if place else "not in it")
        for offset, share in zip((-0.2, 0.2), shares, strict=True):
            axes.annotate(f"{100 * share:.1f}", (place + offset, share), ha="center", va="bottom", color=INK)
        for bound in publication.found.bounds[:1]:
            axes.hlines(bound.allowed, place - 0.45, place + 0.05, color=BLUE, linewidth=2)
            axes.annotate("the loss allows", (place - 0.2, bound.allowed + 0.02), ha="center", color=BLUE)
    axes.set_xticks(range(len(found)), [fill(publication.title, 16) for publication in found])
    axes.set_ylabel("share of people found")
    axes.set_ylim(0, 1)
    axes.legend(frameon=False, loc="upper left")
    save(drawn, path)


def _shares(found: Findings) -> tuple[float, float]:
    first, second = (
        (group.hits or 0) / group.people for group in (found.targets, found.controls) if group is not None
    )
    return first, second
