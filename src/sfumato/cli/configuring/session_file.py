"""``sfumato.toml``: options of the commands that open a dataset, so that they need not be written again."""

from __future__ import annotations

from typing import Final

from sfumato.cli.configuring.settings_text import helps_of, setting_text
from sfumato.cli.opening import open_session
from sfumato.cli.process.settings import FILE, SETTINGS

__all__ = ["session_file"]

_EXAMPLES: Final = {
    "privacy-unit": "person_id",
    "epsilon": 2.0,
    "delta": 1e-7,
    "rho": 0.5,
    "mu": 1.0,
    "policy": "policy.json",
    "ledger": "acs.ledger",
    "analyst": "ada",
    "table": ["visits=visits.parquet"],
    "public": ["states=states.csv"],
    "type": ["age=INT64"],
    "renew": "month:day",
    "period": "2026-01",
    "columns": ["person_id,state,age"],
    "statement-timeout": 600.0,
    "head": "acs.head",
}
_TITLE: Final = f"""\
# {FILE}: options of sfumato sql, explain and train, read in the folder where you are.
# Take away the # before a line to set it. An option on the command line comes first, then the environment
# (SFUMATO_LEDGER and so on), then this file, then what the ledger knows. Of epsilon with delta, rho, mu and
# policy set one.
"""


def session_file() -> str:
    """Return the text of the file; as it stands it sets nothing.

    Examples
    --------
    >>> print(session_file().splitlines()[6])
    #privacy-unit = "person_id"
    """
    known = helps_of(open_session)
    parts = []
    for name in SETTINGS:
        help_, default = known[name]
        parts.append(setting_text(name, help_, _EXAMPLES[name], default=default if default != "" else None))
    return "\n".join((_TITLE, *parts))
