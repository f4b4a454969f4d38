"""Options from the environment and from ``sfumato.toml``, for the commands that open a dataset.

An option on the command line comes before ``SFUMATO_...`` in the environment, and that before the file.
"""

from __future__ import annotations

import difflib
import os
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sfumato import _check

__all__ = ["COMMANDS", "FILE", "SETTINGS", "settings_of"]

COMMANDS: Final = ("sql", "explain", "train")
"""The commands that read settings."""

BUDGET: Final = ("epsilon", "delta", "rho", "mu", "policy")
SETTINGS: Final = (
    "privacy-unit", *BUDGET, "ledger", "analyst", "table", "public", "type", "renew", "period", "columns",
    "statement-timeout", "head",
)  # fmt: skip
"""What may be set: options without their dashes."""

FILE: Final = "sfumato.toml"
"""In the folder of the process."""


def settings_of(command: Any, arguments: Sequence[str]) -> dict[str, Any]:
    """Return what environment and file say of a command's options, by the names of its parameters.

    A budget is taken whole from the first place that states one.

    Parameters
    ----------
    command : click command
    arguments : sequence of str
        What is on the command line.

    Raises
    ------
    ParameterError
        If the file cannot be read, or sets what is no option.
    """
    stated = _has_budget({word.partition("=")[0].removeprefix("--") for word in arguments})
    places: list[dict[str, Any]] = []
    for place in (_environment(), _file()):
        mine = {name: value for name, value in place.items() if not (stated and name in BUDGET)}
        stated = stated or _has_budget(mine)
        places.append(mine)
    merged = {**places[1], **places[0]}
    found: dict[str, Any] = {}
    for parameter in command.params:
        name = next((option[2:] for option in parameter.opts if option.startswith("--")), "")
        if name in merged:
            several = getattr(parameter, "multiple", False)
            found[parameter.name] = _listed(merged[name]) if several else merged[name]
    return found


def _has_budget(names: Any) -> bool:
    return any(name in names for name in BUDGET if name != "delta")


def _listed(value: Any) -> list[Any]:
    return shlex.split(value) if isinstance(value, str) else list(value)


def _environment() -> dict[str, str]:
    names = {name: f"SFUMATO_{name.replace('-', '_').upper()}" for name in SETTINGS}
    return {name: os.environ[variable] for name, variable in names.items() if os.environ.get(variable)}


def _file() -> Mapping[str, Any]:
    path = Path(FILE)
    if not path.is_file():
        return {}
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        _check.refuse(FILE, "be a file of TOML that can be read", str(path.absolute()), "correct it")
    for name, value in settings.items():
        if name not in SETTINGS or isinstance(value, dict | bool):
            near = difflib.get_close_matches(name, SETTINGS, 1)
            remedy = f"did you mean {near[0]!r}?" if near else f"it knows {', '.join(SETTINGS)}"
            _check.refuse(FILE, "set options by their names, without dashes before them", name, remedy)
    return settings
