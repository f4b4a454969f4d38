"""Errors of the library in the words of the command line."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["PHRASES", "in_words_of_the_shell"]

PHRASES: Final = {
    r"Ledger\.manage\(\.\.\.\)\.grant\(analyst, budget\)": "sfumato ledger grant LEDGER ANALYST --epsilon E",
    r"make the ledger with Ledger\.open or sfumato\.connect": "make it by 'sfumato sql --ledger'",
    r"new_version=True \(--new-version\)": "--new-version",
    r"pass one of the dataset's kind, such as Budget\.\w+\([a-z=0-9.]*\)":
        "write --epsilon, --rho or --mu as the dataset's budget has it",
    r"make it by the same constructor \(with the same orders\)":
        "write --epsilon, --rho or --mu as the dataset's budget has it",
    r"; pass ledger=, or leave it out": "; pass --ledger, or leave --head out",
    r" \(in Python sfumato\.ROW\)": "",
    r"entries\(\) says which are committed": "'sfumato ledger show' says which are",
    r", or (list the groups with|pass) public_groups=": "",
    r"pass params=\{'([^']*)': \.\.\.\}": r"pass --param \1=VALUE",
    r"pass types=\{'age': 'INT64', 'day': 'DATE'\}": "pass --type age=INT64 --type day=DATE",
    r"declare types=\{[^}]*\}+ on connecting \(on the command line ([^)]*)\)": r"pass \1",
    r"pass \{[^}]*: path\} \(on the command line ([^)]*)\)": r"pass \1",
    r"pass columns=\['person', 'state'\], or columns=\{'people': \['person', 'state'\]\}":
        "pass --columns person,state, or --columns people=person,state",
    r"leave it out, and call session\.cancel\(\) from a thread": "leave it out: Ctrl-C stops a query",
    r"pass (RecordOptions\(key_file=\)|key_file=)": "pass --key-file FILE",
    r"pass seconds, such as statement_timeout=600": "pass --statement-timeout 600",
}  # fmt: skip
"""What the library says to those who write Python, and what it is called here."""

_OPTIONS: Final = (
    "privacy_unit", "new_version", "batch_size", "learning_rate", "clip_norm", "sampling_probability",
    "statement_timeout", "lock_timeout", "checkpoint", "epochs", "hidden",
)  # fmt: skip


def in_words_of_the_shell(message: str) -> str:
    """Return an error's message with options in the place of Python's parameters.

    Parameters
    ----------
    message : str

    Returns
    -------
    str

    Examples
    --------
    >>> in_words_of_the_shell("privacy_unit must be a column; pass new_version=True (--new-version)")
    '--privacy-unit must be a column; pass --new-version'
    """
    for pattern, words in PHRASES.items():
        message = re.sub(pattern, words, message)
    first, must, rest = message.partition(" must ")
    return f"--{first.replace('_', '-')}{must}{rest}" if first in _OPTIONS else message
