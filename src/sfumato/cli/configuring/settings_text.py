"""A setting in a file of TOML: what it means, its default, and a line that a hash in front switches off."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

__all__ = ["helps_of", "setting_text", "toml_value"]


def toml_value(value: object) -> str:
    r"""Return a value as TOML writes it.

    Parameters
    ----------
    value : object
        A text, a path, a number, a truth, or a list or a mapping of them.

    Examples
    --------
    >>> print(toml_value({"a": 1}))
    {"a" = 1}
    >>> toml_value(["a", True]), toml_value(1e-7), toml_value(float("inf")), toml_value('a "b"')
    ('["a", true]', '1e-07', 'inf', '"a \\"b\\""')
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_text(name)} = {toml_value(each)}' for name, each in value.items())}}}"
    if isinstance(value, bool):
        return str(value).lower()
    return _text(str(value)) if isinstance(value, str | Path) else str(value)


def _text(value: str) -> str:
    """Return a text between quotes: JSON's escapes are TOML's, but for halves of a pair and DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def setting_text(name: str, help_: str, value: object, *, default: object = None, on: bool = False) -> str:
    """Return the lines of one setting.

    Parameters
    ----------
    name : str
    help_ : str
        What it means.
    value : object
        What the line sets.
    default : object
        What holds without the line; None where nothing does.
    on : bool
        Whether the line counts as it stands.

    Examples
    --------
    >>> print(setting_text("port", "0 for any that is free.", 8420, default=8420), end="")
    # 0 for any that is free. Default: 8420
    #port = 8420
    """
    known = "" if default is None else f" Default: {toml_value(default)}"
    return f"# {help_}{known}\n{'' if on else '#'}{name} = {toml_value(value)}\n"


def helps_of(function: Callable[..., Any]) -> Mapping[str, tuple[str, Any]]:
    """Return the options of a function that is a command, by their names without dashes: help and default.

    Parameters
    ----------
    function : callable
    """
    alone = typer.Typer(add_completion=False)
    alone.command()(function)
    options = [each for each in typer.main.get_command(alone).params if each.param_type_name == "option"]
    return {
        each.opts[0].removeprefix("--"): (str(getattr(each, "help", "")), each.default) for each in options
    }
