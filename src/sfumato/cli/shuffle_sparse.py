"""``sfumato shuffle sparse``: texts that nobody knows in advance, counted above a threshold."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from sfumato import _check, server
from sfumato._durable import new_file
from sfumato._wire import Format
from sfumato.cli.input.arguments import AsJson
from sfumato.cli.input.documents import read_document
from sfumato.cli.output.facts import say
from sfumato.cli.output.writing import read_bytes, read_private, refuse_unwritable, write_text
from sfumato.crypto.secret_key import SecretKey
from sfumato.errors import ParameterError
from sfumato.local import device
from sfumato.local.shuffle import SparseHistogram, SparseRelease
from sfumato.privacy._outward import text_above

__all__ = ["SUBMITTED", "sparse"]

sparse = typer.Typer(
    add_completion=False, help="Count texts of an unknown domain, above a threshold.", no_args_is_help=True
)

SUBMITTED: Final = Format("sfumato.shuffle-submitted")
"""What a service took."""

_FORMAT, _COLLECTION = Format("sfumato.sparse-counts"), Format("sfumato.sparse-collection-written")
File: TypeAlias = Annotated[Path, typer.Argument(metavar="COLLECTION", help="The collection's JSON file.")]
EncryptionKey: TypeAlias = Annotated[
    Path, typer.Option("--encryption-key", help="The file of the devices' key; not for the shuffler.")
]


@sparse.command(name="collection")
def sparse_collection(
    *,
    batch_size: Annotated[int, typer.Option("--batch-size", help="Clients that are counted together.")],
    analyst: Annotated[str, typer.Option("--analyst", help="The analyst's public key.")],
    shuffler: Annotated[str, typer.Option("--shuffler", help="The shuffler's public key.")],
    output: Annotated[Path, typer.Option("--output", help="The collection's file, JSON.")],
    encryption_key: EncryptionKey,
    epsilon: Annotated[float, typer.Option("--epsilon", help="Of each client.")],
    delta: Annotated[float, typer.Option("--delta", help="Of each client.")] = 1e-6,
    max_keys: Annotated[int, typer.Option("--max-keys", help="Texts that are counted of a client.")] = 1,
    key_bytes: Annotated[int, typer.Option("--key-bytes", help="Bytes of the longest text.")] = 100,
    noise: Annotated[str, typer.Option("--noise", help="laplace, or gaussian for many texts.")] = "laplace",
    name: Annotated[str, typer.Option("--name", help="Tells collections apart.")] = "",
    as_json: AsJson = False,
) -> None:
    """Write down a collection, and draw the devices' encryption key into a new file, or read it from one."""
    secret = _drawn(encryption_key) if not encryption_key.exists() else _encryption_key(encryption_key)
    asked = device.SparseCollection(
        epsilon=epsilon,
        delta=delta,
        batch_size=batch_size,
        max_keys=max_keys,
        key_bytes=key_bytes,
        commitment=device.SparseCollection.commit(secret),
        analyst=device.PublicKey.from_text(analyst, "analyst"),
        shuffler=device.PublicKey.from_text(shuffler, "shuffler"),
        noise=noise,
        name=name,
    )
    histogram = SparseHistogram(asked)
    if not encryption_key.exists():
        _store(encryption_key, secret)
    write_text(output, json.dumps(asked.specification(), indent=2) + "\n")
    facts = {"output": str(output), "collection": asked.id.hex(), "bytes": asked.envelope_width}
    facts |= {"epsilon": epsilon, "delta": delta, "threshold": histogram.mechanism.threshold}
    lines = (f"collection {asked.id.hex()}", f"each client sends {asked.envelope_width} bytes")
    say(_COLLECTION, facts, *lines, _price(histogram), as_json=as_json)


@sparse.command(name="submit")
def submit_keys(
    file: File,
    beyond: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    *,
    url: Annotated[str, typer.Option("--url", help="The shuffler's service.")],
    encryption_key: EncryptionKey,
    texts: Annotated[
        str, typer.Option("--texts", help="A file of the client's texts, one a line; - is standard input.")
    ] = "-",
    as_json: AsJson = False,
) -> None:
    """Encrypt, seal and send the texts of one client, from a file or standard input: for trials."""
    if beyond:  # not shown: they are in the list of processes, which is bad enough
        rule, remedy = "be in a file or on standard input", "pass --texts FILE, or pipe them in"
        _check.refuse_state("texts", rule, "they are arguments, which every process can read", remedy)
    asked = device.SparseCollection.from_specification(_read(file))
    envelope = asked.envelope(_lines(texts), os.urandom(32), _encryption_key(encryption_key))
    with server.Visitor(url) as visitor:
        if visitor.status().get("collection") != asked.id.hex():
            raise ParameterError("the service must be of this collection, got another's; check --url")
        counts = visitor.send([envelope])
    facts = {name: counts[name] for name in ("taken", "refused")}
    say(SUBMITTED, facts, f"{counts['taken']} taken, {counts['refused']} refused", as_json=as_json)


@sparse.command(name="open")
def open_releases(
    file: File,
    releases: Annotated[list[Path] | None, typer.Argument(help="Releases of the shuffler.")] = None,
    *,
    encryption_key: EncryptionKey,
    key: Annotated[Path | None, typer.Option("--key", help="The analyst's key, for --url.")] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="The service to collect all releases from.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the noisy counts of the texts that reached the threshold, batch by batch."""
    if not releases and (url is None or key is None):
        _check.refuse("releases", "be named, or --url and --key", None, "name the files of releases")
    histogram = SparseHistogram(device.SparseCollection.from_specification(_read(file)))
    secret = _encryption_key(encryption_key)
    contents = [read_bytes(path) for path in releases or ()]
    if url is not None and key is not None:
        analyst = SecretKey.from_file(key, "analyst")
        with server.Visitor(url) as visitor:
            numbers = range(1, visitor.status()["batches"] + 1)
            contents += [visitor.batch(number, analyst) for number in numbers]
    found = [histogram.opened(content, secret) for content in contents]
    _print(histogram, found, as_json=as_json)


def _print(histogram: SparseHistogram, found: list[SparseRelease], *, as_json: bool) -> None:
    known, threshold = histogram.collection, histogram.mechanism.threshold
    if as_json:
        batches = [
            {"number": one.number, "counts": dict(one.counts), "unreadable": one.unreadable} for one in found
        ]
        facts = {"batches": batches, "threshold": threshold, "epsilon": known.epsilon, "delta": known.delta}
        typer.echo(json.dumps(_FORMAT.wrap(facts), indent=2))
        return
    for one in found:
        unreadable = f", {one.unreadable} that no device encrypted" if one.unreadable else ""
        typer.echo(f"batch {one.number}, {len(one.counts)} texts{unreadable}")
        for text, count in one.counts.items():
            typer.echo(f"{count:>9}  {text!r}")
    typer.echo(_price(histogram))


def _price(histogram: SparseHistogram) -> str:
    known, mechanism = histogram.collection, histogram.mechanism
    epsilon = text_above(histogram.privacy_loss.epsilon(known.delta))
    shown = f"texts are shown from a noisy count of {mechanism.threshold}"
    return (
        f"epsilon {epsilon} at delta {known.delta:g} for each client; {shown} of {known.batch_size} clients"
    )


def _read(file: Path) -> dict[str, Any]:
    return read_document(file, "collection", "sfumato shuffle sparse collection")


def _lines(place: str) -> list[str]:
    """Return the lines of a file or of standard input; an error shows none of them."""
    try:
        content = (sys.stdin.buffer.read() if place == "-" else read_bytes(Path(place))).decode()
    except UnicodeDecodeError:
        _check.refuse("--texts", "be text in UTF-8", place, "convert it")
    lines = content.removesuffix("\n").split("\n") if content else []
    return [line.removesuffix("\r") for line in lines]


def _drawn(path: Path) -> bytes:
    if not path.parent.is_dir():
        _check.refuse("--encryption-key", "be in a folder that exists", str(path), "make the folder first")
    return device.SparseCollection.encryption_key()


def _store(path: Path, secret: bytes) -> None:
    try:
        new_file(path, secret)
    except OSError as error:
        refuse_unwritable("--encryption-key", path, error)


def _encryption_key(path: Path) -> bytes:
    content = read_private("--encryption-key", path)
    if len(content) != 32:
        rule = "be a file of 32 bytes"
        _check.refuse(
            "--encryption-key", rule, str(path), "use the one that `shuffle sparse collection` wrote"
        )
    return content
