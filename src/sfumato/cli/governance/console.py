"""``sfumato console``: the curator's console, and who may enter it."""

from __future__ import annotations

import typer

from sfumato.cli.governance.console_tokens import tokens

__all__ = ["app"]

app = typer.Typer(
    help="Run the curator's console, and make the tokens by which its members are recognised.",
    no_args_is_help=True,
)
app.add_typer(tokens, name="token")
