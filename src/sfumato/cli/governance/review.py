"""``sfumato review``: a release's way to the public, with a second person's signature."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.text import Text

from sfumato._wire import Format
from sfumato.cli.governance.signing_key import make_signing_key, read_signing_key
from sfumato.cli.input.arguments import AsJson, LedgerAddress
from sfumato.cli.output.facts import print_json
from sfumato.cli.output.tables import plain_table, print_table, printable, wide_console
from sfumato.cli.output.writing import read_bytes
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.log.approval import Approval
from sfumato.ledger.log.review_roll import Review

__all__ = ["app", "approve", "keygen", "list_reviews", "publish", "request", "return_", "sign", "withdraw"]

_REVIEWS, _REVIEW = Format("sfumato.ledger-reviews", 1), Format("sfumato.ledger-review", 1)
_KEY, _SIGNATURE = Format("sfumato.reviewer-key", 1), Format("sfumato.approval-signature", 1)

app = typer.Typer(
    add_completion=False,
    help="Review stored releases, sign, publish and withdraw them; each step is an event of the ledger.",
    no_args_is_help=True,
)

Number: TypeAlias = Annotated[int, typer.Argument(help="Of the charge, as 'ledger show' lists it.")]
By: TypeAlias = Annotated[str, typer.Option("--by", help="Who does it, a member of the ledger.")]
Comment: TypeAlias = Annotated[str, typer.Option("--comment", help="What is said of it; never of rows.")]
KeyFile: TypeAlias = Annotated[Path, typer.Option("--key", help="The reviewer's private key, in PEM.")]
Passphrase: TypeAlias = Annotated[
    Path | None, typer.Option("--passphrase-file", help="File with what the key is encrypted with.")
]


@app.command()
def keygen(
    key: Annotated[Path, typer.Argument(metavar="KEY", help="A new file for the private key.")],
    passphrase_file: Passphrase = None,
    as_json: AsJson = False,
) -> None:
    """Make a reviewer's key, and print its public half for the curator to register."""
    public_key = make_signing_key(key, _passphrase(passphrase_file)).public_key().public_bytes_raw().hex()
    if as_json:
        print_json(_KEY, {"public_key": public_key})
    else:
        typer.echo(public_key)


@app.command("list")
def list_reviews(
    ledger: LedgerAddress,
    state: Annotated[
        str, typer.Option(help="Only: requested, approved, returned, published or withdrawn.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show the releases that are or were in review, and what happened to each."""
    with Ledger.read(ledger) as book:
        known = book.reviews.all(state)
    if as_json:
        print_json(_REVIEWS, {"reviews": [_facts(review) for review in known]})
        return
    console = wide_console()
    table = plain_table(("#", "state", "time (UTC)", "by", "comment"), right=(0,))
    for review in known:
        for step in review.steps:
            time, comment = step.time.strftime("%Y-%m-%d %H:%M:%S"), " ".join(step.comment.split())
            cells = (str(review.number), step.state, time, step.by, comment)
            table.add_row(*(Text(printable(cell)) for cell in cells))
    if known:
        print_table(console, table)
    else:
        console.print(Text("no reviews"))


@app.command()
def request(
    ledger: LedgerAddress, number: Number, *, by: By, comment: Comment = "", as_json: AsJson = False
) -> None:
    """Ask that a stored release be reviewed."""
    with Ledger.manage(ledger) as book:
        book.reviews.request(number, by=by, comment=comment)
        _say(book.reviews.of(number), as_json=as_json)


@app.command()
def approve(
    ledger: LedgerAddress,
    number: Number,
    *,
    by: By,
    key: KeyFile,
    passphrase_file: Passphrase = None,
    comment: Comment = "",
    as_json: AsJson = False,
) -> None:
    """Sign a release; look at it first, by 'sfumato ledger release'."""
    private_key = read_signing_key(key, _passphrase(passphrase_file))
    with Ledger.manage(ledger) as book:
        approval = book.reviews.approval(number, by=by, comment=comment)
        book.reviews.approve(approval, approval.sign(private_key))
        _say(book.reviews.of(number), as_json=as_json)


@app.command()
def sign(
    statement: Annotated[Path, typer.Argument(help="File with the statement that the console shows.")],
    *,
    key: KeyFile,
    passphrase_file: Passphrase = None,
    as_json: AsJson = False,
) -> None:
    """Sign a release's approval away from the ledger, and print the signature for the console."""
    approval = Approval.from_json(read_bytes(statement).decode("utf-8", "replace").strip())
    private_key = read_signing_key(key, _passphrase(passphrase_file))
    signature = approval.sign(private_key).hex()
    if as_json:
        print_json(_SIGNATURE, {"charge": approval.number, "signature": signature})
    else:
        for line in _shown(approval):
            typer.echo(printable(line), err=True)
        typer.echo(signature)


@app.command("return")
def return_(
    ledger: LedgerAddress, number: Number, *, by: By, comment: Comment, as_json: AsJson = False
) -> None:
    """Return a release to who asked, with what is to be changed."""
    with Ledger.manage(ledger) as book:
        book.reviews.send_back(number, by=by, comment=comment)
        _say(book.reviews.of(number), as_json=as_json)


@app.command()
def publish(ledger: LedgerAddress, number: Number, *, by: By, as_json: AsJson = False) -> None:
    """Publish an approved release."""
    with Ledger.manage(ledger) as book:
        book.reviews.publish(number, by=by)
        _say(book.reviews.of(number), as_json=as_json)


@app.command()
def withdraw(
    ledger: LedgerAddress, number: Number, *, by: By, comment: Comment, as_json: AsJson = False
) -> None:
    """Withdraw a published release: it is no longer offered; who has a copy has it."""
    with Ledger.manage(ledger) as book:
        book.reviews.withdraw(number, by=by, comment=comment)
        _say(book.reviews.of(number), as_json=as_json)


def _facts(review: Review) -> dict[str, object]:
    steps = [
        {"state": step.state, "time": step.time.isoformat(), "by": step.by, "comment": step.comment}
        for step in review.steps
    ]
    facts: dict[str, object] = {"charge": review.number, "state": review.state, "asked_by": review.asked_by}
    if review.approval is not None:
        facts |= {"public_key": review.public_key, "signature": review.signature}
        facts["approval"] = review.approval.to_json()
    return {**facts, "steps": steps}


def _shown(approval: Approval) -> tuple[str, ...]:
    """Return what is signed, so that it can be held against the page that was read: whoever made both."""
    return (
        f"release {approval.number} of ledger {approval.ledger}, by {approval.by}",
        f"SHA-256 of the release: {approval.payload}",
        f"hash of the charge: {approval.receipt}",
        *approval.comment.split("\n"),
    )


def _passphrase(path: Path | None) -> bytes | None:
    if path is None:
        return None
    return read_bytes(path).rstrip(b"\r\n")


def _say(review: Review, *, as_json: bool) -> None:
    if as_json:
        print_json(_REVIEW, _facts(review))
    else:
        typer.echo(printable(f"release {review.number}: {review.state}, by {review.steps[-1].by}"))
