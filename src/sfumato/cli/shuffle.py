"""``sfumato shuffle``: keys, a collection, its shuffler, its clients, and what the analyst reads."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from sfumato import _check, report, server
from sfumato._durable import new_file
from sfumato._wire import Format
from sfumato.cli.input.arguments import AsJson, PageFile, PageLanguage
from sfumato.cli.input.documents import read_document
from sfumato.cli.input.protocols import domain_of, parameters, protocol_of, value_reader
from sfumato.cli.output.facts import say
from sfumato.cli.output.opened import check_page, print_estimate, write_page
from sfumato.cli.output.writing import read_bytes, read_private, refuse_unwritable, write_text
from sfumato.cli.process.service_options import alone, serve_configured, serves
from sfumato.cli.shuffle_sparse import SUBMITTED, sparse
from sfumato.crypto.hpke import ROLES
from sfumato.errors import ParameterError
from sfumato.local import device, shuffle
from sfumato.privacy._outward import text_above
from sfumato.server.hosting.collection_settings import SHUFFLED
from sfumato.server.shuffler import collection_of

__all__ = ["PORT", "app"]

app = typer.Typer(
    add_completion=False,
    help="Mix the reports of many people before anybody sees them.",
    no_args_is_help=True,
)
app.add_typer(sparse, name="sparse")

_LINES: Final = 256
PORT: Final = 8420
"""Of the service, unless another is named."""

_FORMAT: Final = Format("sfumato.shuffled-estimate")
_KEY, _COLLECTION = Format("sfumato.shuffle-key"), Format("sfumato.shuffle-collection")
File: TypeAlias = Annotated[Path, typer.Argument(metavar="COLLECTION", help="The collection's JSON file.")]
KeyFile: TypeAlias = Annotated[Path, typer.Option("--key", help="The file of the secret key.")]
Delta: TypeAlias = Annotated[float, typer.Option("--delta", help="At which the shuffled epsilon is stated.")]


@app.command()
def keygen(
    role: Annotated[str, typer.Argument(help="analyst or shuffler.")],
    output: Annotated[Path, typer.Argument(help="A new file for the secret key.")],
    cipher: Annotated[str, typer.Option("--cipher", help="Or aes-256-gcm.")] = "chacha20-poly1305",
    as_json: AsJson = False,
) -> None:
    """Make a key: the secret half goes to a file, the public half is printed."""
    if role not in ROLES:
        _check.refuse("role", f"be one of {', '.join(ROLES)}", role, "choose one of them")
    key = shuffle.SecretKey.generate(role, cipher)
    key.to_file(output)
    public = key.public.to_text()
    say(_KEY, {"role": role, "public_key": public}, public, as_json=as_json)


@app.command()
def collection(
    protocol: Annotated[str, typer.Argument(help="Such as optimal-local-hashing.")],
    *,
    batch_size: Annotated[int, typer.Option("--batch-size", help="Clients that are mixed together.")],
    analyst: Annotated[str, typer.Option("--analyst", help="The analyst's public key.")],
    shuffler: Annotated[str, typer.Option("--shuffler", help="The shuffler's public key.")],
    output: Annotated[Path, typer.Option("--output", help="The collection's file, JSON.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="The protocol's.")],
    delta: Delta = 1e-6,
    colluders: Annotated[
        int, typer.Option("--colluders", help="Clients of a batch that may work for the analyst.")
    ] = 0,
    domain: Annotated[str | None, typer.Option("--domain", metavar="A,B,C", help="The categories.")] = None,
    categories: Annotated[int | None, typer.Option("--range", help="Categories 0, 1, ... N - 1.")] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", metavar="NAME=JSON", help="Further ones, such as bounds=[18,90]."),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Tells collections apart.")] = "",
    as_json: AsJson = False,
) -> None:
    """Write down a collection: what is asked, of how many, and for whom it is sealed."""
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "clients": batch_size - colluders}
    if (asked := domain_of(domain, categories)) is not None:
        given["domain"] = asked
    given |= parameters(parameter or ())
    made = shuffle.Collection(
        protocol=protocol_of(protocol, given),
        batch_size=batch_size,
        colluders=colluders,
        analyst=device.PublicKey.from_text(analyst, "analyst"),
        shuffler=device.PublicKey.from_text(shuffler, "shuffler"),
        name=name,
    )
    price, width = made.privacy_loss.epsilon(delta), made.device.envelope_width
    text = json.dumps(made.specification(), indent=2) + "\n"
    write_text(output, text)
    facts = {"output": str(output), "collection": made.device.id.hex(), "bytes": width}
    lines = (f"collection {made.device.id.hex()}", f"each client sends {width} bytes")
    cost = {"epsilon": price, "delta": delta, "clients": made.clients}
    say(_COLLECTION, facts | cost, *lines, _price(made, price, delta), as_json=as_json)


@app.command(name="serve")
@serves
def serve_collection(
    file: Annotated[
        Path | None, typer.Argument(metavar="COLLECTION", help="The collection's JSON file.")
    ] = None,
    *,
    config: Path | None,
    options: dict[str, object],
    key: Annotated[Path | None, typer.Option("--key", help="The file of the secret key.")] = None,
) -> None:
    """Run the shuffler of a collection, or of all collections of a file, until it is asked to end."""
    if config is not None:
        serve_configured(config, SHUFFLED, options, PORT, unused={"COLLECTION": file, "--key": key})
        return
    if file is None or key is None:
        name = "COLLECTION" if file is None else "--key"
        _check.refuse(name, "be given without --config", None, "name the collection's file and the key's")
    place, listening = alone(options, PORT)
    specification = _read(file)
    server.serve(
        collection_of(specification),
        shuffle.SecretKey.from_file(key, "shuffler"),
        place,
        specification=specification,
        listening=listening,
    )


@app.command()
def submit(
    file: File,
    values: Annotated[list[str], typer.Argument(help="True values, one for each client; - reads lines.")],
    *,
    url: Annotated[str, typer.Option("--url", help="The shuffler's service.")],
    secret: Annotated[
        Path | None, typer.Option("--secret", help="A file with one client's secret, made if there is none.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Randomize, seal and send values, each as if from a device of its own: for trials."""
    known = device.PublicCollection.from_specification(_read(file))
    if secret is not None and (len(values) != 1 or values == ["-"]):
        _check.refuse("--secret", "be given with one value", len(values), "a client sends once")
    taken = refused = 0
    with server.Visitor(url) as visitor:
        if visitor.status().get("collection") != known.id.hex():
            raise ParameterError("the service must be of this collection, got another's; check --url")
        for envelopes in _grouped(_envelopes(known, values, secret), known.envelope_width):
            counts = visitor.send(envelopes)
            taken, refused = taken + counts["taken"], refused + counts["refused"]
    facts = {"taken": taken, "refused": refused}
    say(SUBMITTED, facts, f"{taken} taken, {refused} refused", as_json=as_json)


@app.command(name="open")
def open_batches(
    file: File,
    batches: Annotated[list[Path] | None, typer.Argument(help="Released batches.")] = None,
    *,
    key: Annotated[
        Path | None, typer.Option("--key", help="The file of the secret key; none if it was destroyed.")
    ] = None,
    later_key: Annotated[
        list[Path] | None, typer.Option("--later-key", help="Of a key that the analyst changed to.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="The service to collect all batches from.")] = None,
    processes: Annotated[int, typer.Option("--processes", help="How many open records.")] = 1,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="A file that keeps what was opened: it is opened once, by all runs."),
    ] = None,
    merge: Annotated[
        list[Path] | None, typer.Option("--merge", help="Add a state of other batches, opened elsewhere.")
    ] = None,
    delta: Delta = 1e-6,
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    top: Annotated[int, typer.Option("--top", help="How many categories are shown.")] = 20,
    page: PageFile = None,
    language: PageLanguage = "en",
    as_json: AsJson = False,
) -> None:
    """Open batches with the analyst's key, count them, and print the estimate and what it cost."""
    if not (batches or merge) and url is None and state is None:
        _check.refuse("batches", "be named, or --url", None, "name the files of released batches")
    check_page(page, language)
    made = shuffle.Collection.from_specification(_read(file))
    if key is None and not later_key:
        _check.refuse("--key", "be given, or --later-key", None, "name the file of the analyst's key")
    secrets = [shuffle.SecretKey.from_file(path, "analyst") for path in (key, *(later_key or ())) if path]
    with made.opening(secrets if later_key else secrets[0], state=state) as opening:
        for path in merge or ():
            opening.merge(read_bytes(path))
        collected = _collected(url, secrets[-1], opening.numbers)
        opening.add_batches(chain(batches or (), collected), processes=processes)
    if not opening.batches:
        raise ParameterError("there must be a released batch, got none yet; wait for more clients")
    epsilon = made.privacy_loss.epsilon(delta)
    facts = _FORMAT.wrap(
        {
            "batches": opening.batches,
            "records": opening.aggregator.accepted,
            "refused": dict(opening.refused),
            "clients": made.clients,
            "epsilon": epsilon,
            "delta": delta,
            "exposed": list(opening.exposed),
        }
    )
    estimate = opening.estimate()
    fit = getattr(estimate, "fit", None)
    if fit is not None:
        bias = estimate.forged_bias(min(made.colluders * opening.batches, estimate.reports))
        found = {"total": fit.total, "stddev": fit.stddev, "p_value": fit.p_value}
        facts |= {"fit": found, "forged_bias": [bias.lower, bias.upper]}
    if page is not None:
        write_page(page, report.shuffled_estimate(estimate, made, delta=delta, language=language))
    print_estimate(estimate, facts if as_json else None, simulated=estimate.simulated, level=level, top=top)
    if not as_json:
        typer.echo(
            f"{opening.batches} batches, {opening.aggregator.accepted} records; refused: {_counts(opening)}"
        )
        typer.echo(_price(made, epsilon, delta))
        if fit is not None:
            typer.echo(str(fit))
            lies = f"{made.colluders} forged reports in each batch, as many as are tolerated,"
            typer.echo(f"{lies} move a share by {bias.lower:.2g} to {bias.upper:.2g} at most")
    if opening.exposed:
        batches_named = ", ".join(map(str, opening.exposed))
        typer.echo(
            f"more records were refused than {made.colluders} colluders send, in batch {batches_named}: "
            "there the loss may be greater",
            err=True,
        )


def _collected(url: str | None, secret: shuffle.SecretKey, opened: frozenset[int]) -> Iterator[bytes]:
    """Yield the batches of a service that were not opened before."""
    if url is not None:
        with server.Visitor(url) as visitor:
            for number in range(1, visitor.status()["batches"] + 1):
                if number not in opened:
                    yield visitor.batch(number, secret)


def _counts(opening: shuffle.Opening) -> str:
    return ", ".join(f"{count} by {reason}" for reason, count in opening.refused.items())


def _price(made: shuffle.Collection, epsilon: float, delta: float) -> str:
    from_whom = f"{made.clients} of the {made.batch_size} clients of each batch are honest"
    return f"epsilon {text_above(epsilon)} at delta {delta:g} for each client, if at least {from_whom}"


def _read(file: Path) -> dict[str, Any]:
    return read_document(file, "collection", "sfumato shuffle collection")


def _envelopes(known: device.PublicCollection, values: list[str], secret: Path | None) -> Iterator[bytes]:
    lines = (line.rstrip("\n") for line in sys.stdin) if values == ["-"] else iter(values)
    read = value_reader(known.randomizer)
    for line in lines:
        yield known.envelope(read(line), os.urandom(32) if secret is None else _secret(secret))


def _secret(path: Path) -> bytes:
    try:
        new_file(path, os.urandom(32))
    except FileExistsError:
        pass
    except OSError as error:
        refuse_unwritable("--secret", path, error)
    return read_private("--secret", path)


def _grouped(envelopes: Iterator[bytes], width: int) -> Iterator[list[bytes]]:
    size = max(1, min(_LINES, (1 << 20) // width))
    while group := list(islice(envelopes, size)):
        yield group
