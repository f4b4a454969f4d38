"""``sfumato predict`` and ``sfumato evaluate``: a trained classifier on rows, and how often it is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from sfumato import _check, learning
from sfumato._wire import Format as Wire
from sfumato.cli.input.arguments import AlwaysJson, JsonStyle
from sfumato.cli.opening import Types
from sfumato.cli.output.guarding import check_free
from sfumato.cli.output.writing import Format, check_output, format_of, write
from sfumato.cli.process.interrupts import interrupts
from sfumato.cli.train import budget_of, read_rows, session_of_rows
from sfumato.learning.reports.evaluation import EvaluationRecord
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.privacy.neighboring import Neighboring
from sfumato.session.session import Session

__all__ = ["evaluate", "predict"]

_EVALUATION, _PREDICTIONS = Wire("sfumato.evaluation", 1), Wire("sfumato.predictions", 1)

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="What 'sfumato train' wrote.")]


def predict(
    model: ModelFile,
    source: Annotated[Path, typer.Argument(help="A CSV or Parquet file with the model's columns.")],
    *,
    style: Annotated[Format | None, typer.Option("--format", help="How predictions are written.")] = None,
    output: Annotated[Path | None, typer.Option(help="File for the predictions.")] = None,
    as_json: JsonStyle = False,
) -> None:
    """Predict the class of each row; costs nothing, and shows the rows' own values to whoever reads it."""
    style = format_of(Format.JSON if as_json else style, output)
    check_output(style, output)
    if output is not None:
        check_free(output, sources={"private data": str(source)}, ledger=None)
    trained = learning.TrainedTable.load(model)
    columns = trained.columns
    rows = read_rows(source, [*columns.numbers, *columns.categories])
    classes, probabilities = trained.predict(rows)
    table = pa.table({columns.target: classes, "probability": probabilities})
    write(table, style, output, again="nothing was charged", facts=_PREDICTIONS.wrap({}))


def evaluate(
    model: ModelFile,
    source: Annotated[Path, typer.Argument(help="A CSV or Parquet file; each row is protected.")],
    *,
    spend: Annotated[float, typer.Option(help="This evaluation's epsilon.")],
    epsilon: Annotated[
        float | None, typer.Option(help="The whole budget's epsilon; an existing ledger knows it.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="The whole budget's delta.")] = None,
    rows: Annotated[
        int | None,
        typer.Option(help="A public number of rows; left out, the file's own is public, as for train."),
    ] = None,
    types: Types = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="FILE|URL", help="Keeps the budget; left out, it is forgotten.")
    ] = None,
    analyst: Annotated[str | None, typer.Option(help="Whose account is charged as well.")] = None,
    as_json: AlwaysJson = True,
) -> None:
    """Estimate how many rows are classified correctly: a noisy count, charged first; free again later."""
    epsilon, delta = budget_of(epsilon, delta, ledger)
    if rows is not None:
        _check.integer("rows", rows, minimum=1)
    trained = learning.TrainedTable.load(model)
    # One row more, or one that is emptied, moves the number of correct rows by at most 1.
    relation = Neighboring.ZERO_OUT if rows is None else Neighboring.ADD_REMOVE
    noise = Laplace.calibrated(sensitivity=1, epsilon=spend, neighboring=relation)
    with (
        session_of_rows(
            source, epsilon, delta, rows=rows, types=types, ledger=ledger, analyst=analyst
        ) as session,
        interrupts.stating(session.ledger, ledger),
    ):
        request = trained.request(epsilon=spend, rows=rows)
        committed = session.account.find(request)
        if committed is None:
            record = _released(trained, source, noise, rows=rows, request=request, session=session)
        else:
            record = EvaluationRecord.from_bytes(committed)
    facts = {
        "correct": record.correct,
        "rows": record.rows,
        "accuracy": record.accuracy,
        "lower": record.lower,
        "upper": record.upper,
        "epsilon": record.epsilon,
        "charge": record.charge,
    }
    typer.echo(json.dumps(_EVALUATION.wrap(facts), indent=2))
    cost = f"cost {spend:g} of epsilon" if committed is None else "cost nothing, paid before"
    typer.echo(
        f"right on {100 * record.accuracy:.1f} % of {record.rows} rows (95 % interval "
        f"{100 * record.lower:.1f} to {100 * record.upper:.1f} %); {cost}, charge {record.charge}",
        err=True,
    )


def _released(
    trained: learning.TrainedTable,
    source: Path,
    noise: Laplace,
    *,
    rows: int | None,
    request: str,
    session: Session,
) -> EvaluationRecord:
    """Charge, count, add noise, and store the answer before anybody sees it."""
    columns, account = trained.columns, session.account
    charge = {
        "loss": noise.privacy_loss,
        "delta": 0.0,
        "request": request,
        "description": f"sfumato evaluate {columns.target}",
        "draws": True,
    }
    (receipt,) = account.charge_all([charge])
    table = read_rows(source, [columns.target, *columns.numbers, *columns.categories])
    correct = trained.correct(table)
    receipt = account.claim_draw(receipt, charge)
    release = noise.release(correct)
    count = table.num_rows if rows is None else rows
    lower, upper = (max(0.0, min(1.0, float(end) / max(count, 1))) for end in release.interval(0.95)[:2])
    record = EvaluationRecord(
        correct=int(release.value),
        rows=count,
        lower=lower,
        upper=upper,
        epsilon=noise.privacy_loss.epsilon(0.0),
        loss=noise.privacy_loss,
        privacy_unit=session.privacy_unit,
        simulated=False,
        charge=receipt.sequence,
    )
    account.commit(receipt, record.to_bytes())
    return record
