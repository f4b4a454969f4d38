"""``sfumato members``: who is curator, analyst, reviewer or auditor of a ledger, and whose key signs."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import typer
from rich.text import Text

from sfumato._wire import Format
from sfumato.cli.input.arguments import AsJson, LedgerAddress
from sfumato.cli.output.facts import print_json
from sfumato.cli.output.tables import plain_table, print_table, printable, wide_console
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.log.member_events import Role

__all__ = ["app", "decline", "key", "list_members", "roles"]

_MEMBERS = Format("sfumato.ledger-members", 1)
_MEMBER = Format("sfumato.ledger-member", 1)

app = typer.Typer(
    add_completion=False,
    help="Say who is curator, analyst, reviewer or auditor of a ledger; for its curator.",
    no_args_is_help=True,
)

Name: TypeAlias = Annotated[str, typer.Argument(help="Whose.")]
By: TypeAlias = Annotated[
    str, typer.Option("--by", help="The curator who does it; left out, whoever holds the ledger.")
]


@app.command("list")
def list_members(ledger: LedgerAddress, as_json: AsJson = False) -> None:
    """Show members with roles, keys and failed logins, and the open requests for budgets."""
    with Ledger.read(ledger) as book:
        known, wished = book.members.all(), book.members.budget_requests()
    facts: list[dict[str, Any]] = [
        {
            "name": member.name,
            "roles": sorted(role.value for role in member.roles),
            "public_key": member.public_key,
            "failed_logins": member.failed_logins,
        }
        for member in known
    ]
    if as_json:
        requests = [
            {"analyst": wish.analyst, "budget": wish.budget.to_json(), "purpose": wish.purpose}
            for wish in wished
        ]
        print_json(_MEMBERS, {"members": facts, "budget_requests": requests})
        return
    console = wide_console()
    table = plain_table(("name", "roles", "public key", "failed logins"), right=(3,))
    for member, fact in zip(known, facts, strict=True):
        cells = (member.name, ", ".join(fact["roles"]) or "none", member.public_key or "none")
        table.add_row(*(Text(printable(cell)) for cell in (*cells, str(member.failed_logins))))
    if known:
        print_table(console, table)
    else:
        console.print(Text("no members: whoever holds the ledger does everything"))
    for wish in wished:
        line = f"{wish.analyst} asks for {wish.budget}: {wish.purpose}"
        console.print(Text(printable(line)), soft_wrap=True)


@app.command()
def roles(
    ledger: LedgerAddress,
    name: Name,
    given: Annotated[
        list[Role] | None, typer.Argument(metavar="[ROLE]...", help="All that they have from now on.")
    ] = None,
    *,
    by: By = "",
    as_json: AsJson = False,
) -> None:
    """Give a member these roles and no others: curator, analyst, reviewer, auditor; or none of them."""
    with Ledger.manage(ledger) as book:
        book.members.set_roles(name, given or (), by=by)
    names = sorted({role.value for role in given or ()})
    _say(as_json, {"name": name, "roles": names}, f"{name}: {', '.join(names) or 'none'}")


@app.command()
def key(
    ledger: LedgerAddress,
    name: Name,
    public_key: Annotated[
        str | None, typer.Argument(help="64 hexadecimal digits, as 'sfumato review keygen' printed them.")
    ] = None,
    *,
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke the key: others may have it.")] = False,
    by: By = "",
    as_json: AsJson = False,
) -> None:
    """Register the public key that a member signs with, or revoke it; the member gives it in person."""
    if revoke == (public_key is not None):
        raise typer.BadParameter("pass a public key, or --revoke")
    with Ledger.manage(ledger) as book:
        if public_key is None:
            book.members.revoke_key(name, by=by)
        else:
            book.members.register_key(name, public_key, by=by)
    _say(as_json, {"name": name, "public_key": public_key}, f"{name}: {public_key or 'revoked'}")


@app.command()
def decline(
    ledger: LedgerAddress,
    analyst: Annotated[str, typer.Argument(help="Whose request for a budget.")],
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why: one line, which the analyst sees.")],
    by: By = "",
    as_json: AsJson = False,
) -> None:
    """Decline an analyst's open request for a budget; 'sfumato ledger grant' grants it."""
    with Ledger.manage(ledger) as book:
        book.members.decline_budget(analyst, reason=reason, by=by)
    _say(as_json, {"name": analyst, "declined": reason}, f"{analyst}: declined")


def _say(as_json: bool, facts: dict[str, object], words: str) -> None:
    if as_json:
        print_json(_MEMBER, facts)
    else:
        typer.echo(printable(words))
