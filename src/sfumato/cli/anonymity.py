"""``sfumato anonymity``: how anonymous a table is, and generalising it; for its curator only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from sfumato import _check
from sfumato._wire import Format
from sfumato.anonymity.generalization.full_domain import generalize as optimum
from sfumato.anonymity.hierarchies.dates import Dates
from sfumato.anonymity.hierarchies.intervals import Intervals
from sfumato.anonymity.hierarchies.prefixes import Prefixes
from sfumato.anonymity.privacy_models.base import PrivacyModel
from sfumato.anonymity.privacy_models.closeness import BetaLikeness, DeltaDisclosurePrivacy, TCloseness
from sfumato.anonymity.privacy_models.diversity import (
    AlphaDeassociation,
    DistinctLDiversity,
    EntropyLDiversity,
)
from sfumato.anonymity.report.check import check as measured
from sfumato.anonymity.table.microdata import Microdata
from sfumato.cli.input.arguments import AsJson
from sfumato.cli.output.facts import print_json
from sfumato.errors import ParameterError

__all__ = ["app", "hierarchies_of", "microdata_of"]

app = typer.Typer(
    add_completion=False,
    help="Measure how anonymous a table is, and generalise it, for its curator.",
    no_args_is_help=True,
)

_GENERALIZATION = Format("sfumato.generalization", 1)
_MODELS: dict[str, Callable[[str, float], PrivacyModel]] = {
    "distinct-l": lambda column, least: DistinctLDiversity(column, math.ceil(least)),
    "entropy-l": EntropyLDiversity,
    "alpha": AlphaDeassociation,
    "t": TCloseness,
    "ordered-t": lambda column, t: TCloseness(column, t, "ordered"),
    "hierarchical-t": lambda column, t: TCloseness(column, t, "hierarchical"),
    "beta": BetaLikeness,
    "delta": DeltaDisclosurePrivacy,
}

File: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE", help="A table with a row for each person, Parquet or CSV.")
]
QuasiIdentifiers: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--quasi-identifier",
        "-q",
        metavar="COLUMN[=HIERARCHY]",
        help="A column by which people may be known, and its hierarchy: a CSV file, intervals:5,10,20, "
        "dates:month,year or prefixes:4,3; repeatable.",
    ),
]
Sensitive: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--sensitive",
        "-s",
        metavar="COLUMN[=HIERARCHY]",
        help="A column that must not be learned, and its hierarchy; repeatable.",
    ),
]


@app.callback()
def _group() -> None:
    """Measure how anonymous a table is, and generalise it, for its curator."""


@app.command()
def check(
    file: File,
    *,
    quasi_identifier: QuasiIdentifiers,
    sensitive: Sensitive = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=LEVEL",
            help="The level of its hierarchy at which a column is published; 0, the values; repeatable.",
        ),
    ] = None,
    population: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A row for each person of the population, the table's among them."),
    ] = None,
    population_size: Annotated[
        int | None, typer.Option(help="How many people the table was drawn from.", min=1)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print k-anonymity, l-diversity, t-closeness and the risk of re-identification of a table."""
    data = microdata_of(file, quasi_identifier, sensitive)
    levels = {name: _level(text) for name, text in _pairs("--level", level, "COLUMN=LEVEL")}
    report = measured(data, levels=levels, population=population, population_size=population_size)
    typer.echo(report.to_json() if as_json else str(report))


@app.command()
def generalize(
    file: File,
    *,
    quasi_identifier: QuasiIdentifiers,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The released table, .parquet or .csv.")
    ],
    sensitive: Sensitive = None,
    k: Annotated[int, typer.Option("-k", "--k", help="The least size of an equivalence class.")] = 5,
    suppression: Annotated[float, typer.Option(help="The largest share of suppressed rows.")] = 0.0,
    loss: Annotated[
        str, typer.Option(help="non-uniform-entropy, discernibility, average-class-size or precision.")
    ] = "non-uniform-entropy",
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND:COLUMN=NUMBER", help=f"A further condition, {', '.join(_MODELS)}; repeatable."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the table with the optimal full-domain generalisation, k-anonymous and with the models."""
    data = microdata_of(file, quasi_identifier, sensitive)
    if output.suffix not in {".parquet", ".csv"}:
        _check.refuse("--output", "end in .parquet or .csv", str(output), "name a file of one of them")
    models = [_model(kind, number) for kind, number in _pairs("--model", model, "KIND:COLUMN=NUMBER")]
    best = optimum(data, k, suppression=suppression, loss=loss, models=models)
    best.write(output)
    hidden = int(best.suppressed.sum())
    found = {"levels": best.levels, "loss": best.loss, "classes": best.classes, "suppressed": hidden}
    if as_json:
        more = {"rows": data.rows, "nodes": best.nodes.counts(), "checks": best.checks}
        print_json(_GENERALIZATION, {**found, **more})
        return
    typer.echo("FOR THE CURATOR ONLY: no differential privacy; the levels chosen show something of the rows")
    for name, level in best.levels.items():
        typer.echo(f"{name}: level {level} of {data.hierarchies[name].height}")
    typer.echo(f"{loss}: {best.loss:.10g}")
    typer.echo(f"{best.classes:,} classes; {hidden:,} of {data.rows:,} rows suppressed")
    typer.echo(f"{len(best.nodes):,} nodes, classes computed for {best.checks:,}; written to {output}")


def _model(name: str, number: str) -> PrivacyModel:
    kind, mark, column = name.partition(":")
    if kind not in _MODELS or not mark or not column:
        _check.refuse(
            "--model", f"be KIND:COLUMN=NUMBER, of {', '.join(_MODELS)}", name, "write t:job=0.2, say"
        )
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        _check.refuse("--model", "end in a number", number, "write t:job=0.2, say")
    return _MODELS[kind](column, value)


def microdata_of(file: Path, quasi_identifiers: Sequence[str], sensitive: Sequence[str] | None) -> Microdata:
    """Return the table of a command line.

    Parameters
    ----------
    file : Path
    quasi_identifiers, sensitive : sequence of str
        Each a column, or a column and its hierarchy after ``=``.

    Returns
    -------
    Microdata

    Raises
    ------
    ParameterError
        If a column or hierarchy is not what it must be.
    """
    return Microdata(
        file,
        quasi_identifiers=hierarchies_of("--quasi-identifier", quasi_identifiers),
        sensitive=hierarchies_of("--sensitive", sensitive or ()),
    )


def hierarchies_of(option: str, given: Sequence[str]) -> dict[str, Any]:
    """Return columns with their hierarchies, None where there is none.

    Parameters
    ----------
    option : str
        What messages call it.
    given : sequence of str
        Each a column, or a column and its hierarchy after ``=``: the path of a file, or ``intervals``,
        ``dates`` or ``prefixes``, with their parameters after a colon.

    Returns
    -------
    dict of str to hierarchy

    Raises
    ------
    ParameterError
        If a column is named twice, or parameters are wrong.

    Examples
    --------
    >>> hierarchies_of("--quasi-identifier", ["age=intervals:5,10", "sex"])
    {'age': Intervals(widths=(5.0, 10.0), origin=0), 'sex': None}
    """
    found: dict[str, Any] = {}
    for text in given:
        name, mark, words = text.partition("=")
        if not name or (mark and not words):
            _check.refuse(option, "be COLUMN or COLUMN=HIERARCHY", text, "write age=age.csv, say")
        if name in found:
            _check.refuse(option, "name each column once", name, "leave one out")
        found[name] = _hierarchy(option, words) if mark else None
    return found


def _hierarchy(option: str, words: str) -> Any:
    kind, _, parameters = words.partition(":")
    values = tuple(part.strip() for part in parameters.split(",")) if parameters else ()
    try:
        if kind == "intervals":
            return Intervals(tuple(float(value) for value in values))
        if kind == "prefixes":
            return Prefixes(tuple(int(value) for value in values) or None)
    except ParameterError:
        raise
    except ValueError:
        _check.refuse(option, "have numbers after the colon", words, "write intervals:5,10,20, say")
    if kind == "dates":
        return Dates(values) if values else Dates()
    return words


def _pairs(option: str, given: Sequence[str] | None, shape: str) -> list[tuple[str, str]]:
    found = [text.rpartition("=")[::2] for text in given or ()]
    for (name, value), text in zip(found, given or (), strict=True):
        if not name or not value:
            _check.refuse(option, f"be {shape}", text, "write age=2, say")
    return found


def _level(text: str) -> int:
    if not text.isdecimal():
        _check.refuse("--level", "end in a number", text, "write age=2, say")
    return int(text)
