"""What the analyst of a collection sees, with intervals, and the page that is for everybody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from sfumato import _check
from sfumato.cli.output.tables import interval, plain_table, print_table, shown, wide_console
from sfumato.cli.output.writing import Format, check_output, finite_or_none, write_bytes
from sfumato.errors import ParameterError
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.frequency.rappor.decoding import Decoded
from sfumato.local.numeric.estimate import MeanEstimate
from sfumato.local.ranges.estimate import RangeEstimate
from sfumato.local.shuffle.estimate import ShuffledMeanEstimate, ShuffledSumEstimate
from sfumato.numerics.interval import Interval

if TYPE_CHECKING:
    from sfumato.report.pages.document import ReleasePage

__all__ = ["check_page", "print_estimate", "write_page"]

Row = tuple[Any, float, float, float]


def print_estimate(
    estimate: Any, facts: dict[str, Any] | None, *, simulated: bool, level: float, top: int
) -> None:
    """Print an estimate as a table; or with facts, as one JSON object with them.

    Parameters
    ----------
    estimate : Estimate, RangeEstimate, Decoded, MeanEstimate, ShuffledMeanEstimate or ShuffledSumEstimate
    facts : dict or None
    simulated : bool
        Whether the randomness of a report followed from a seed.
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
        epsilon = {"epsilon": _plain(facts.get("epsilon"))} if "epsilon" in facts else {}
        typer.echo(
            json.dumps(facts | epsilon | {"simulated": simulated, "level": level, "estimates": rows_shown})
        )
        return
    table = plain_table(["", "estimate", f"{100 * level:g} % interval"], right=[1, 2])
    shares = isinstance(estimate, Estimate)
    if len(rows) > top:
        rows = sorted(rows, key=lambda row: -row[1])[:top]
    for name, value, lower, upper in rows:
        ends = "below detection" if shares and upper <= 0 else interval(lower, upper)
        table.add_row(*(Text(cell) for cell in (shown(name), shown(value), ends)))
    print_table(wide_console(), table)
    if simulated:
        typer.echo("some randomness followed from a seed: nobody was protected by it")


def check_page(page: Path | None, language: str) -> None:
    """Refuse, before anything is counted, a page that could not be written, or a language of none.

    Parameters
    ----------
    page : Path or None
    language : str
    """
    if page is not None:
        check_output(Format.TABLE, page, name="page")
    elif language != "en":
        _check.refuse("language", "stand beside --page", language, "leave it out")


def write_page(page: Path, made: ReleasePage) -> None:
    """Write the page of an estimate.

    Parameters
    ----------
    page : Path
    made : ReleasePage
    """
    write_bytes(page, made.to_bytes(), name="page", again="it costs nothing to make it again")


def _rows(estimate: Any, level: float) -> list[Row]:
    if isinstance(estimate, ShuffledSumEstimate):
        return [("sum", estimate.total, *_ends(estimate.interval(level)))]
    if isinstance(estimate, MeanEstimate | ShuffledMeanEstimate):
        return [("mean", estimate.mean, *_ends(estimate.interval(level)))]
    if not isinstance(estimate, Estimate | RangeEstimate | Decoded):
        raise ParameterError(
            f"estimate must be of shares, a mean or a sum, got a value of type {type(estimate).__name__}; "
            "read the reports in Python with sfumato.local"
        )
    columns = estimate.to_dict(level)
    named, values, lower, upper = list(columns.values())[:4]
    return list(zip(named, *(map(float, column) for column in (values, lower, upper)), strict=True))


def _ends(interval: Interval[float]) -> tuple[float, float]:
    return float(interval.lower), float(interval.upper)


def _plain(value: object) -> object:
    value = finite_or_none(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
