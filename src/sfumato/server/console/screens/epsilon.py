"""Set epsilon: what a budget means for one unit, and how wrong a count is, as epsilon moves."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from sfumato import _check
from sfumato.privacy import PureDP
from sfumato.report import compare, odds
from sfumato.report.comparison.comparison_page import stated_parameters
from sfumato.report.comparison.deployment_records import record_units
from sfumato.report.markup.numerals import Numerals
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.pages.answer import Answer, Page
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit, read_number

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["SCREENS", "Mark", "mark_of"]

_MARKS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_BEYOND: Final = 0.05
_NUMERALS: Final = Numerals("en")
_WIDTH: Final = 560
_HEIGHT: Final = 200


class Mark(NamedTuple):
    """What one epsilon means; chances in 100 as texts that are rounded to the safe side."""

    epsilon: float
    belief: str
    event: str
    right: str
    gain: float
    error: str
    half_width: float


@lru_cache(maxsize=256)
def mark_of(epsilon: float) -> Mark:
    r"""Return what an epsilon means for a unit, and for a count with Laplace noise that costs all of it.

    Parameters
    ----------
    epsilon : float
        Positive.

    Notes
    -----
    Guarantee: belief, event and the chance to be right are those of `sfumato.report.odds` for pure DP, which
    every mechanism with this epsilon keeps. The interval of a count is that of discrete Laplace noise of
    scale 1/epsilon: with :math:`q = e^{-\epsilon}`, noise is beyond :math:`m` with the probability
    :math:`2 q^{m+1} / (1 + q)`.
    """
    found = odds(PureDP(epsilon))
    half = _half_width(epsilon)
    return Mark(
        epsilon=epsilon,
        belief=_NUMERALS.chance_up(found.beliefs[-1].most),
        event=_NUMERALS.chance_up(found.events[-1].most),
        right=_NUMERALS.chance_up(found.right),
        gain=2 * found.right - 1,
        error=_NUMERALS.up(half),
        half_width=half,
    )


def _half_width(epsilon: float) -> float:
    """Return the smallest whole number that bounds the noise of a count in 95 of 100 cases."""
    beyond = _BEYOND * (1 + math.exp(-epsilon)) / 2
    return float(max(0, math.ceil(-math.log(beyond) / epsilon * (1 + 1e-12) - 1)))


def _show(console: Console, visit: Visit) -> Answer:
    """Show a table and a picture of epsilons, with the one that is asked for among them."""
    asked = read_number("epsilon", visit.query.get("epsilon", "").strip(), "write a number such as 0.5")
    if asked is not None and not 1e-3 <= asked <= 50:
        _check.refuse("epsilon", "be from 0.001 to 50", asked, "beyond them nothing is left to choose")
    unit = visit.query.get("unit", "").strip()
    marks = [mark_of(epsilon) for epsilon in sorted({*_MARKS, *([] if asked is None else [asked])})]
    facts = {
        "marks": marks,
        "asked": None if asked is None else mark_of(asked),
        "points": _points(marks),
        "size": (_WIDTH, _HEIGHT),
        "budget": console.ledger.budget,
        "unit": console.ledger.privacy_unit,
        "renewal": console.ledger.renewal,
        "units": record_units(),
        "chosen": unit,
        "records": _records(asked, unit) if asked is not None and unit else [],
    }
    return Page(template="epsilon.html", title="Set epsilon", facts=facts)


def _records(epsilon: float, unit: str) -> list[dict[str, str]]:
    """Return the public records of deployments with this unit, the strongest first, and no others."""
    return [
        {
            "name": ", ".join(filter(None, (placed.record.name, placed.record.part))),
            "by": ", ".join(placed.record.curators),
            "stated": stated_parameters(_NUMERALS, placed.record),
            "right": _NUMERALS.chance_up(placed.standing.right),
        }
        for placed in compare(PureDP(epsilon), unit=unit).placed
        if placed.standing is not None
    ]


def _points(marks: list[Mark]) -> list[dict[str, object]]:
    """Return where each mark is in the picture: epsilon by its logarithm, and what an attacker gains."""
    low, high = math.log(marks[0].epsilon), math.log(marks[-1].epsilon)
    return [
        {
            "x": 40 + (math.log(mark.epsilon) - low) / (high - low) * (_WIDTH - 60),
            "y": 10 + (1 - mark.gain) * (_HEIGHT - 40),
            "label": f"{mark.epsilon:g}",
        }
        for mark in marks
    ]


SCREENS: Final = (Screen(path="/epsilon", action=Action.SET_EPSILON, show=_show),)
