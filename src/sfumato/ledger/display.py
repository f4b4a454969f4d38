"""A ledger as a notebook shows it: its last charges, the budget, and what is left."""

from __future__ import annotations

from typing import Any, Final

from sfumato._display import html_table
from sfumato.errors import LedgerError
from sfumato.privacy._outward import text_above

__all__ = ["budget_facts", "ledger_html"]

_SHOWN: Final = 20


def budget_facts(book: Any) -> dict[str, str]:
    """Return the unit, the budget and what is left of it, in words.

    Parameters
    ----------
    book : Ledger or LedgerView
        Of an analyst: what is left for them. One that was closed is described without what is left.
    """
    renews = "" if book.renewal is None else f", {book.renewal}"
    facts = {"privacy unit": book.privacy_unit, "budget": f"{book.budget}{renews}"}
    try:
        facts["left"] = str(book.remaining())
    except LedgerError as error:  # it was closed, or is not to be reached
        facts["left"] = f"not known ({type(error).__name__})"
    if book.simulated:
        facts["simulated"] = "it takes noise from seeds, and protects nobody"
    return facts


def ledger_html(book: Any) -> str:
    """Return the last charges as a table; whoever may read a ledger may read what was asked.

    Parameters
    ----------
    book : Ledger or LedgerView
        Of an analyst: their charges.
    """
    try:
        entries = book.entries()
    except LedgerError:
        entries = ()
    rows = [
        (
            str(entry.sequence),
            entry.time.strftime("%Y-%m-%d %H:%M:%S"),
            " ".join(entry.description.split()),
            text_above(entry.epsilon),
            text_above(entry.delta),
            "yes" if entry.committed else "no",
        )
        for entry in entries[-_SHOWN:]
    ]
    earlier = len(entries) - len(rows)
    return html_table(
        f"Ledger {book.ledger_id}",
        ("#", "time (UTC)", "description", "epsilon", "delta", "answer stored"),
        rows,
        more=f"and {earlier:,} earlier" if earlier else "" if rows else "no charges",
        facts=budget_facts(book),
    )
