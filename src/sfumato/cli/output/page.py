"""A page of prose, code and tables on standard output, at most 80 columns wide."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sfumato._progress import is_terminal
from sfumato.cli.output.tables import fits, print_table

__all__ = ["Page"]

_WIDTH = 80
_INDENT = 2


class Page:
    """Prints paragraphs; nothing in them is read as markup."""

    def __init__(self) -> None:
        terminal = Console().width if is_terminal(sys.stdout) else _WIDTH
        self._console = Console(highlight=False, width=min(terminal, _WIDTH))

    def title(self, text: str) -> None:
        """Print a heading."""
        self.say(text, style="bold")

    def say(self, text: str, *, style: str = "") -> None:
        """Print a paragraph."""
        self._console.print(Text(text, style=style))
        self._console.print()

    def code(self, text: str) -> None:
        """Print a query, indented."""
        self._indented(Text(text, style="cyan"))

    def refusal(self, text: str) -> None:
        """Print an error, indented."""
        self._indented(Text(text, style="bold red"))

    def table(self, table: Table) -> None:
        """Print a table, indented, its columns as close as they stay readable."""
        table.padding, table.show_edge = (0, 1, 0, 0), False
        if fits(table, self._console.width - _INDENT):
            self._indented(table)
        else:
            print_table(self._console, table)

    def _indented(self, content: Text | Table) -> None:
        self._console.print(Padding(content, (0, 0, 0, _INDENT), expand=False))
        self._console.print()
