"""The options of commands that serve a collection, and what they are together."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from sfumato import _check, server
from sfumato.cli.process.certificate_pair import Certificate, CertificateKey, certificate_pair
from sfumato.cli.process.shared_options import options_of, put_before
from sfumato.server.hosting.collection_settings import CollectionKind
from sfumato.server.hosting.configuration import Configuration
from sfumato.server.hosting.service_settings import PREFIX, service_settings
from sfumato.server.listening import Listening

__all__ = ["alone", "say_now", "serve_configured", "serves", "service_options", "stated"]

Config: TypeAlias = Annotated[
    Path | None, typer.Option("--config", help="TOML: many collections, and settings of the service.")
]
Folder: TypeAlias = Annotated[
    Path | None, typer.Option("--folder", help="Where reports wait and batches are put.")
]
Host: TypeAlias = Annotated[
    str | None, typer.Option("--host", help="An address of this machine (127.0.0.1).")
]
Port: TypeAlias = Annotated[int | None, typer.Option("--port", help="0 for any that is free.")]
Rate: TypeAlias = Annotated[float | None, typer.Option("--rate", help="Maximum of reports a second.")]
Connections: TypeAlias = Annotated[
    int | None, typer.Option("--connections", help="Maximum number at a time (16384).")
]
PerAddress: TypeAlias = Annotated[
    int | None, typer.Option("--per-address", help="Of them, the maximum from one address (256).")
]
Proxy: TypeAlias = Annotated[
    bool | None, typer.Option("--proxy/--no-proxy", help="A proxy stands before it: no limit per address.")
]
Seconds: TypeAlias = Annotated[
    float | None, typer.Option("--timeout", help="Seconds for a request to come (30).")
]
MetricsPort: TypeAlias = Annotated[
    int | None, typer.Option("--metrics-port", help="Of /metrics, for the operator; 0 for any.")
]
MetricsHost: TypeAlias = Annotated[
    str | None, typer.Option("--metrics-host", help="An address for it (127.0.0.1).")
]
Origin: TypeAlias = Annotated[
    list[str] | None, typer.Option("--origin", help="Of a page that may report; repeatable.")
]
JsonLog: TypeAlias = Annotated[
    bool | None, typer.Option("--json-log/--no-json-log", help="Log in JSON, with times.")
]


def service_options(
    *,
    config: Config = None,
    folder: Folder = None,
    host: Host = None,
    port: Port = None,
    rate: Rate = None,
    connections: Connections = None,
    per_address: PerAddress = None,
    proxy: Proxy = None,
    timeout: Seconds = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = None,
    json_log: JsonLog = None,
    origins: Origin = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
) -> None:
    """Take the options of every command that serves collections; only its signature is used."""


def serves(command: Callable[..., None]) -> Callable[..., None]:
    """Put a service's options before a command's own, which gets ``config`` and the rest as ``options``."""
    shared = options_of(service_options)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        words = {name: given.pop(name) for name in shared}
        certificate_pair(words["certificate"], words["certificate_key"])
        config = words.pop("config")
        command(config=config, options=stated(**words), **given)

    return put_before(run, shared, command, without=("config", "options"))


def stated(**options: object) -> dict[str, object]:
    """Return options by the names of their settings, those that are paths as texts.

    >>> stated(metrics_port=0, folder=Path("store"))
    {'metrics-port': 0, 'folder': 'store'}
    """
    return {
        name.replace("_", "-"): str(value) if isinstance(value, Path) else value
        for name, value in options.items()
    }


def alone(options: Mapping[str, object], default_port: int) -> tuple[Path, Listening]:
    """Return the folder of a single collection and where it is served; the environment counts, too."""
    settings = service_settings(options, os.environ, default_port=default_port)
    if settings.folder is None:
        _check.refuse("--folder", "be given", None, "name a folder of its own for what is collected")
    if settings.default is not None:
        _check.refuse(
            f"{PREFIX}DEFAULT", "come with --config", settings.default, "unset it for one collection"
        )
    return settings.folder, settings.listening(say_now)


def serve_configured(
    config: Path,
    kind: CollectionKind,
    options: Mapping[str, object],
    default_port: int,
    *,
    unused: Mapping[str, object],
) -> None:
    """Serve all collections of a file; what is stated there must not be stated beside it."""
    for name, value in unused.items():
        if value is not None:
            _check.refuse(name, "be left out with --config", str(value), "state it in the file")
    configuration = Configuration(
        file=config,
        kind=kind,
        options=options,
        environment=dict(os.environ),
        default_port=default_port,
    )
    server.serve_collections(configuration, say_now)


def say_now(line: str) -> None:
    """Print a line, at once, where there is a standard output."""
    typer.echo(line)
    if sys.stdout is not None:
        sys.stdout.flush()
