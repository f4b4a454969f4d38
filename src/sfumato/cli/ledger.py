"""``sfumato ledger``: look at a ledger and check it, export it, and grant analysts their budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.table import Table
from rich.text import Text

from sfumato import _check
from sfumato._wire import Format as Wire
from sfumato.cli.input.arguments import AlwaysJson, AsJson, JsonStyle, LedgerAddress
from sfumato.cli.output.facts import (
    ANSWER,
    cut_off,
    entry_facts,
    guarantee_facts,
    print_json,
    receipt_facts,
)
from sfumato.cli.output.guarding import check_free, file_of
from sfumato.cli.output.tables import plain_table, print_table, printable, wide_console
from sfumato.cli.output.writing import Format, check_output, finite_or_none, format_of, read_text, write
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.log.accounts import AnalystAccount
from sfumato.ledger.log.chain_head import ChainHead
from sfumato.ledger.log.entries import Entry
from sfumato.ledger.log.export import LedgerExport
from sfumato.ledger.log.verification import Verification
from sfumato.privacy._outward import text_above
from sfumato.queries.release.table import TableRelease
from sfumato.report.statements.guarantee_statement import statement

__all__ = ["accounts", "app", "export", "grant", "head", "key", "release", "show", "verify"]

EXPORTED = ".jsonl"
_SUMMARY, _KEY = Wire("sfumato.ledger-summary", 1), Wire("sfumato.ledger-key", 1)
_ACCOUNTS, _GRANT = Wire("sfumato.ledger-accounts", 1), Wire("sfumato.ledger-grant", 1)
_HEAD = "pass what 'sfumato ledger head' printed"

app = typer.Typer(
    add_completion=False,
    help="Look at a ledger, check it and export it; for its curator, grant budgets to analysts.",
    no_args_is_help=True,
)

Analyst: TypeAlias = Annotated[str | None, typer.Option(help="Only this analyst's charges, and their rest.")]


@app.command()
def show(
    ledger: LedgerAddress,
    delta: Annotated[float, typer.Option(help="Delta of one more answer, for what is left.")] = 0.0,
    analyst: Analyst = None,
    period: Annotated[
        str, typer.Option(help="Where the budget renews: of which period; today's by default.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show the budget, what is left, and every charge."""
    with Ledger.read(ledger) as book:
        budget = book.budget if analyst is None else book.budget_of(analyst)
        renews = "" if book.renewal is None else f", {book.renewal}"
        facts = {"budget": f"{budget}{renews}", "privacy unit": book.privacy_unit}
        if analyst is not None:
            facts["analyst"] = analyst
        left, spent = book.remaining(delta, analyst=analyst or "", period=period), book.spent()
        facts["left"] = str(left)
        if book.renewal is not None:
            facts["lifetime sum"] = str(spent)
        entries = tuple(entry for entry in book.entries() if analyst in (None, entry.analyst))
    if as_json:
        numbers = {
            "budget": budget.to_json(),
            "remaining": guarantee_facts(left),
            "spent": guarantee_facts(spent),
        }
        words: dict[str, object] = {"ledger": book.ledger_id, "privacy_unit": book.privacy_unit}
        words |= {"budget": budget.to_json(), "renewal": renews.strip(", ")}
        charges = {"charges": [entry_facts(entry) for entry in entries]}
        print_json(_SUMMARY, words | numbers | charges)
        return
    console = wide_console()
    for name, value in facts.items():
        console.print(Text(printable(f"{name:<14}{value}")), soft_wrap=True)
    if entries:
        print_table(console, _charges(entries))
    else:
        console.print(Text("no charges yet"))


def _charges(entries: tuple[Entry, ...]) -> Table:
    # Columns that no charge fills are left out: most ledgers have neither analysts nor periods.
    optional = {n: any(getattr(e, n) for e in entries) for n in ("analyst", "period", "purpose")}
    names = ("#", "time (UTC)", "description", "epsilon", "delta", "rho", "committed")
    table = plain_table((*names, *(name for name, shown in optional.items() if shown)), right=(0, 1, 3, 4, 5))
    for entry in entries:
        zcdp = entry.costs.get("zcdp")
        cells = (
            str(entry.sequence),
            entry.time.strftime("%Y-%m-%d %H:%M:%S"),
            " ".join(entry.description.split()),
            text_above(entry.epsilon),
            text_above(entry.delta),
            "" if zcdp is None else text_above(zcdp.amount),
            "yes" if entry.committed else "no",
            *(str(getattr(entry, name)) for name, shown in optional.items() if shown),
        )
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


@app.command()
def release(
    ledger: LedgerAddress,
    number: Annotated[int, typer.Argument(help="Of the charge, as 'show' lists it.")],
    *,
    style: Annotated[
        Format | None, typer.Option("--format", help="How it is written; by --output's ending, else a table.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="File for the release.")] = None,
    no_intervals: Annotated[bool, typer.Option("--no-intervals", help="Leave the intervals out.")] = False,
    as_json: JsonStyle = False,
) -> None:
    """Show a stored release again; needs no data and costs nothing."""
    style = format_of(Format.JSON if as_json else style, output)
    check_output(style, output)
    if output is not None:
        check_free(output, sources={}, ledger=file_of(ledger))
    with Ledger.read(ledger) as book:
        found = book.release(number)
        said = statement(book, number) if style is Format.PARQUET else None
    table = (
        found.to_arrow(intervals=not no_intervals) if isinstance(found, TableRelease) else found.to_arrow()
    )
    table = table if said is None else said.attached(table)
    of: dict[str, object] = {"epsilon": finite_or_none(found.epsilon), "charge": number}
    if isinstance(found, TableRelease) and found.receipt is not None:
        of["receipts"] = [receipt_facts(found.receipt)]
    keys = found.record.keys if isinstance(found, TableRelease) else ()
    again = "it is stored: asking again costs nothing"
    write(table, style, output, keys=keys, again=again, facts=ANSWER.wrap(of))
    if isinstance(found, TableRelease):
        for line in cut_off([found]):
            typer.echo(printable(line), err=True)
    receipt = found.receipt if isinstance(found, TableRelease) else f"charge {number}"
    typer.echo(printable(f"{receipt}; {found.epsilon:g} of epsilon, for each {found.privacy_unit}"), err=True)


@app.command()
def verify(
    ledger: Annotated[
        str, typer.Argument(metavar="LEDGER", help=f"A ledger, or the file of an export (*{EXPORTED}).")
    ],
    *,
    head: Annotated[
        Path | None, typer.Option(help="File with a head exported earlier; shows a ledger that was put back.")
    ] = None,
    public_key: Annotated[
        str | None, typer.Option(help="For an export: the ledger's key, as the curator gave it.")
    ] = None,
    earlier: Annotated[
        Path | None, typer.Option(help="For an export: an earlier one, which this one must continue.")
    ] = None,
    receipt: Annotated[
        list[str] | None,
        typer.Option(metavar="NUMBER:DIGEST", help="For an export: a charge that must be in it; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the whole chain and price every loss again; exit code 1 if anything is wrong."""
    if ledger.endswith(EXPORTED):
        if head is not None:
            _check.refuse("head", "be left out for an export", str(head), "pass --earlier or --receipt")
        exported = LedgerExport.read(ledger)
        before = None if earlier is None else LedgerExport.read(earlier)
        claims = [_receipt_of(text) for text in receipt or ()]
        found = exported.verify(public_key=public_key, earlier=before, receipts=claims)
        _print_report(found, stored="answered charge", as_json=as_json)
        typer.echo(
            f"signed with the key {exported.public_key}" + (", as expected" if public_key else ""),
            err=as_json,
        )
    else:
        if public_key is not None or earlier is not None or receipt:
            rule = f"be the file of an export (*{EXPORTED}) for --public-key, --earlier and --receipt"
            _check.refuse("ledger", rule, ledger, "export the ledger first")
        latest = None if head is None else ChainHead.from_json(read_text("head", head, _HEAD).strip())
        with Ledger.read(ledger) as book:
            found = book.verify(latest)
        _print_report(found, stored="stored release", as_json=as_json)
    if not found.sound:
        raise typer.Exit(1)


def _print_report(found: Verification, *, stored: str, as_json: bool) -> None:
    if as_json:
        typer.echo(found.to_json())
        return
    counts = ((found.events, "event"), (found.charges, "charge"), (found.releases, stored))
    typer.echo("intact: " + ", ".join(f"{n} {thing}{'' if n == 1 else 's'}" for n, thing in counts))
    if found.underpriced:
        numbers = ", ".join(map(str, found.underpriced))
        typer.echo(f"sfumato: charges that cost more today than was recorded: {numbers}", err=True)
    if found.overdrawn:
        typer.echo("sfumato: at today's prices the charges do not fit into the budget", err=True)


@app.command()
def head(ledger: LedgerAddress, as_json: AlwaysJson = True) -> None:
    """Print the chain's head as JSON, to be stored where those who write the ledger cannot."""
    with Ledger.read(ledger) as book:
        typer.echo(book.head().to_json())


@app.command()
def key(ledger: LedgerAddress, as_json: AsJson = False) -> None:
    """Print the public key by which others know this ledger's exports; give it to them in person."""
    with Ledger.read(ledger) as book:
        public_key = book.public_key
    if as_json:
        print_json(_KEY, {"public_key": public_key})
    else:
        typer.echo(public_key)


@app.command()
def export(
    ledger: LedgerAddress,
    output: Annotated[
        Path | None, typer.Option(help=f"A new file, *{EXPORTED}; standard output by default.")
    ] = None,
    as_json: AlwaysJson = True,
) -> None:
    """Write the log for a third party, signed: one line of JSON for each event, without key and releases."""
    if output is not None and output.suffix != EXPORTED:
        _check.refuse("output", f"end in {EXPORTED}", str(output), "so that 'ledger verify' knows an export")
    with Ledger.read(ledger) as book:
        text = book.export()
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        with output.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        _check.refuse("output", "be a new file", str(output), error.strerror or "name another one")


@app.command()
def accounts(ledger: LedgerAddress, as_json: AsJson = False) -> None:
    """Show the analysts' accounts: budgets and numbers of charges."""
    with Ledger.read(ledger) as book:
        known = book.accounts()
    if as_json:
        print_json(_ACCOUNTS, {"accounts": [_account_facts(account) for account in known]})
        return
    console = wide_console()
    if known:
        print_table(console, _accounts(known))
    else:
        console.print(Text("no accounts: the curator alone asks"))


def _account_facts(account: AnalystAccount) -> dict[str, object]:
    budget = None if account.budget is None else account.budget.to_json()
    return {"analyst": account.analyst, "budget": budget, "charges": account.charges}


def _accounts(known: tuple[AnalystAccount, ...]) -> Table:
    table = plain_table(("analyst", "budget", "charges"), right=(2,))
    for account in known:
        budget = "closed" if account.budget is None else str(account.budget)
        table.add_row(*(Text(printable(cell)) for cell in (account.analyst, budget, str(account.charges))))
    return table


@app.command()
def grant(
    ledger: LedgerAddress,
    analyst: Annotated[str, typer.Argument(help="Who may ask.")],
    *,
    epsilon: Annotated[float | None, typer.Option(help="The analyst's epsilon.")] = None,
    delta: Annotated[float, typer.Option(help="The analyst's delta.")] = 0.0,
    rho: Annotated[float | None, typer.Option(help="A zCDP budget, where the dataset has one.")] = None,
    mu: Annotated[float | None, typer.Option(help="A Gaussian-DP budget, where the dataset has one.")] = None,
    close: Annotated[bool, typer.Option("--close", help="Close the account: no more charges.")] = False,
    by: Annotated[
        str, typer.Option("--by", help="The curator who grants it; left out, whoever holds the ledger.")
    ] = "",
    reason: Annotated[str, typer.Option("--reason", help="Why: one line.")] = "",
    as_json: AsJson = False,
) -> None:
    """Open an analyst's account or change its budget, of the dataset's kind; for the curator."""
    options = {"--epsilon": epsilon, "--rho": rho, "--mu": mu, "--close": close or None}
    given = [name for name, value in options.items() if value is not None]
    if len(given) != 1:
        found = f"it is given by {' and '.join(given) or 'none of them'}"
        rule = "be one of --epsilon, --rho, --mu and --close"
        _check.refuse_state("the budget", rule, found, "write --epsilon 1")
    budget: Budget | None = None
    if epsilon is not None:
        budget = Budget.approximate(epsilon=epsilon, delta=delta)
    elif rho is not None:
        budget = Budget.zcdp(rho=rho, delta=delta)
    elif mu is not None:
        budget = Budget.gaussian(mu=mu, delta=delta)
    with Ledger.manage(ledger) as book:
        book.grant(analyst, budget, by=by, reason=reason)
    if as_json:
        print_json(_GRANT, {"analyst": analyst, "budget": None if budget is None else budget.to_json()})
        return
    typer.echo(printable(f"{analyst}: {'closed' if budget is None else budget}"))


def _receipt_of(text: str) -> tuple[int, str]:
    number, _, digest = text.partition(":")
    if not number.isdecimal() or len(digest) < 12:
        _check.refuse("receipt", "be NUMBER:DIGEST, of at least 12 digits", text, "copy it from the receipt")
    return int(number), digest
