"""Arguments and options that many commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = ["AlwaysJson", "AsJson", "JsonStyle", "LedgerAddress", "PageFile", "PageLanguage"]

LedgerAddress: TypeAlias = Annotated[
    str, typer.Argument(metavar="LEDGER", help="The ledger's file, or postgresql://user@host/database.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonStyle: TypeAlias = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
AlwaysJson: TypeAlias = Annotated[bool, typer.Option("--json", help="As ever: this is JSON.")]
PageFile: TypeAlias = Annotated[
    Path | None, typer.Option("--page", help="Write a page for everybody to this file, HTML.")
]
PageLanguage: TypeAlias = Annotated[str, typer.Option("--language", help="Of the page: en or de.")]
