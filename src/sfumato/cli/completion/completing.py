"""``sfumato completion``: a script for a shell, made from the parser itself."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Final

import typer

from sfumato.cli.completion.bash_script import bash_script
from sfumato.cli.completion.command_words import command_words
from sfumato.cli.completion.fish_script import fish_script
from sfumato.cli.completion.zsh_script import zsh_script

__all__ = ["Shell", "completion"]


class Shell(Enum):
    """The shells that there are scripts for.

    Examples
    --------
    >>> Shell("zsh")
    <Shell.ZSH: 'zsh'>
    """

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS: Final = {Shell.BASH: bash_script, Shell.ZSH: zsh_script, Shell.FISH: fish_script}


def completion(
    context: typer.Context, shell: Annotated[Shell, typer.Argument(help="For which it is.")]
) -> None:
    """Print a script that completes commands, options and their values; no Tab starts Python."""
    known = tuple(command_words(context.find_root().command))
    typer.echo(_SCRIPTS[shell](known), nl=False)
