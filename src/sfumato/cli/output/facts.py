"""What stands beside an answer: what it cost, what is left, its receipt, and what limits cut off."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from sfumato._wire import Format
from sfumato.cli.output.writing import finite_or_none

if TYPE_CHECKING:
    from sfumato.ledger.log.entries import Entry
    from sfumato.privacy.guarantee import Guarantee
    from sfumato.privacy.receipt import Receipt
    from sfumato.queries.release.table import TableRelease

__all__ = [
    "ANSWER",
    "cost_facts",
    "cut_off",
    "entry_facts",
    "guarantee_facts",
    "print_json",
    "receipt_facts",
    "say",
]

ANSWER: Final = Format("sfumato.answer", 1)
"""Of ``sfumato sql --format json`` and ``sfumato ledger release --json``."""


def guarantee_facts(guarantee: Guarantee) -> dict[str, Any]:
    """Return the numbers of a guarantee that it states, by name.

    Parameters
    ----------
    guarantee : Guarantee

    Examples
    --------
    >>> from sfumato.privacy import Guarantee, Neighboring
    >>> guarantee_facts(Guarantee(neighboring=Neighboring.ADD_REMOVE, rho=0.5))
    {'neighboring': 'add/remove one unit', 'rho': 0.5}
    """
    numbers = {field.name: getattr(guarantee, field.name) for field in dataclasses.fields(guarantee)}
    relation = numbers.pop("neighboring")
    stated = {name: finite_or_none(value) for name, value in numbers.items() if value is not None}
    return {"neighboring": str(relation), **stated}


def cost_facts(epsilon: float, delta: float) -> dict[str, Any]:
    """Return a cost; an infinite number is None.

    Parameters
    ----------
    epsilon, delta : float

    Examples
    --------
    >>> cost_facts(0.5, 0.0)
    {'epsilon': 0.5, 'delta': 0.0}
    """
    return {"epsilon": finite_or_none(epsilon), "delta": finite_or_none(delta)}


def cut_off(releases: Sequence[TableRelease]) -> Iterator[str]:
    """Yield what the limits of each private SELECT cut off, a line each, where it asks for that.

    Parameters
    ----------
    releases : sequence of TableRelease
    """
    for index, each in enumerate(releases, 1):
        of_which = f" in private SELECT {index}" if len(releases) > 1 else ""
        if each.truncation is not None:
            yield from (f"cut off{of_which}: {line}" for line in each.truncation.lines())


def receipt_facts(receipt: Receipt) -> dict[str, Any]:
    """Return the parts of a receipt, by name.

    Parameters
    ----------
    receipt : Receipt
    """
    return {
        "ledger": receipt.ledger,
        "sequence": receipt.sequence,
        "digest": receipt.digest,
        "neighboring": str(receipt.neighboring),
        "privacy_unit": receipt.privacy_unit,
        "analyst": receipt.analyst,
        "period": receipt.period,
        "lifetime": None if receipt.lifetime is None else guarantee_facts(receipt.lifetime),
    }


def entry_facts(entry: Entry) -> dict[str, Any]:
    """Return one charge of a ledger, by name.

    Parameters
    ----------
    entry : Entry
    """
    zcdp = entry.costs.get("zcdp")
    return {
        "sequence": entry.sequence,
        "time": entry.time.isoformat(),
        "description": entry.description,
        **cost_facts(entry.epsilon, entry.delta),
        "rho": None if zcdp is None else finite_or_none(zcdp.amount),
        "committed": entry.committed,
        "analyst": entry.analyst,
        "period": entry.period,
        "purpose": entry.purpose,
        "steps": entry.steps,
        "digest": entry.digest,
    }


def print_json(kind: Format, facts: Mapping[str, Any]) -> None:
    """Print facts as one object of a format.

    Parameters
    ----------
    kind : Format
    facts : mapping
    """
    typer.echo(json.dumps(kind.wrap(dict(facts)), ensure_ascii=False))


def say(kind: Format, facts: Mapping[str, Any], *lines: str, as_json: bool) -> None:
    """Print what a command did: lines for people, or the same facts as one JSON object.

    Parameters
    ----------
    kind : Format
    facts : mapping
        Numbers in them that are not finite become null.
    *lines : str
    as_json : bool

    Examples
    --------
    >>> made = {"reports": 2, "epsilon": float("inf")}
    >>> say(Format("sfumato.example"), made, "2 reports", as_json=True)
    {"format": "sfumato.example", "version": 1, "reports": 2, "epsilon": null}
    """
    if as_json:
        print_json(kind, {name: finite_or_none(value) for name, value in facts.items()})
        return
    for line in lines:
        typer.echo(line)
