"""``sfumato console token``: tokens by which members of a ledger are recognised by its console."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
from rich.text import Text

from sfumato._wire import Format
from sfumato.cli.input.arguments import AsJson
from sfumato.cli.output.facts import print_json
from sfumato.cli.output.tables import plain_table, print_table, printable, wide_console
from sfumato.server.console.access.permissions import Scope
from sfumato.server.console.access.token_store import AccessToken, TokenStore

__all__ = ["create", "list_tokens", "revoke", "tokens"]

_TOKEN: Final = Format("sfumato.console-token")
_LISTED: Final = Format("sfumato.console-token-list")

tokens = typer.Typer(help="Make, list and revoke the tokens of a console.", no_args_is_help=True)

File: TypeAlias = Annotated[Path, typer.Argument(metavar="TOKENS", help="The file of the console's tokens.")]


@tokens.command()
def create(
    file: File,
    name: Annotated[str, typer.Argument(help="The member of the ledger that it is for.")],
    scopes: Annotated[
        list[Scope] | None,
        typer.Option("--scope", help="What it may be used for; repeatable. Left out, for reading."),
    ] = None,
    *,
    days: Annotated[int, typer.Option("--days", help="After which it is over, at most 366.")] = 90,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, this once; the roles of its member bound what it may be used for."""
    text, token = TokenStore(file).create(name, scopes or (Scope.READ,), days=days)
    if as_json:
        print_json(_TOKEN, {"token": text, **_facts(token)})
    else:
        typer.echo(text)
        line = f"token {token.id} of {name} is not shown again; it ends {_time(token.expires)}"
        typer.echo(printable(line), err=True)


@tokens.command("list")
def list_tokens(file: File, as_json: AsJson = False) -> None:
    """Show all tokens without their secrets, those that are revoked or over too."""
    found = TokenStore(file).all()
    if as_json:
        print_json(_LISTED, {"tokens": [_facts(token) for token in found]})
        return
    console = wide_console()
    table = plain_table(("id", "member", "scopes", "made", "ends", "state"))
    for token in found:
        times = _time(token.created), _time(token.expires)
        cells = (token.id, token.name, ", ".join(sorted(token.scopes)), *times)
        table.add_row(*(Text(printable(cell)) for cell in (*cells, _state(token))))
    if found:
        print_table(console, table)
    else:
        console.print(Text("no tokens"))


@tokens.command()
def revoke(
    file: File,
    number: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as the list shows it.")],
    as_json: AsJson = False,
) -> None:
    """Take a token back: from now on nobody is recognised by it, and its sessions end."""
    token = TokenStore(file).revoke(number)
    if as_json:
        print_json(_TOKEN, _facts(token))
    else:
        typer.echo(printable(f"token {token.id} of {token.name} is revoked"))


def _facts(token: AccessToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "scopes": sorted(token.scopes),
        "created": _time(token.created),
        "expires": _time(token.expires),
        "state": _state(token),
    }


def _state(token: AccessToken) -> str:
    if token.revoked:
        return "revoked"
    return "usable" if token.usable(time.time()) else "over"


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
