"""One operation of the interface: where it stands, who may do it, what it takes and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from sfumato.server.console.access.identity import Identity
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.api.problems import Problem

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["ARROW", "JSON", "Call", "Operation", "Outcome", "Schema", "number_in"]

Schema: TypeAlias = Mapping[str, Any]
"""A JSON schema; one of `sfumato.server.console.api.schemas` is named by a reference."""

JSON: Final = "application/json"
ARROW: Final = "application/vnd.apache.arrow.stream"

_DIGITS: Final = 18


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request whose sender may do what it asks, and whose parts have the types that were declared.

    Parameters
    ----------
    identity : Identity
    path, query : mapping of str to str or int
    body : mapping of str to value
    media : str
        What is answered with.
    """

    identity: Identity
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    media: str = JSON

    @property
    def name(self) -> str:
        """Who asks."""
        return self.identity.name


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an operation answers.

    Parameters
    ----------
    content : object
        Bytes and a file as they are, everything else as JSON; None is nothing.
    status : int
    headers : mapping of str to str
    """

    content: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def part(self) -> bytes | Path | None:
        """Return the content, if it is no JSON."""
        return self.content if isinstance(self.content, bytes | Path) else None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation.

    Parameters
    ----------
    name : str
        In the document and for programs that are made from it.
    method, path : str
        The path is under ``/api/v1``.
    action : Action
        What it does; who may not do it gets 401 or 403.
    summary : str
        One line.
    run : callable
        Takes the console and the call.
    answers : mapping of int to mapping of str to Schema or None
        By status and media type, what is answered; None for what JSON does not describe. The first type is
        for who accepts all.
    body : Schema, optional
        Of the JSON object that it takes.
    query : mapping of str to Schema
        Parameters after the question mark, of type string, integer or boolean; all may be left out.
    problems : tuple of int
        Statuses of errors, beside those that every operation has.
    needs_data : bool
        Whether it is only there if the console has data.
    """

    name: str
    method: str
    path: str
    action: Action
    summary: str
    run: Callable[[Console, Call], Outcome]
    answers: Mapping[int, Mapping[str, Schema | None]]
    body: Schema | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    problems: tuple[int, ...] = ()
    needs_data: bool = False

    @property
    def media(self) -> tuple[str, ...]:
        """The types that may be asked for, the usual one first."""
        return tuple(dict.fromkeys(kind for each in self.answers.values() for kind in each))


def number_in(call: Call) -> int:
    """Return the number in a call's path.

    Parameters
    ----------
    call : Call

    Raises
    ------
    Problem
        404 where it is no number.
    """
    found = call.path.get("number", "")
    plain = found.isascii() and found.isdigit() and len(found) <= _DIGITS and not found.startswith("0")
    if not plain:
        raise Problem(status=404, detail="there is no such release")
    return int(found)
