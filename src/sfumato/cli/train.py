"""``sfumato train``: a classifier of a table's rows, trained privately and charged to a ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet
import typer

from sfumato import _check, learning
from sfumato.cli.input.arguments import AlwaysJson
from sfumato.cli.opening import Types, types_of
from sfumato.cli.output.guarding import check_free, file_of, resolved
from sfumato.cli.output.writing import Format, check_output
from sfumato.cli.process.interrupts import interrupts
from sfumato.cli.recorded import recorded
from sfumato.errors import SourceError
from sfumato.frames.delimited import CSV_SUFFIXES, Delimited
from sfumato.privacy._outward import text_above
from sfumato.privacy.neighboring import Neighboring
from sfumato.session.connection import connect
from sfumato.session.session import Session
from sfumato.session.units import ROW

__all__ = ["budget_of", "read_rows", "session_of_rows", "train"]


def train(
    source: Annotated[Path, typer.Argument(help="A CSV or Parquet file; each row is protected.")],
    *,
    target: Annotated[
        str, typer.Option(metavar="NAME=VALUE,VALUE", help="The column to predict, with its public classes.")
    ],
    output: Annotated[Path, typer.Option(help="File for the model: a state_dict of PyTorch.")],
    epsilon: Annotated[
        float | None, typer.Option(help="The whole budget's epsilon; an existing ledger knows it.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="The whole budget's delta.")] = None,
    number: Annotated[
        list[str] | None, typer.Option(metavar="NAME=LOWER:UPPER", help="A column of numbers; repeatable.")
    ] = None,
    category: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE,VALUE", help="A column of texts; repeatable.")
    ] = None,
    spend: Annotated[float | None, typer.Option(help="This run's epsilon; half of the budget's.")] = None,
    hidden: Annotated[str, typer.Option(help="Widths of hidden layers, such as 32,16; none: logistic.")] = "",
    epochs: Annotated[int, typer.Option(help="Passes over the rows, on average.")] = 20,
    batch_size: Annotated[int, typer.Option(help="Expected rows of a batch.")] = 256,
    learning_rate: Annotated[float, typer.Option(help="Of the Adam optimizer.")] = 0.02,
    clip_norm: Annotated[float, typer.Option(help="What each row's gradient is clipped to.")] = 1.0,
    rows: Annotated[
        int | None,
        typer.Option(
            help="A public number of rows, such as a noisy count, from which batches and noise follow. "
            "Left out, the file's own number is public, and the ledger is about zeroing a row out."
        ),
    ] = None,
    types: Types = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="FILE|URL", help="Keeps the budget; left out, it is forgotten.")
    ] = None,
    analyst: Annotated[str | None, typer.Option(help="Whose account is charged as well.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the run is saved as it goes. After an interruption the same command goes on from "
            "it, and charges nothing; removed once the model is written. Needs --ledger.",
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --checkpoint: the key that seals its secrets; beside the ledger, if that is a file.",
        ),
    ] = None,
    as_json: AlwaysJson = True,
) -> None:
    """Train a classifier with differential privacy, and charge the ledger before the first row is used."""
    check_output(Format.JSON, output)
    check_free(output, sources={"private data": str(source)}, ledger=file_of(ledger))
    _check_checkpoint(checkpoint, key_file, source=source, ledger=ledger, output=output)
    columns = learning.Columns(
        **_target(target),
        numbers=dict(_bounds(text) for text in number or ()),
        categories=dict(_values("category", text) for text in category or ()),
    )
    epsilon, delta = budget_of(epsilon, delta, ledger)
    widths = [_whole(width) for width in hidden.split(",") if width]
    with (
        session_of_rows(
            source, epsilon, delta, rows=rows, types=types, ledger=ledger, analyst=analyst
        ) as session,
        interrupts.stating(session.ledger, ledger, checkpoint=checkpoint),
    ):
        trained = learning.train_table(
            columns.read(read_rows(source, [columns.target, *columns.numbers, *columns.categories])),
            columns,
            hidden=widths,
            epsilon=epsilon / 2 if spend is None else spend,
            delta=delta / 4,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            clip_norm=clip_norm,
            ledger=session.account,
            description=f"sfumato train {columns.target}",
            rows=rows,
            checkpoint=checkpoint,
            key_file=key_file,
        )
    try:
        trained.save(output)
    except OSError as error:
        again = "train again" if checkpoint is None else "repeat the command, which costs nothing"
        raise SourceError(
            f"output must be a file that can be written, got {str(output)!r} ({error.strerror}); the run is "
            f"charged all the same: name a place that has room, and {again}"
        ) from error
    typer.echo(json.dumps(trained.card, indent=2))
    typer.echo(_sentence(trained.card, output, forgotten=ledger is None), err=True)


def _sentence(card: dict[str, Any], output: Path, *, forgotten: bool) -> str:
    """Return what a card says, for people."""
    guarantee, run = card["privacy"]["guarantee"], card["privacy"]["run"]
    charge = (
        "no --ledger: its charge is forgotten" if forgotten else "charged as a whole before its first step"
    )
    lost = card["training"].get("lost_steps", 0)
    without = f"; {lost} of these steps were lost by interruptions, and are paid for" if lost else ""
    return (
        f"{output}: whoever has this model learns about each row at most "
        f"({text_above(guarantee['epsilon'])}, {text_above(guarantee['delta'])})-DP, by {run['steps']} noisy "
        f"steps; {charge}{without}"
    )


def _check_checkpoint(
    checkpoint: Path | None, key_file: Path | None, *, source: Path, ledger: str | None, output: Path
) -> None:
    """Refuse, before anything is charged, a checkpoint that cannot be written or counted."""
    if checkpoint is None:
        if key_file is not None:
            _check.refuse("--key-file", "be given with --checkpoint", str(key_file), "leave it out")
        return
    if ledger is None:
        rule = "be given with --ledger, which counts the steps"
        _check.refuse("--checkpoint", rule, str(checkpoint), "write --ledger FILE")
    places = [checkpoint, checkpoint.with_name(f"{checkpoint.name}.secrets")]
    for path in places:
        check_output(Format.JSON, path, name="--checkpoint")
        check_free(path, sources={"private data": str(source)}, ledger=file_of(ledger), name="--checkpoint")
    if resolved(output) in map(resolved, places):
        _check.refuse("--checkpoint", "not be the model's file", str(checkpoint), "name another file")


def session_of_rows(
    source: Path,
    epsilon: float,
    delta: float,
    *,
    rows: int | None,
    types: Types,
    ledger: str | None,
    analyst: str | None,
) -> Session:
    """Open a file each row of which is protected: under add/remove if the number of rows is a stated one."""
    return connect(
        str(source),
        privacy_unit=ROW,
        epsilon=epsilon,
        delta=delta,
        types=types_of(types or (), ["data"]),
        ledger=ledger,
        analyst=analyst,
        neighboring=Neighboring.ZERO_OUT if rows is None else Neighboring.ADD_REMOVE,
    )


def budget_of(epsilon: float | None, delta: float | None, ledger: str | None) -> tuple[float, float]:
    """Return the whole budget, as it is given or as the ledger has it."""
    known = recorded(ledger) if epsilon is None else None
    if known is not None:
        epsilon, delta = known.budget.epsilon, known.budget.delta
    if epsilon is None or delta is None:
        found = "no --ledger has them" if ledger is None else "the ledger has none yet"
        _check.refuse_state("--epsilon and --delta", "be given", found, "write --epsilon 2 --delta 1e-6")
    return epsilon, delta


def read_rows(source: Path, names: list[str]) -> pa.Table:
    """Return the table; of a CSV the named columns as texts."""
    try:
        if source.name.lower().endswith(CSV_SUFFIXES):
            return Delimited(source).read(names).read_all()
        return pyarrow.parquet.read_table(source)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"source must be a CSV or Parquet file, got {str(source)!r}; check it") from error


def _values(option: str, text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    if not name or not equals:
        _check.refuse(option, "be NAME=VALUE,VALUE", text, f"write --{option} color=red,blue")
    return name, [value.strip() for value in values.split(",") if value.strip()]


def _target(text: str) -> dict[str, Any]:
    name, classes = _values("target", text)
    return {"target": name, "classes": classes}


def _bounds(text: str) -> tuple[str, tuple[float, float]]:
    name, _, bounds = text.partition("=")
    lower, colon, upper = bounds.partition(":")
    try:
        found = float(lower), float(upper)
    except ValueError:
        colon = ""
    if not name or not colon:
        _check.refuse("number", "be NAME=LOWER:UPPER", text, "write --number age=0:100")
    return name, found


def _whole(text: str) -> int:
    if not text.strip().isdecimal():
        _check.refuse("hidden", "be whole numbers with commas between", text, "write --hidden 32,16")
    return int(text)
