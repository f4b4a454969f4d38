"""What the analyst of a shuffled collection sees: shares, a mean or a sum, with intervals."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.text import Text

from sfumato.cli.output.tables import interval, plain_table, print_table, shown, wide_console
from sfumato.cli.output.writing import finite_or_none
from sfumato.errors import ParameterError
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.numeric.estimate import MeanEstimate
from sfumato.local.shuffle.estimate import ShuffledMeanEstimate, ShuffledSumEstimate
from sfumato.numerics.interval import Interval

__all__ = ["print_estimate"]

Row = tuple[Any, float, float, float]


def print_estimate(estimate: Any, facts: dict[str, Any] | None, *, level: float, top: int) -> None:
    """Print an estimate as a table; or with facts, as one JSON object with them.

    Parameters
    ----------
    estimate : Estimate, MeanEstimate, ShuffledMeanEstimate or ShuffledSumEstimate
    facts : dict or None
    level : float
        Of the intervals.
    top : int
        How many categories are in the table, the most frequent first.

    Raises
    ------
    ParameterError
        If it is another estimate: those are read in Python.
    """
    rows = _rows(estimate, level)
    if facts is not None:
        names = ("name", "estimate", "lower", "upper")
        rows_shown = [dict(zip(names, map(_plain, row), strict=True)) for row in rows]
        simulated = {"simulated": estimate.simulated}
        epsilon = {"epsilon": _plain(facts.get("epsilon"))} if "epsilon" in facts else {}
        typer.echo(json.dumps(facts | epsilon | simulated | {"level": level, "estimates": rows_shown}))
        return
    table = plain_table(["", "estimate", f"{100 * level:g} % interval"], right=[1, 2])
    if len(rows) > top:
        rows = sorted(rows, key=lambda row: -row[1])[:top]
    for name, value, lower, upper in rows:
        table.add_row(*(Text(cell) for cell in (shown(name), shown(value), interval(lower, upper))))
    print_table(wide_console(), table)
    if estimate.simulated:
        typer.echo("some randomness followed from a seed: nobody was protected by it")


def _rows(estimate: Any, level: float) -> list[Row]:
    if isinstance(estimate, ShuffledSumEstimate):
        return [("sum", estimate.total, *_ends(estimate.interval(level)))]
    if isinstance(estimate, MeanEstimate | ShuffledMeanEstimate):
        return [("mean", estimate.mean, *_ends(estimate.interval(level)))]
    if not isinstance(estimate, Estimate):
        raise ParameterError(
            f"estimate must be of shares, a mean or a sum, got a value of type {type(estimate).__name__}; "
            "read the batches in Python with sfumato.local.shuffle.Collection.opening"
        )
    lower, upper, _ = estimate.interval(level)
    values = map(float, estimate.frequencies)
    ends = zip(map(float, lower), map(float, upper), strict=True)
    return [
        (name, value, *end) for name, value, end in zip(estimate.domain.values, values, ends, strict=True)
    ]


def _ends(interval: Interval[float]) -> tuple[float, float]:
    return float(interval.lower), float(interval.upper)


def _plain(value: object) -> object:
    value = finite_or_none(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
