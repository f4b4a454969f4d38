"""The entry point: the tree of commands, and errors as one line and an exit code."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import sfumato
from sfumato.cli import accounting, auditing, check_model, demo, ledger, shuffle, sql, survey, train
from sfumato.cli.standard import OutputFailed, watch
from sfumato.errors import BudgetExceeded, SfumatoError

__all__ = ["FAILED", "INTERRUPTED", "REFUSED", "app", "main"]

FAILED = 1
"""Exit code of an error that sfumato raises."""

REFUSED = 3
"""Exit code where the budget does not allow the query; nothing was charged."""

INTERRUPTED = 130
"""Exit code where the keyboard cancelled a query after its charge, as shells count signals."""


def _say(error: SfumatoError) -> None:
    typer.echo(f"sfumato: {' '.join(str(error).split())}", err=True)


class _Commands(TyperGroup):
    """Turns sfumato's own errors into one line; any other error is a fault and keeps its traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SfumatoError as error:
            _say(error)
            raise typer.Exit(REFUSED if isinstance(error, BudgetExceeded) else FAILED) from error
        except KeyboardInterrupt as stopped:
            if stopped.args:  # a query that says what became of its charge
                typer.echo(f"sfumato: {stopped}", err=True)
                raise typer.Exit(INTERRUPTED) from stopped
            raise


app = typer.Typer(
    cls=_Commands,
    name="sfumato",
    help="Differentially private answers from a table of people, counted in a ledger.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(name="sql")(sql.answer)
app.command(name="explain")(sql.explain)
app.command(name="epsilon", help=accounting.EPSILON_HELP)(accounting.epsilon)
app.command(name="calibrate", help=accounting.CALIBRATE_HELP)(accounting.calibrate)
app.command(name="audit", help=auditing.AUDIT_HELP)(auditing.audit)
app.command(name="check-model")(check_model.check_model)
app.command(name="train")(train.train)
app.add_typer(ledger.app, name="ledger")
app.add_typer(survey.app, name="survey")
app.add_typer(shuffle.app, name="shuffle")
app.command(name="demo")(demo.demo)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sfumato {sfumato.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Differentially private answers from a table of people, counted in a ledger."""


def main() -> None:
    """Run the command line on the arguments of this process."""
    watch()
    try:
        app()
    except OutputFailed as error:  # --version and --help print before there is a command
        _say(error)
        sys.exit(FAILED)
