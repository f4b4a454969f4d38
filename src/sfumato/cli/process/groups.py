"""A group of commands that imports a command when it is used; its help and its subgroups' need none."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from sfumato.cli.process.outlines import OUTLINES
from sfumato.cli.process.settings import COMMANDS, settings_of

__all__ = ["LazyCommand", "LazyGroup"]


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is, and what the list of commands says of it.

    Parameters
    ----------
    home : str
        ``module:name`` of a function, or of a `typer.Typer` with commands of its own.
    help : str
        The first line of its help.
    """

    home: str
    help: str

    def load(self, name: str) -> Any:
        """Import the command.

        Parameters
        ----------
        name : str
            What it is called by.
        """
        module, _, attribute = self.home.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False)
            alone.command(name=name, help=self.help)(found)
            found = alone
        command = typer.main.get_command(found)
        command.name = name
        return command


class LazyGroup(TyperGroup):
    """Lists its commands without importing them."""

    homes: ClassVar[Mapping[str, LazyCommand]] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=each.help) for name, each in self.homes.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called, imported."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name in self.homes:
            command = _outline(name, rest) or self.load(name)
            if name in COMMANDS and not ctx.resilient_parsing:
                ctx.default_map = {name: settings_of(command, rest)}
        return name, command, rest

    def load(self, name: str) -> Any:
        """Import one command.

        Parameters
        ----------
        name : str
        """
        return self.homes[name].load(name)


def _outline(name: str, rest: Sequence[str]) -> TyperGroup | None:
    """Return what stands for a group of which only the help is asked."""
    outline = OUTLINES.get(name)
    if outline is None or (rest and rest[0] not in {"-h", "--help"}):
        return None
    commands: Any = {each: TyperCommand(each, help=line) for each, line in outline.commands.items()}
    return TyperGroup(name=name, help=outline.help, commands=commands, no_args_is_help=True)
