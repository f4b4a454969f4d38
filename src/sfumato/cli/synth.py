"""``sfumato synth``: a synthetic table, whose model is charged to a ledger."""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato import _check
from sfumato._wire import Format as Wire
from sfumato.cli.input.arguments import AsJson
from sfumato.cli.opening import (
    Analyst,
    LedgerAddress,
    Source,
    Types,
    Unit,
    named_sources,
    open_session,
)
from sfumato.cli.output.facts import cost_facts, guarantee_facts, print_json, receipt_facts
from sfumato.cli.output.guarding import check_free, file_of, resolved
from sfumato.cli.output.writing import Format, check_output, format_of, read_text, write, write_text
from sfumato.cli.process.interrupts import interrupts
from sfumato.cli.recorded import recorded
from sfumato.ledger.ledger import Ledger
from sfumato.numerics.rounding import fraction_down
from sfumato.session.session import Session
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.generators.synthetic_model import SyntheticModel
from sfumato.synthetic.marginals.workload import Marginals

__all__ = ["domain_of", "synth"]

_SYNTHESIS = Wire("sfumato.synthesis", 1)
_DELTA = 1e-9
_VALUES = 1 << 30
_ROWS = frozenset({Format.PARQUET, Format.CSV, Format.JSON})


class Method(Enum):
    """How a model is found."""

    AUTO = "auto"
    AIM = "aim"
    MST = "mst"
    INDEPENDENT = "independent"


def synth(
    source: Source,
    *,
    domain: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="What each column may hold, never read off the data: TOML with a table for each column, "
            "JSON of a domain, or a dictionary of variables in CSV.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File for the rows, which ends in .parquet, .csv or .json.")
    ],
    epsilon: Annotated[
        float | None, typer.Option(help="The whole budget's epsilon; an existing ledger knows it.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help=f"The whole budget's delta; {_DELTA:g} where no ledger has one.")
    ] = None,
    spend: Annotated[
        float | None,
        typer.Option(help="This table's epsilon, with as large a part of half of delta; all of it."),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="How a model is found; auto takes the first that can take the columns.")
    ] = Method.AUTO,
    order: Annotated[
        int, typer.Option(help="Tables of so many columns should be right; for aim.", min=1, max=16)
    ] = 2,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Only those tables that have this column.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="How many rows are drawn; the noisy number of rows.", min=0)
    ] = None,
    within_bins: Annotated[
        bool, typer.Option("--within-bins", help="Draw numbers and dates within bins, not the bins' names.")
    ] = False,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the model too, which may be published.")
    ] = None,
    privacy_unit: Unit = None,
    max_rows_contributed: Annotated[
        int, typer.Option(help="How many rows of a unit count, chosen at random.", min=1)
    ] = 1,
    types: Types = None,
    ledger: LedgerAddress = None,
    analyst: Analyst = None,
    as_json: AsJson = False,
) -> None:
    """Write a synthetic table with differential privacy, and charge the ledger before a row is read."""
    style = _style(output)
    paths = named_sources(source, None, None)
    for option, path in (("output", output), ("--model", model)):
        if path is not None:
            check_output(style, path, name=option)
            check_free(path, sources=paths, ledger=file_of(ledger), name=option)
            if resolved(path) == resolved(domain):
                _check.refuse(option, "not be the file of the domain", str(path), "name another file")
    if model is not None and resolved(model) == resolved(output):
        _check.refuse("--model", "not be the file of the rows", str(model), "name another file")
    declared = domain_of(domain)
    workload = Marginals.every(order, target=target)
    workload.cliques(declared)
    known = recorded(ledger)
    delta, spend, part = _spending(epsilon, delta, spend, known)
    _check_rows(rows, len(declared))
    unit = privacy_unit or (["ROW"] if known is None else None)
    opening: dict[str, Any] = {
        "privacy_unit": unit,
        "types": types,
        "epsilon": epsilon,
        "delta": delta if epsilon is not None else 0.0,
    }
    asked: dict[str, Any] = {
        "epsilon": spend,
        "delta": part,
        "workload": workload,
        "method": method.value,
        "max_rows_contributed": max_rows_contributed,
    }
    if known is None and ledger is not None:
        # What is refused leaves no new ledger behind: it is asked of one in memory first.
        with open_session(source, **opening) as trial:
            trial.ledger.charge(trial.synthesis_loss(declared, **asked), delta=part)
    with (
        open_session(source, **opening, ledger=ledger, analyst=analyst) as session,
        interrupts.stating(session.ledger, ledger),
    ):
        found = session.synthesize(declared, **asked)
        again = (
            "the model is charged and lost with this command's budget; pass --ledger to keep both"
            if ledger is None
            else "the model is charged and stored: asking again with this --ledger costs nothing"
        )
        table = found.table(rows, within_bins=within_bins)
        write(table, style, output, again=again)
        if model is not None:
            write_text(model, found.to_json(), name="--model", again=again)
        typer.echo(f"{output}: {table.num_rows:,} rows of {len(declared)} columns", err=True)
        typer.echo(_account(session, found, spend, part, unit), err=True)
        if as_json:
            files = {"output": str(output), "model": None if model is None else str(model)}
            print_json(_SYNTHESIS, {**files, "rows": table.num_rows, **_facts(session, found, spend, part)})


def _facts(session: Session, found: SyntheticModel, spend: float, delta: float) -> dict[str, Any]:
    receipts = [receipt_facts(found.receipt)] if found.receipt else []
    return {
        "guarantee": cost_facts(spend, delta),
        "cost": cost_facts(spend, delta) if receipts else cost_facts(0.0, 0.0),
        "remaining": guarantee_facts(session.account.remaining(delta)),
        "receipts": receipts,
    }


def domain_of(path: Path) -> TableDomain:
    """Return the domain of a file, of the kind that its name ends in.

    Parameters
    ----------
    path : Path

    Returns
    -------
    TableDomain

    Raises
    ------
    ParameterError
        If it cannot be read so.
    """
    ending = path.suffix.lower()
    if ending == ".json":
        return TableDomain.from_json(read_text("--domain", path, "name a file of a domain"))
    return TableDomain.from_dictionary(path) if ending == ".csv" else TableDomain.from_toml(path)


def _check_rows(rows: int | None, columns: int) -> None:
    """Refuse more rows than are drawn at once, before anything is charged."""
    most = _VALUES // columns
    if rows is not None and rows > most:
        remedy = "write the model by --model, and draw parts by SyntheticModel.sample"
        _check.refuse("--rows", f"be at most {most} with {columns} columns", rows, remedy)


def _style(output: Path) -> Format:
    style = format_of(None, output)
    if style not in _ROWS:
        _check.refuse("output", "end in .parquet, .csv or .json", str(output), "write -o rows.parquet")
    return style


def _spending(
    epsilon: float | None, delta: float | None, spend: float | None, known: Ledger | None
) -> tuple[float, float, float]:
    """Return the budget's delta, and epsilon and delta of this table."""
    whole = epsilon
    if epsilon is None and known is not None:
        whole = known.budget.epsilon
        delta = known.budget.delta if delta is None else delta
        if spend is None:
            remedy = "write --spend 0.5, say"
            _check.refuse_state("--spend", "be given where the ledger has the budget", "it is not", remedy)
    delta = _DELTA if delta is None else delta
    spend = whole if spend is None else spend
    if spend is None:
        rule, found = "be given", "there is no ledger that has it"
        _check.refuse_state("--epsilon", rule, found, "write --epsilon 1")
    _check.positive("--spend", spend)
    part = Fraction(str(delta)) / 2  # each of a budget's two filters has half of its delta
    if whole is not None:
        part *= min(Fraction(1), Fraction(str(spend)) / Fraction(str(whole)))
    return delta, spend, fraction_down(part)


def _account(
    session: Session, found: SyntheticModel, spend: float, delta: float, unit: list[str] | None
) -> str:
    cost = f"({spend:g}, {delta:g})-DP"
    paid = f"cost {cost}" if found.receipt else f"cost nothing: the model was paid for before, at {cost}"
    rows = "; each row counts as a person" if unit == ["ROW"] else ""
    forgotten = "" if session.ledger.durable else "; no --ledger: this budget ends here"
    return f"{paid}; left {session.account.remaining(delta)}{rows}{forgotten}"
