"""``sfumato init``: a commented configuration that loads as it stands."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from sfumato import _check
from sfumato._wire import Format
from sfumato.cli.configuring.console_file import console_file
from sfumato.cli.configuring.service_file import local_file, shuffle_file
from sfumato.cli.configuring.session_file import session_file
from sfumato.cli.input.arguments import AsJson
from sfumato.cli.local import PORT as LOCAL_PORT
from sfumato.cli.output.facts import say
from sfumato.cli.process.settings import FILE
from sfumato.cli.shuffle import PORT as SHUFFLE_PORT

__all__ = ["Configured", "init"]

_WRITTEN: Final = Format("sfumato.configuration-written", 1)


class Configured(Enum):
    """What a configuration is for.

    Examples
    --------
    >>> Configured("session")
    <Configured.SESSION: 'session'>
    """

    SESSION = "session"
    LOCAL = "local"
    SHUFFLE = "shuffle"
    CONSOLE = "console"


_FILES: Final = {Configured.SESSION: FILE, Configured.CONSOLE: "console.toml"}
"""What is about no files of its own, and where it is written."""


def init(
    kind: Annotated[
        Configured,
        typer.Argument(help="session: of sql, explain and train; others: of that serve command."),
    ] = Configured.SESSION,
    files: Annotated[
        list[Path] | None, typer.Argument(help="For local, protocols; for shuffle, collections.")
    ] = None,
    *,
    key: Annotated[
        Path | None, typer.Option("--key", help="For shuffle: the file of the secret key.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help=f"A new file: {FILE}, collector.toml or console.toml.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a commented configuration with every setting, its meaning and its default."""
    alone = kind in _FILES
    output = Path(_FILES.get(kind, "collector.toml")) if output is None else output
    if bool(files) == alone:
        rule = "be left out" if alone else "be named"
        _check.refuse_state("the files", rule, "they are named" if alone else "none is", "see --help")
    if (key is None) == (kind is Configured.SHUFFLE):
        rule = "be given for shuffle, and for nothing else"
        _check.refuse("--key", rule, None if key is None else str(key), "see --help")
    if key is not None:
        text = shuffle_file(output, files or (), key, SHUFFLE_PORT)
    elif kind is Configured.LOCAL:
        text = local_file(output, files or (), LOCAL_PORT)
    else:
        text = session_file() if kind is Configured.SESSION else console_file(output)
    try:
        content = text.encode()
    except UnicodeEncodeError:
        _check.refuse_state("the files", "have names that are text", "one is not", "rename it")
    try:
        with output.open("xb") as stream:
            stream.write(content)
    except OSError as error:
        _check.refuse("output", "be a new file", str(output), error.strerror or "name another one")
    say(_WRITTEN, {"output": str(output), "for": kind.value}, f"{output} written", as_json=as_json)
