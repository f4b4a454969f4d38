"""What a shell may complete of each command: read once off the parser, written into a script for a shell.

A script holds all words, so that no Tab starts Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import typer

from sfumato.cli.process.groups import LazyGroup

__all__ = ["CommandWords", "OptionWords", "command_words"]

_PROGRAM = "sfumato"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OptionWords:
    """One option of a command.

    Parameters
    ----------
    names : tuple of str
        With their dashes.
    help : str
        One line.
    value : bool
        Whether a value follows.
    choices : tuple of str
        What the value may be; none where that is free.
    """

    names: tuple[str, ...]
    help: str
    value: bool = False
    choices: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CommandWords:
    """What may follow a command.

    Parameters
    ----------
    path : str
        Its name after the program's, such as ``ledger show``; empty for the program itself.
    help : str
        One line.
    commands : mapping of str to str
        Of a group: its commands, with a line each.
    options : tuple of OptionWords
    arguments : mapping of int to tuple of str
        What an argument may be, by its place, where that is not free.
    from_place : int or None
        From which place on all arguments are like that one.
    """

    path: str
    help: str
    commands: Mapping[str, str]
    options: tuple[OptionWords, ...]
    arguments: Mapping[int, tuple[str, ...]]
    from_place: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All names of all options."""
        return tuple(name for option in self.options for name in option.names)

    @property
    def valued(self) -> tuple[str, ...]:
        """The names of options that a value follows."""
        return tuple(name for option in self.options if option.value for name in option.names)


def command_words(group: Any, path: str = "") -> Iterator[CommandWords]:
    """Yield what may follow a command and, for a group, each command in it; all of them are imported.

    Parameters
    ----------
    group : click command
    path : str
        Its name after the program's.

    Examples
    --------
    >>> from typer.main import get_command
    >>> from sfumato.cli.commands import app
    >>> next(command_words(get_command(app).load("calibrate"), "calibrate")).valued[:2]
    ('--epsilon', '--delta')
    """
    members: dict[str, Any] = {
        name: group.load(name) if isinstance(group, LazyGroup) else command
        for name, command in getattr(group, "commands", {}).items()
    }
    context = typer.Context(group, info_name=f"{_PROGRAM} {path}".strip())
    options = [_option(each, context) for each in group.params if each.param_type_name == "option"]
    arguments, from_place = _arguments(group, context)
    yield CommandWords(
        path=path,
        help=_line(group.help),
        commands={name: _line(command.help) for name, command in members.items()},
        options=(*options, OptionWords(names=("-h", "--help"), help="Show what it does.")),
        arguments=arguments,
        from_place=from_place,
    )
    for name, command in members.items():
        yield from command_words(command, f"{path} {name}".strip())


def _option(parameter: Any, context: typer.Context) -> OptionWords:
    return OptionWords(
        names=(*parameter.opts, *parameter.secondary_opts),
        help=_line(parameter.help),
        value=not parameter.is_flag,
        choices=_choices(parameter, context),
    )


def _arguments(group: Any, context: typer.Context) -> tuple[dict[int, tuple[str, ...]], int | None]:
    """Return the choices of arguments by their place, and where those of a repeated one begin."""
    found: dict[int, tuple[str, ...]] = {}
    arguments = [each for each in group.params if each.param_type_name == "argument"]
    for place, argument in enumerate(arguments):
        choices = _choices(argument, context)
        if choices:
            found[place] = choices
            if argument.nargs == -1:
                return found, place
    return found, None


def _choices(parameter: Any, context: typer.Context) -> tuple[str, ...]:
    return tuple(str(item.value) for item in parameter.shell_complete(context, "") if item.type == "plain")


def _line(text: str | None) -> str:
    r"""Return the first sentence, on one line.

    Examples
    --------
    >>> _line("Read a table.\n\nParameters")
    'Read a table.'
    """
    first = " ".join((text or "").strip().partition("\n\n")[0].split())
    return re.split(r"(?<=[.;:]) ", first, maxsplit=1)[0].rstrip(";:")
