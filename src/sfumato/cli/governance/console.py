"""``sfumato console``: the curator's console, and who may enter it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato import server
from sfumato.cli.governance.console_demo import console_demo
from sfumato.cli.governance.console_tokens import tokens
from sfumato.cli.process.service_options import say_now
from sfumato.server.console.settings import read_settings

__all__ = ["app", "demo", "serve"]

app = typer.Typer(
    add_completion=False,
    help="Run the curator's console, and make the tokens by which its members are recognised.",
    no_args_is_help=True,
)
app.add_typer(tokens, name="token")


@app.command()
def serve(
    config: Annotated[Path, typer.Argument(help="TOML: the ledger, the data, where it listens.")],
    port: Annotated[int | None, typer.Option("--port", help="In place of the file's; 0 for any.")] = None,
    json_log: Annotated[bool, typer.Option("--json-log", help="Log in JSON, with times.")] = False,
) -> None:
    """Run the console until it is stopped."""
    server.serve_console(read_settings(config, port=port), say_now, structured_log=json_log)


@app.command()
def demo(
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="A new folder that stays; else one that ends with the demo."),
    ] = None,
    port: Annotated[int, typer.Option("--port", help="Where it listens; 0 for any that is free.")] = 0,
) -> None:
    """Run a console on real census data, with a member for each role, and say how to publish an answer."""
    console_demo(folder, port, say_now)
