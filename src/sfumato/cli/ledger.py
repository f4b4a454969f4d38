"""``sfumato ledger``: look at a ledger's file and check it; nothing here can change it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.table import Table
from rich.text import Text

from sfumato import _check
from sfumato.cli.tables import plain_table, printable, wide_console
from sfumato.ledger.entry import Entry
from sfumato.ledger.head import Head
from sfumato.ledger.ledger import Ledger

__all__ = ["app", "head", "show", "verify"]

app = typer.Typer(help="Look at a ledger and check it; never changes it.", no_args_is_help=True)

LedgerPath: TypeAlias = Annotated[Path, typer.Argument(metavar="PATH", help="The ledger's file.")]


@app.command()
def show(
    path: LedgerPath,
    delta: Annotated[float, typer.Option(help="Delta of one more answer, for what is left.")] = 0.0,
) -> None:
    """Show the budget, what is left, and every charge."""
    with Ledger.read(path) as ledger:
        facts = {
            "budget": str(ledger.budget),
            "privacy unit": ledger.privacy_unit,
            "left": str(ledger.remaining(delta)),
        }
        entries = ledger.entries()
    console = wide_console()
    for name, value in facts.items():
        console.print(Text(printable(f"{name:<14}{value}")))
    console.print(_charges(entries) if entries else Text("no charges yet"))


def _charges(entries: tuple[Entry, ...]) -> Table:
    names = ("#", "time (UTC)", "description", "epsilon", "delta", "rho", "committed")
    table = plain_table(names, right=(0, 3, 4, 5))
    for entry in entries:
        zcdp = entry.costs.get("zcdp")
        cells = (
            str(entry.sequence),
            entry.time.strftime("%Y-%m-%d %H:%M:%S"),
            " ".join(entry.description.split()),
            f"{entry.epsilon:.6g}",
            f"{entry.delta:.6g}",
            "" if zcdp is None else f"{zcdp.amount:.6g}",
            "yes" if entry.committed else "no",
        )
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


@app.command()
def verify(
    path: LedgerPath,
    head: Annotated[
        Path | None, typer.Option(help="File with a head exported earlier; shows a ledger that was put back.")
    ] = None,
) -> None:
    """Check the whole chain and price every loss again; exit code 1 if anything is wrong."""
    exported = None if head is None else Head.from_json(_text_of(head))
    with Ledger.read(path) as ledger:
        found = ledger.verify(exported)
    counts = ((found.events, "event"), (found.charges, "charge"), (found.releases, "stored release"))
    typer.echo("intact: " + ", ".join(f"{n} {thing}{'' if n == 1 else 's'}" for n, thing in counts))
    if found.underpriced:
        numbers = ", ".join(map(str, found.underpriced))
        typer.echo(f"sfumato: charges that cost more today than was recorded: {numbers}", err=True)
    if found.overdrawn:
        typer.echo("sfumato: at today's prices the charges do not fit into the budget", err=True)
    if not found.sound:
        raise typer.Exit(1)


@app.command()
def head(path: LedgerPath) -> None:
    """Print the chain's head as JSON, to be kept where those who write the ledger cannot."""
    with Ledger.read(path) as ledger:
        typer.echo(ledger.head().to_json())


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        _check.refuse("head", "be a readable file", str(path), "pass what 'sfumato ledger head' printed")
