"""How an error is printed: one line for people, or one JSON object where ``--json`` was asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Final

from sfumato._wire import Format

__all__ = ["failure_line", "wants_json"]

_ERROR: Final = Format("sfumato.error", 1)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, by ``--json`` or ``--format json``, before it is parsed.

    Parameters
    ----------
    arguments : sequence of str
        What follows the program's name.

    Examples
    --------
    >>> wants_json(["ledger", "show", "acs.ledger", "--json"]), wants_json(["sql", "--", "--json"])
    (True, False)
    """
    words = list(takewhile(lambda word: word != "--", arguments))
    named = "--json" in words or "--format=json" in words
    return named or any(pair == ("--format", "json") for pair in pairwise(words))


def failure_line(error: str, message: str, code: int, *, as_json: bool) -> str:
    """Return the line of standard error that says what went wrong.

    Parameters
    ----------
    error : str
        The kind: the name of an exception of `sfumato.errors`, ``UsageError`` or ``Interrupted``.
    message : str
        What was wrong, and the remedy.
    code : int
        The exit code.
    as_json : bool

    Examples
    --------
    >>> failure_line("BudgetExceeded", "the budget is spent", 3, as_json=False)
    'sfumato: the budget is spent'
    >>> failure_line("BudgetExceeded", "the budget is spent", 3, as_json=True)  # doctest: +ELLIPSIS
    '{"format": "sfumato.error", "version": 1, "error": "BudgetExceeded", ..., "exit_code": 3}'
    """
    if not as_json:
        return f"sfumato: {message}"
    facts = {"error": error, "message": message, "exit_code": code}
    return json.dumps(_ERROR.wrap(facts), ensure_ascii=False)
