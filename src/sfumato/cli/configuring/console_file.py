"""``console.toml``: the settings of the curator's console, each with its meaning and its default."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from sfumato.cli.configuring.settings_text import setting_text
from sfumato.server.console.settings import OIDC_BACK, SETTINGS, ConsoleSettings

__all__ = ["console_file"]

_TITLE: Final = """\
# {file}: settings of sfumato console serve. Paths are from this file's folder.
# Take away the # before a line to set it, and of a table before its name too.
"""
_TABLES: Final = MappingProxyType(
    {
        "dataset": "# What analysts ask about; without it the console shows what the ledger holds. Of epsilon"
        "\n# with delta, rho, mu and policy set one.",
        "listening": "# Where it listens.",
        "answers": "# When answers leave, and how many questions may wait.",
        "sign-in": "# How members sign in, beside the tokens of sfumato console token.",
        "sign-in.oidc": "# An OpenID Connect provider that signs members in, with PKCE.",
    }
)
_OFF: Final = ("dataset", "sign-in.oidc")
"""Tables that have settings without a default: they are switched on with these."""
_REQUIRED: Final = "Required."
_HELPS: Final[Mapping[str, Mapping[str, tuple[str, Any]]]] = MappingProxyType(
    {
        "": {
            "ledger": ("A file, or postgresql://user@host/database. Required.", "people.ledger"),
            "folder": ("Of tokens and jobs, for the console alone.", "console"),
            "title": ("What the pages call the dataset.", "data"),
        },
        "dataset": {
            "source": (
                'Files, a table of them as {visits = "visits.parquet"}, or postgresql://... ' + _REQUIRED,
                "people.parquet",
            ),
            "privacy-unit": ("The column that names the person; a list makes one unit of several.", "id"),
            "epsilon": ("The budget of the dataset over its whole life.", 2.0),
            "delta": ("With epsilon, or the mass of rho or mu.", 1e-7),
            "rho": ("A budget in zero-concentrated DP instead.", 0.5),
            "mu": ("A budget in Gaussian DP instead.", 1.0),
            "policy": ("A file with BigQuery's privacy_policy: unit, budget and limits.", "policy.json"),
            "renewal": (
                "Each period of the rows' own time has the whole budget.",
                {"every": "month", "column": "day"},
            ),
            "period": ("With renewal: the period that questions are about.", "2026-01"),
            "public": ("Tables that hold nothing private, by their names.", {"states": "states.csv"}),
            "types": ("Types of columns of CSV files, by the names that CAST takes.", {"age": "INT64"}),
            "defaults": ("Values of OPTIONS that a query leaves out.", {"epsilon": 0.1}),
            "columns": ("For a database: the columns that are meant; no other is read.", ["id", "age"]),
            "threads": ("Threads of the engine.", 4),
            "memory-limit": ("Maximum memory of the engine.", "2GB"),
            "statement-timeout": ("For PostgreSQL: seconds after which a statement is ended.", 600.0),
            "domains": (
                "What is public of the values, by table, in files of TOML or JSON: dry runs are made of it.",
                {"data": "domain.toml"},
            ),
        },
        "listening": {
            "host": ("An address that is not this machine's own needs origins.", "127.0.0.1"),
            "port": ("0 for any that is free; --port comes first.", 8460),
            "origins": ("At which browsers reach it.", ["https://console.example"]),
            "certificate": ("A chain in PEM; with certificate-key.", "server.pem"),
            "certificate-key": ("Its key in PEM.", "server.key"),
            "proxies": ("Addresses of proxies whose header is believed.", ["127.0.0.1", "::1"]),
        },
        "answers": {
            "step": ("Seconds of a step of time.", 0.5),
            "first": ("Steps until the first deadline of an answer that reads the rows once.", 1),
            "doublings": ("Deadlines after the first, each twice as far as the one before.", 7),
            "per-analyst": ("Questions of one analyst that may wait and run.", 4),
            "total": ("Questions of all that may wait and run.", 64),
        },
        "sign-in": {
            "hours": ("After which members sign in again.", 8.0),
            "proxy-header": (
                "Names who signed in at a proxy; none is believed unless set.",
                "x-forwarded-user",
            ),
            "proxy-secret-file": (
                "What the proxy sends along, where others use the machine.",
                "proxy.secret",
            ),
        },
        "sign-in.oidc": {
            "issuer": (f"The provider's URL. {_REQUIRED}", "https://id.example"),
            "client-id": (f"As the provider states it. {_REQUIRED}", "console"),
            "client-secret-file": ("Its secret, where the provider gives one.", "client.secret"),
            "redirect-uri": (
                "Where browsers come back, as the provider knows it; else below the first origin.",
                f"https://console.example{OIDC_BACK}",
            ),
            "claim": ("That names the member.", "sub"),
            "members": ("Members by what the claim has; else it is their name.", {"1f3a": "ada"}),
            "ask-for": ("What is asked of the provider.", ["openid"]),
        },
    }
)


def console_file(output: Path) -> str:
    """Return the text of a file for ``sfumato console serve``; as it stands it names a ledger, and no data.

    Parameters
    ----------
    output : Path
        Where it will be.

    Examples
    --------
    >>> print(console_file(Path("console.toml")).splitlines()[4])
    ledger = "people.ledger"
    """
    parts = [_TITLE.format(file=output.name)]
    known = _defaults()
    for table, names in SETTINGS.items():
        if table:
            parts.append(f"{_TABLES[table]}\n{'#' if table in _OFF else ''}[{table}]\n")
        for name in names:
            help_, value = _HELPS[table][name]
            default = known.get((table, name))
            shown = value if default is None else default
            parts.append(setting_text(name, help_, shown, default=default, on=name == "ledger"))
    return "\n".join(parts)


def _defaults() -> Mapping[tuple[str, str], Any]:
    """Return the settings that have a default, which the console states."""
    own = ConsoleSettings(ledger="", folder=Path())
    return {
        ("", "folder"): "console",
        ("", "title"): own.title,
        ("listening", "host"): own.host,
        ("listening", "port"): own.port,
        ("listening", "proxies"): own.proxies,
        ("answers", "step"): own.grid.step,
        ("answers", "first"): own.grid.first,
        ("answers", "doublings"): own.grid.doublings,
        ("answers", "per-analyst"): own.jobs.per_analyst,
        ("answers", "total"): own.jobs.total,
        ("sign-in", "hours"): own.hours,
        ("sign-in.oidc", "claim"): "sub",
        ("sign-in.oidc", "ask-for"): ("openid",),
    }
