"""``sfumato local``: plan a collection from devices, randomize, count and estimate, all on files."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from sfumato import _check, local, report, server
from sfumato._durable import write_whole
from sfumato._wire import Format
from sfumato.cli.input.arguments import AsJson, PageFile, PageLanguage
from sfumato.cli.input.columns import is_blank, read_column
from sfumato.cli.input.documents import read_document
from sfumato.cli.input.protocols import domain_of, parameters, protocol_of, value_reader
from sfumato.cli.output.facts import say
from sfumato.cli.output.opened import check_page, print_estimate, write_page
from sfumato.cli.output.writing import read_bytes, read_text, refuse_unwritable, write_text
from sfumato.cli.process.service_options import alone, serve_configured, serves
from sfumato.errors import ParameterError
from sfumato.local.base.protocol import LocalProtocol
from sfumato.local.device import DeviceBudget
from sfumato.local.protocol_file import protocol_from_document, protocol_to_document
from sfumato.local.shuffle.protocol import ShuffleProtocol
from sfumato.privacy._outward import text_above
from sfumato.server.hosting.collection_settings import PLAIN

__all__ = ["PORT", "Asked", "app"]

app = typer.Typer(
    add_completion=False,
    help="Collect from devices that trust nobody: plan, randomize, count.",
    no_args_is_help=True,
)

_ESTIMATE, _PLAN = Format("sfumato.local-estimate"), Format("sfumato.local-plan")
_PROTOCOL, _REPORTS = Format("sfumato.local-protocol-written"), Format("sfumato.local-reports")
_BUDGET, _COUNTS = Format("sfumato.local-budget"), Format("sfumato.local-counts")
_COLUMN: Final = "report"
PORT: Final = 8421
"""Of the service, unless another is named."""


Protocol: TypeAlias = Annotated[Path, typer.Argument(help="The protocol's file, JSON, of plan or protocol.")]
Domain: TypeAlias = Annotated[
    str | None, typer.Option("--domain", metavar="A,B,C", help="The categories, separated by commas.")
]
Range: TypeAlias = Annotated[int | None, typer.Option("--range", help="Categories 0, 1, ... N - 1.")]
Epsilon: TypeAlias = Annotated[float, typer.Option("--epsilon", help="Bound on the loss of each report.")]


class Asked(Enum):
    """What a plan is for.

    Examples
    --------
    >>> Asked("ranges")
    <Asked.RANGES: 'ranges'>
    """

    FREQUENCIES = "frequencies"
    RANGES = "ranges"


@app.command()
def plan(
    asked: Annotated[Asked, typer.Argument(help="How frequent categories are, or ranges of ordered ones.")],
    *,
    epsilon: Epsilon,
    people: Annotated[int, typer.Option("--people", help="How many will report.")],
    domain: Domain = None,
    categories: Range = None,
    max_bytes: Annotated[int | None, typer.Option("--max-bytes", help="Of a report.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write the best protocol to this file, JSON.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare protocols by error, bytes and CPU time, before anybody is asked."""
    values = domain_of(domain, categories)
    if values is None:
        _check.refuse("--domain", "be given, or --range", None, "name the categories")
    question = local.Frequencies if asked is Asked.FREQUENCIES else local.Ranges
    choice: Any = local.choose(
        question(values),
        epsilon=epsilon,
        n=people,
        max_bytes=max_bytes,
    )
    facts: dict[str, Any] = {
        "epsilon": epsilon,
        "people": people,
        "plans": [_plan_facts(each) for each in choice.plans],
        "ruled_out": dict(choice.ruled_out),
    }
    lines = [str(choice)]
    if output is not None:
        made = choice.oracle(values) if asked is Asked.FREQUENCIES else choice.protocol(values)
        facts["protocol"], line = _write_protocol(made, output)
        lines.append(line)
    say(_PLAN, facts, *lines, as_json=as_json)


def _plan_facts(plan: Any) -> dict[str, Any]:
    names = ("name", "stddev", "bytes", "client_seconds", "server_seconds")
    return {name: getattr(plan, name) for name in names}


@app.command()
def protocol(
    name: Annotated[str, typer.Argument(help="Such as optimal-local-hashing, hybrid-mean or rappor.")],
    *,
    output: Annotated[Path, typer.Option("--output", help="The protocol's file, JSON.")],
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="Bound on a report's loss.")] = None,
    domain: Domain = None,
    categories: Range = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", metavar="NAME=JSON", help="Further ones, such as bounds=[18,90]."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write down a protocol that you choose yourself."""
    given: dict[str, Any] = {} if epsilon is None else {"epsilon": epsilon}
    if (values := domain_of(domain, categories)) is not None:
        given["domain"] = values
    made = protocol_of(name, given | parameters(parameter or ()))
    if not isinstance(made, LocalProtocol) or isinstance(made, ShuffleProtocol):
        _check.refuse("name", "be that of a protocol without a shuffler", name, "use sfumato shuffle")
    facts, line = _write_protocol(made, output)
    say(_PROTOCOL, facts, line, as_json=as_json)


@app.command()
def randomize(
    file: Protocol,
    source: Annotated[Path, typer.Argument(help="CSV or Parquet, a row for each person; - reads CSV.")],
    *,
    column: Annotated[str, typer.Option("--column", help="The column of the true values.")],
    output: Annotated[Path, typer.Option("--output", help="Reports: Parquet with one binary column.")],
    separator: Annotated[
        str | None, typer.Option("--separator", metavar="C", help="Between columns of a CSV.")
    ] = None,
    budget: Annotated[
        Path | None,
        typer.Option(
            "--budget", help="All rows are one device's, whose budget is in this file; it pays first."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Randomize each value of a column as its device would, in an order that tells nothing."""
    made = _protocol(file)
    cells = read_column(source, column, separator, as_text=True)
    known = [cell for cell in cells if not is_blank(cell)]
    left = len(cells) - len(known)
    if left:
        typer.echo(f"{left} blank {'cell' if left == 1 else 'cells'}: nothing to report, left out", err=True)
    read = value_reader(made.device)
    values = [read(cell) if isinstance(cell, str) else cell for cell in known]
    reports = (
        made.randomize_batch(values)
        if budget is None
        else DeviceBudget.open(budget).randomize_batch(made.device, values)
    ).shuffled()
    table = pa.table({_COLUMN: pa.array(list(reports), pa.binary(made.device.width))})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    _write_bytes("--output", output, sink.getvalue().to_pybytes())
    facts = {"output": str(output), "reports": len(reports), "bytes": made.device.width, "left_out": left}
    facts["epsilon"] = made.privacy_loss.epsilon(0.0)
    line = f"{len(reports)} reports of {made.device.width} bytes; {_price(made)}"
    say(_REPORTS, facts, line, as_json=as_json)


@app.command()
def budget(
    file: Annotated[Path, typer.Argument(help="The budget's file.")],
    *,
    lifetime: Annotated[
        float | None, typer.Option("--lifetime", help="Make it: the cap of all reports of the device.")
    ] = None,
    daily: Annotated[float | None, typer.Option("--daily", help="The cap of a day's reports.")] = None,
    max_epsilon: Annotated[
        float | None, typer.Option("--max-epsilon", help="The largest epsilon of one report.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the budget of one device, with all three caps, or say what is left of it, with none."""
    caps = {"--lifetime": lifetime, "--daily": daily, "--max-epsilon": max_epsilon}
    if lifetime is not None and daily is not None and max_epsilon is not None:
        made = DeviceBudget.create(
            file, lifetime_epsilon=lifetime, daily_epsilon=daily, max_epsilon=max_epsilon
        )
    else:
        for option, cap in caps.items():
            if cap is not None:
                rule = "be given with --lifetime, --daily and --max-epsilon, or left out"
                _check.refuse(option, rule, cap, "a budget has all three caps")
        made = DeviceBudget.open(file)
    left = made.remaining()
    say(_BUDGET, {"lifetime": left.lifetime, "today": left.today}, str(left), as_json=as_json)


@app.command()
@serves
def serve(
    file: Annotated[
        Path | None, typer.Argument(help="The protocol's file, JSON, of plan or protocol.")
    ] = None,
    *,
    config: Path | None,
    options: dict[str, object],
    name: Annotated[
        str | None, typer.Option("--name", help="Tells collections apart, such as two weeks.")
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option("--batch-size", help="Devices whose reports are written out together (1000)."),
    ] = None,
) -> None:
    """Collect reports from devices over HTTP until it is asked to end."""
    if config is not None:
        unused = {"the protocol's file": file, "--name": name, "--batch-size": batch_size}
        serve_configured(config, PLAIN, options, PORT, unused=unused)
        return
    if file is None:
        _check.refuse("the protocol's file", "be given without --config", None, "name it")
    place, listening = alone(options, PORT)
    question = local.device.PublicQuestion(randomizer=_protocol(file).device, name=name or "")
    size = {} if batch_size is None else {"batch_size": batch_size}
    server.serve_local(question, place, listening=listening, **size)


@app.command()
def aggregate(
    file: Protocol,
    sources: Annotated[
        list[Path], typer.Argument(help="Reports (*.parquet), and counts that this command wrote earlier.")
    ],
    *,
    output: Annotated[Path, typer.Option("--output", help="The counts, which merge with others.")],
    column: Annotated[str, typer.Option("--column", help="The column of the reports.")] = _COLUMN,
    processes: Annotated[int, typer.Option("--processes", help="Of which each counts a part.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Count reports, and merge counts, into one file of counts."""
    made = _protocol(file)
    reports = [path for path in sources if path.suffix.lower() in {".parquet", ".pq"}]
    counted = local.aggregate_parquet(made, reports, column, processes=processes)
    for path in sources:
        if path not in reports:
            counted.merge(read_bytes(path))
    _write_bytes("--output", output, counted.to_bytes())
    refused = ", ".join(f"{count} by {reason}" for reason, count in counted.refused.items())
    facts = {"output": str(output), "reports": counted.accepted, "refused": dict(counted.refused)}
    say(_COUNTS, facts, f"{counted.accepted} reports counted; refused: {refused}", as_json=as_json)


@app.command()
def estimate(
    file: Protocol,
    counts: Annotated[list[Path], typer.Argument(help="Files of counts, which are merged.")],
    *,
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    top: Annotated[int, typer.Option("--top", help="How many categories are shown.")] = 20,
    consistent: Annotated[
        str | None, typer.Option("--consistent", help="A step such as norm-sub: shares that sum to 1.")
    ] = None,
    candidates: Annotated[
        Path | None, typer.Option("--candidates", help="For rappor: the strings to look for, one a line.")
    ] = None,
    page: PageFile = None,
    language: PageLanguage = "en",
    as_json: AsJson = False,
) -> None:
    """Estimate from counts, with intervals, and say what each report cost."""
    check_page(page, language)
    made = _protocol(file)
    aggregator = made.aggregator()
    for path in counts:
        aggregator.merge(read_bytes(path))
    if not aggregator.accepted:
        raise ParameterError("counts must be of at least one report, got none; aggregate some first")
    found = _processed(aggregator.estimate(), candidates, consistent)
    fit = getattr(found, "fit", None)
    facts = _ESTIMATE.wrap({"reports": aggregator.accepted, "epsilon": made.privacy_loss.epsilon(0.0)})
    if fit is not None:
        facts |= {"fit": {"total": fit.total, "stddev": fit.stddev, "p_value": fit.p_value}}
    if page is not None:
        write_page(page, report.local_estimate(found, made, language=language))
    print_estimate(found, facts if as_json else None, simulated=aggregator.simulated, level=level, top=top)
    if not as_json:
        typer.echo(f"{aggregator.accepted} reports; {_price(made)}")
        if fit is not None:
            typer.echo(str(fit))


def _processed(found: Any, candidates: Path | None, consistent: str | None) -> Any:
    """Decode what needs candidates, and take a step that makes shares consistent."""
    if isinstance(found, local.RapporEstimate):
        if candidates is None:
            _check.refuse("--candidates", "be given for rappor", None, "name a file of strings, one a line")
        lines = read_text("--candidates", candidates, "name a file of strings, one a line").splitlines()
        found = found.decode([line for line in lines if line])
    elif candidates is not None:
        _check.refuse("--candidates", "be left out", str(candidates), "only rappor has any")
    if consistent is None:
        return found
    if not hasattr(found, "consistent"):
        _check.refuse("--consistent", "be left out", consistent, "only shares have such steps")
    return found.consistent(consistent)


def _price(made: LocalProtocol[Any, Any]) -> str:
    return f"epsilon {text_above(made.privacy_loss.epsilon(0.0))} for each"


def _write_protocol(made: LocalProtocol[Any, Any], output: Path) -> tuple[dict[str, Any], str]:
    """Write a protocol's file, and return what is to be known of it, as facts and as a line."""
    write_text(output, json.dumps(protocol_to_document(made), indent=2) + "\n")
    name, width = type(made).__name__, made.device.width
    facts = {"output": str(output), "name": name, "bytes": width, "epsilon": made.privacy_loss.epsilon(0.0)}
    return facts, f"{name}: {width} bytes a report; {_price(made)}"


def _protocol(file: Path) -> LocalProtocol[Any, Any]:
    return protocol_from_document(repr(str(file)), read_document(file, "protocol", "sfumato local plan"))


def _write_bytes(option: str, path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        refuse_unwritable(option, path, error)
