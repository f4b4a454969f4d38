"""The options of commands that serve a collection, and what they are together."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from sfumato import _check
from sfumato.server.hosting.service_settings import PREFIX, service_settings
from sfumato.server.listening import Listening

__all__ = [
    "Connections", "Folder", "Host", "JsonLog", "MetricsHost", "MetricsPort", "PerAddress", "Port", "Proxy",
    "Rate", "Seconds", "alone", "say_now", "stated",
]  # fmt: skip

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
JsonLog: TypeAlias = Annotated[
    bool | None, typer.Option("--json-log/--no-json-log", help="Log in JSON, with times.")
]


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


def say_now(line: str) -> None:
    """Print a line, at once."""
    typer.echo(line)
    sys.stdout.flush()
