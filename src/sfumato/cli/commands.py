"""The tree of commands, and errors as one line and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar, Final

import typer

import sfumato
from sfumato.cli.process.failure import failure_line, wants_json
from sfumato.cli.process.groups import LazyCommand, LazyGroup
from sfumato.cli.process.interrupts import INTERRUPTED, interrupts
from sfumato.cli.process.standard import READER_GONE, OutputFailed, reader_gone, watch
from sfumato.cli.process.wording import in_words_of_the_shell
from sfumato.errors import BudgetExceeded, ParameterError, SfumatoError

__all__ = ["FAILED", "REFUSED", "WRONG", "app", "run"]

FAILED: Final = 1
"""Exit code of an error that sfumato raises."""

WRONG: Final = 2
"""Exit code of a command line that is wrong."""

REFUSED: Final = 3
"""Exit code where the budget does not allow the query; nothing was charged."""


_UsageError: Final[type[Exception]] = typer.BadParameter.__bases__[0]
"""Any command line that does not parse."""


def _say(kind: str, message: str, code: int, *, as_json: bool) -> None:
    line = in_words_of_the_shell(" ".join(message.split()))
    typer.echo(failure_line(kind, line, code, as_json=as_json), err=True)


def _code_of(error: SfumatoError) -> int:
    if isinstance(error, BudgetExceeded):
        return REFUSED
    return WRONG if isinstance(error, ParameterError) and not isinstance(error, OutputFailed) else FAILED


class _Commands(LazyGroup):
    """Turns sfumato's own errors into one line; any other error is a fault and keeps its traceback."""

    homes: ClassVar = {
        "sql": LazyCommand(
            "sfumato.cli.sql:answer",
            "Answer a query with differential privacy, and charge the ledger for it.",
        ),
        "explain": LazyCommand(
            "sfumato.cli.sql:explain",
            "Say how a query would be answered, what it would cost and how far off it would be.",
        ),
        "epsilon": LazyCommand(
            "sfumato.cli.accounting:epsilon",
            "Print certified bounds on the epsilon of mechanisms, and all that the number assumes.",
        ),
        "calibrate": LazyCommand(
            "sfumato.cli.accounting:calibrate",
            "Print the smallest noise multiplier whose certified epsilon is at most the wanted one.",
        ),
        "audit": LazyCommand(
            "sfumato.cli.auditing:audit", "Search for an event that refutes a claim of (epsilon, delta)-DP."
        ),
        "check-model": LazyCommand(
            "sfumato.cli.check_model:check_model",
            "Check that no example reaches another in a module, and that the engine clips it right.",
        ),
        "synth": LazyCommand(
            "sfumato.cli.synth:synth",
            "Write a synthetic table with differential privacy, charging the ledger before a row is read.",
        ),
        "train": LazyCommand(
            "sfumato.cli.train:train",
            "Train a classifier with differential privacy, charging the ledger before the first row.",
        ),
        "predict": LazyCommand(
            "sfumato.cli.predicting:predict", "Predict the class of each row by a model of 'sfumato train'."
        ),
        "evaluate": LazyCommand(
            "sfumato.cli.predicting:evaluate",
            "Estimate how many rows a model classifies correctly: a noisy count, which is charged.",
        ),
        "init": LazyCommand(
            "sfumato.cli.configuring.initializing:init",
            "Write a commented configuration with every setting, its meaning and its default.",
        ),
        "ledger": LazyCommand(
            "sfumato.cli.ledger:app",
            "Look at a ledger, check it and export it; for its curator, grant budgets to analysts.",
        ),
        "members": LazyCommand(
            "sfumato.cli.governance.members:app",
            "Say who is curator, analyst, reviewer or auditor of a ledger; for its curator.",
        ),
        "review": LazyCommand(
            "sfumato.cli.governance.review:app",
            "Review stored releases, sign, publish and withdraw them.",
        ),
        "console": LazyCommand(
            "sfumato.cli.governance.console:app",
            "Run the curator's console, and make the tokens by which its members are recognised.",
        ),
        "report": LazyCommand(
            "sfumato.cli.governance.release_pages:report",
            "Make pages of stored releases: numbers, intervals, who is protected, odds in words, receipt.",
        ),
        "survey": LazyCommand("sfumato.cli.survey:app", "Ask a question so that no answer betrays anybody."),
        "local": LazyCommand(
            "sfumato.cli.local:app", "Collect from devices that trust nobody: plan, randomize, count."
        ),
        "shuffle": LazyCommand(
            "sfumato.cli.shuffle:app", "Mix the reports of many people before anybody sees them."
        ),
        "dap": LazyCommand(
            "sfumato.cli.dap:app", "Sum measurements over two aggregators, of whom neither sees one."
        ),
        "anonymity": LazyCommand(
            "sfumato.cli.anonymity:app", "Measure how anonymous a table is, for its curator."
        ),
        "completion": LazyCommand(
            "sfumato.cli.completion.completing:completion",
            "Print a script that completes commands, options and their values in bash, zsh or fish.",
        ),
        "demo": LazyCommand(
            "sfumato.cli.demos.demo:demo",
            "Ask real census data three questions: answered, partly hidden, and in the end refused.",
        ),
    }

    as_json = False

    def main(self, args: Sequence[str] | None = None, *given: Any, **named: Any) -> Any:
        self.as_json = wants_json(sys.argv[1:] if args is None else args)
        return super().main(args, *given, **named)

    def make_context(self, *given: Any, **named: Any) -> Any:
        with self._failing():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        try:
            with self._failing():
                return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            interrupts.say()
            raise typer.Exit(INTERRUPTED) from stopped

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except SfumatoError as error:
            if interrupts.noticed():
                raise KeyboardInterrupt from error
            code = _code_of(error)
            _say(type(error).__name__, str(error), code, as_json=self.as_json)
            raise typer.Exit(code) from error
        except _UsageError as error:
            if not self.as_json:
                raise  # in a frame, with the usage
            usage: Any = error
            _say("UsageError", usage.format_message(), usage.exit_code, as_json=True)
            raise typer.Exit(usage.exit_code) from error


app = typer.Typer(
    cls=_Commands,
    name="sfumato",
    help="Differentially private answers from a table of people, counted in a ledger.",
    no_args_is_help=True,
    add_completion=False,  # 'sfumato completion' starts no Python at each Tab
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sfumato {sfumato.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Differentially private answers from a table of people, counted in a ledger."""


def run() -> None:
    """Run the command line on the arguments of this process."""
    watch()
    try:
        try:
            app()
        finally:
            gone = reader_gone()
    except OutputFailed as error:  # --version and --help print before there is a command
        _say("OutputFailed", str(error), FAILED, as_json=wants_json(sys.argv[1:]))
        sys.exit(FAILED)
    except SystemExit as ended:
        if gone and ended.code in (0, None):
            sys.exit(READER_GONE)
        raise
