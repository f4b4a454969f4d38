"""What an existing ledger knows of its dataset, in the words of the command line: its unit and its budget."""

from __future__ import annotations

import re
from pathlib import Path

from sfumato.errors import LedgerUnavailable
from sfumato.ledger.budget.renewal import Renewal
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.store.postgres import is_address
from sfumato.session.units import in_words

__all__ = ["budget_words", "recorded", "unit_words"]


def recorded(ledger: str | None) -> Ledger | None:
    """Return an existing ledger's facts: it was read, and is closed; None where there is none yet.

    Parameters
    ----------
    ledger : str or None
        The file, or the address of a database, where a ledger may not be yet.
    """
    if ledger is None or (not is_address(ledger) and not Path(ledger).exists()):
        return None
    try:
        with Ledger.read(ledger) as book:
            return book
    except LedgerUnavailable:
        if is_address(ledger):  # it may be made by this very command
            return None
        raise


def budget_words(known: Ledger) -> tuple[float | None, float, float | None, float | None]:
    """Return a ledger's budget as epsilon, delta, rho and mu.

    Parameters
    ----------
    known : Ledger
    """
    budget = known.budget
    if budget.epsilon is not None:
        return budget.epsilon, budget.delta or 0.0, None, None
    return None, budget.delta or 0.0, budget.rho, budget.mu


def unit_words(words: str, renewal: Renewal | None = None) -> list[str]:
    """Return the columns that a ledger's words for its unit name; none where tables have several units.

    Parameters
    ----------
    words : str
    renewal : Renewal, optional

    Examples
    --------
    >>> unit_words("person_id"), unit_words("row"), unit_words("a: id, b: row")
    (['person_id'], ['ROW'], [])
    >>> unit_words('connected component of "user" and "device"')
    ['user', 'device']
    """
    if renewal is not None:
        words = words.removeprefix("(").rpartition(", ")[0]
    quoted = tuple(re.findall(r'"((?:[^"]|"")*)"', words))
    names = tuple(name.replace('""', '"') for name in quoted) or (words,)
    unit = None if words == "row" else names[0] if len(names) == 1 else names
    return [] if in_words({"data": unit}) != words else ["ROW"] if unit is None else list(names)
