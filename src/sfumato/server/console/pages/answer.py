"""What a screen answers: a page, the way to another, or a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

__all__ = ["Answer", "Document", "Page", "Redirect"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of the console, made from a template inside of its frame.

    Parameters
    ----------
    template : str
        Its file among the templates.
    title : str
        What the page's heading and its window say.
    facts : mapping
        What the template shows; text in it is escaped, for nothing in it is markup.
    status : int
        Of HTTP.
    refused : str
        Why the form that was sent from this page was not taken; "" where none was.
    sent : mapping
        The fields of that form.
    """

    template: str
    title: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    refused: str = ""
    sent: Mapping[str, str] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """The way to another page, after a form was taken (303), so that reading it again sends nothing again.

    Parameters
    ----------
    path : str
        On this console; it begins with one slash.
    """

    path: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Bytes as they are: a release's page, which states a policy of its own, or a file to keep.

    Parameters
    ----------
    content : bytes
    media_type : str
    file_name : str
        By which a browser keeps it; "" shows it.
    """

    content: bytes
    media_type: str
    file_name: str = ""


Answer: TypeAlias = Page | Redirect | Document
