"""``sfumato dap``: a task, its two aggregators, its clients, and what the collector reads."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from sfumato import _check
from sfumato._wire import Format
from sfumato.cli.input.arguments import AlwaysJson, AsJson
from sfumato.cli.output.facts import say
from sfumato.cli.output.writing import write_text
from sfumato.cli.process.certificate_pair import Certificate, CertificateKey, certificate_pair
from sfumato.cli.process.service_options import say_now
from sfumato.errors import ParameterError
from sfumato.federated.dap.collection_messages import BatchMode, Interval
from sfumato.federated.dap.report_messages import TASK_ID_SIZE
from sfumato.federated.dap.task import DapTask, unbase64url
from sfumato.federated.dap.version import Role
from sfumato.privacy._outward import text_above
from sfumato.server.dap.dap_client import DapUploader, collect_batch
from sfumato.server.dap.party import DapParty, new_parties, read_task
from sfumato.server.dap.party_secrets import PartySecrets, PublicPart, agreement_number
from sfumato.server.dap.running import serve_dap
from sfumato.server.dap.upload_limits import UploadLimits
from sfumato.server.limits import Limits

__all__ = ["app"]

app = typer.Typer(
    add_completion=False,
    help="Sum measurements over two aggregators, of whom neither sees one (DAP, draft 16).",
    no_args_is_help=True,
)

_GROUP: Final = 256
_FORMAT, _UPLOADED = Format("sfumato.dap-result"), Format("sfumato.dap-uploaded")
_PARTY, _TASK = Format("sfumato.dap-party-written"), Format("sfumato.dap-task-written")
_ROLES: Final = {role.name.lower(): role for role in (Role.LEADER, Role.HELPER, Role.COLLECTOR)}
_UPLOADS: Final = UploadLimits()
_MODES: Final = {mode.name.lower().replace("_", "-"): mode for mode in BatchMode}
PartyFile: TypeAlias = Annotated[Path, typer.Argument(metavar="PARTY", help="The party's JSON file, secret.")]
Epsilon: TypeAlias = Annotated[
    float | None, typer.Option("--epsilon", help="Of each aggregator's own noise, for each batch.")
]


@app.command()
def keygen(
    role: Annotated[str, typer.Argument(help="leader, helper or collector.")],
    output: Annotated[Path, typer.Argument(help="A new file for the secrets.")],
    as_json: AlwaysJson = True,
) -> None:
    """Draw one party's secrets: they go to a file, and the public part for the others is printed."""
    if role not in _ROLES:
        _check.refuse("role", f"be one of {', '.join(_ROLES)}", role, "choose one of them")
    secrets = PartySecrets.generate(_ROLES[role])
    secrets.to_file(output)
    typer.echo(json.dumps(secrets.public.specification()))


@app.command()
def join(
    file: Annotated[Path, typer.Argument(metavar="TASK", help="The task's public JSON file.")],
    secrets: Annotated[Path, typer.Argument(help="The file of this party's secrets.")],
    parts: Annotated[list[Path] | None, typer.Argument(help="Public parts of the other parties.")] = None,
    *,
    output: Annotated[Path, typer.Option("--output", help="A new file for the party, secret.")],
    as_json: AsJson = False,
) -> None:
    """Make one party of a task, from its own secrets and what the others made public."""
    given = [PublicPart.from_file(path) for path in parts or ()]
    party = PartySecrets.from_file(secrets).joined(read_task(file), given)
    party.to_file(output)
    role, task_id = party.role.name.lower(), party.task.task_id.hex()
    agreed = None if party.verify_key is None else agreement_number(party.verify_key)
    facts = {"output": str(output), "role": role, "task": task_id, "agreement": agreed}
    lines = [f"{role} of task {task_id}"]
    if agreed is not None:
        lines.append(f"the other aggregator must see the same number: {agreed}")
    say(_PARTY, facts, *lines, as_json=as_json)


@app.command()
def task(
    vdaf: Annotated[str, typer.Argument(help="Prio3Count, Prio3Sum, Prio3SumVec or Prio3Histogram.")],
    folder: Annotated[Path, typer.Argument(help="A folder for the task's four files.")],
    *,
    min_batch_size: Annotated[int, typer.Option("--min-batch-size", help="Reports of a sum, at least.")],
    epsilon: Epsilon = None,
    delta: Annotated[float, typer.Option("--delta", help="Beside epsilon; 0 for Laplace noise.")] = 0.0,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", metavar="NAME=NUMBER", help="The function's, such as length=4."),
    ] = None,
    batch_mode: Annotated[
        str, typer.Option("--batch-mode", help="time-interval or leader-selected.")
    ] = "time-interval",
    time_precision: Annotated[
        int, typer.Option("--time-precision", help="Seconds of a unit of time.")
    ] = 3600,
    leader: Annotated[str, typer.Option("--leader", help="The leader's URL.")] = "http://127.0.0.1:8421",
    helper: Annotated[str, typer.Option("--helper", help="The helper's URL.")] = "http://127.0.0.1:8422",
    collector: Annotated[
        Path | None, typer.Option("--collector", help="The collector's public part: make no secrets.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write down a new task; without --collector also all secrets of the three parties, for trials."""
    if batch_mode not in _MODES:
        _check.refuse("--batch-mode", f"be one of {', '.join(_MODES)}", batch_mode, "choose one of them")
    parameters: dict[str, Any] = {
        "vdaf": {"type": vdaf, **dict(_number(text) for text in parameter or ())},
        "min_batch_size": min_batch_size,
        "batch_mode": _MODES[batch_mode],
        "time_precision": time_precision,
        "leader": leader,
        "helper": helper,
        "epsilon": epsilon,
        "delta": delta,
    }
    parties: dict[Role, DapParty] = {}
    if collector is None:
        parties = new_parties(**parameters)
        made = parties[Role.LEADER].task
    else:
        part = PublicPart.from_file(collector)
        if part.role != Role.COLLECTOR:
            rule = "be the collector's public part"
            _check.refuse("--collector", rule, part.role.name.lower(), "name the collector's file")
        made = DapTask(task_id=os.urandom(TASK_ID_SIZE), collector=part.key, **parameters)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_text(folder / "task.json", json.dumps(made.specification(), indent=2) + "\n")
    for role, party in parties.items():
        party.to_file(folder / f"{role.name.lower()}.json")
    task_id = made.task_id.hex()
    facts = {"folder": str(folder), "task": task_id, "epsilon": _epsilon(made), "delta": made.delta}
    say(_TASK, facts, f"task {task_id}", _price(made), as_json=as_json)


@app.command()
def serve(
    file: PartyFile,
    *,
    folder: Annotated[Path, typer.Option("--folder", help="Where reports and sums are stored.")],
    host: Annotated[str, typer.Option("--host", help="An address of this machine.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option("--port", help="That of the task's URL unless given.")] = None,
    connections: Annotated[int, typer.Option("--connections", help="Maximum number at a time.")] = 500,
    seconds: Annotated[float, typer.Option("--timeout", help="Seconds for a request to come.")] = 30.0,
    reports: Annotated[
        int, typer.Option("--reports", help="Of the task at most, if the party is the leader.")
    ] = _UPLOADS.reports,
    waiting: Annotated[int, typer.Option("--waiting", help="Reports that wait at most.")] = _UPLOADS.waiting,
    per_address: Annotated[
        int, typer.Option("--per-address", help="Reports an hour of one address.")
    ] = _UPLOADS.address,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
) -> None:
    """Run the leader or the helper of a task until it is asked to end."""
    pair = certificate_pair(certificate, certificate_key)
    serve_dap(
        DapParty.from_file(file),
        folder,
        host=host,
        port=port,
        limits=Limits(connections=connections, per_address=None, seconds=seconds),
        uploads=UploadLimits(reports=reports, waiting=waiting, address=per_address),
        certificate=pair,
        say=say_now,
    )


@app.command()
def upload(
    file: Annotated[Path, typer.Argument(metavar="TASK", help="The task's public JSON file.")],
    values: Annotated[list[str], typer.Argument(help="Measurements as JSON, one a client; - reads lines.")],
    as_json: AsJson = False,
) -> None:
    """Send a report of each measurement, each as if from a client of its own."""
    lines = [line for line in sys.stdin.read().splitlines() if line] if values == ["-"] else values
    measurements = [_measurement(line) for line in lines]
    refused = 0
    with DapUploader(read_task(file)) as uploader:
        for at in range(0, len(measurements), _GROUP):
            refused += len(uploader.send(measurements[at : at + _GROUP]))
    taken = len(measurements) - refused
    say(_UPLOADED, {"taken": taken, "refused": refused}, f"{taken} taken, {refused} refused", as_json=as_json)


@app.command()
def collect(
    file: PartyFile,
    *,
    start: Annotated[int | None, typer.Option("--start", help="Seconds since 1970; now by default.")] = None,
    duration: Annotated[int | None, typer.Option("--duration", help="Seconds; one unit by default.")] = None,
    job: Annotated[str | None, typer.Option("--job", help="An id, to ask again for the same.")] = None,
    seconds: Annotated[float, typer.Option("--wait", help="Seconds until there are enough reports.")] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Ask for a batch's sum, and print it with what it cost."""
    party = DapParty.from_file(file)
    made, number = party.task, None
    if job is not None:
        number = unbase64url(job, 16)
        if number is None:
            _check.refuse("--job", "be 16 bytes in the alphabet of URLs", job, "leave it out for a new one")
    batch = collect_batch(party, _interval(made, start, duration), seconds=seconds, job=number)
    facts: dict[str, Any] = {
        "result": batch.result,
        "reports": batch.reports,
        "start": batch.interval.start * made.time_precision,
        "duration": batch.interval.duration * made.time_precision,
        "epsilon": _epsilon(made),
        "delta": made.delta,
        "noise_stddev": 0.0 if made.noise is None else made.noise.stddev,
    }
    lines = [f"{batch.result} of {batch.reports} reports"]
    if made.noise is not None:
        lines.append(f"noise of both aggregators: standard deviation {made.noise.stddev:.3g}")
    say(_FORMAT, facts, *lines, _price(made), as_json=as_json)


def _interval(made: DapTask, start: int | None, duration: int | None) -> Interval | None:
    if made.batch_mode == BatchMode.LEADER_SELECTED:
        if start is not None or duration is not None:
            rule, found = "be left out", "the leader selects this task's batches"
            _check.refuse_state("--start and --duration", rule, found, "ask without them")
        return None
    unit = made.time_precision
    begin, length = int(time.time()) // unit * unit if start is None else start, duration or unit
    if begin < 0 or begin % unit or length % unit or length < 0:
        rule = f"be whole multiples of {unit} seconds"
        _check.refuse("--start and --duration", rule, (begin, length), "round them")
    return Interval(begin // unit, length // unit)


def _epsilon(made: DapTask) -> float | None:
    """Return what one report replaced is protected by, or None where sums are exact."""
    return None if made.noise is None else made.noise.privacy_loss.epsilon(made.delta)


def _price(made: DapTask) -> str:
    epsilon = _epsilon(made)
    if epsilon is None:
        return "aggregators add no noise: sums are exact, and not differentially private"
    shown = text_above(epsilon)
    return f"epsilon {shown} at delta {made.delta:g} for one report replaced, if one aggregator is honest"


def _number(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    try:
        return name, int(value)
    except ValueError:
        _check.refuse("--parameter", "be NAME=NUMBER", text, "write --parameter length=4")


def _measurement(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ParameterError(
            "measurements must be numbers or lists of numbers, got other text; write them as JSON"
        ) from None
