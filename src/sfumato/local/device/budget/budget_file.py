"""The file of a device's budget: changed under a lock, replaced as a whole, checked when it is read."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NoReturn, final

from sfumato._durable import replace_file
from sfumato._wire import Format, canonical, parse
from sfumato.errors import ParameterError, SourceError

__all__ = ["UNIT", "BudgetFile", "BudgetState", "CollectionSpent", "units_above", "units_below"]

UNIT: Final = 1 << 40
"""Amounts are whole multiples of an epsilon of one part in this."""

_FORMAT: Final = Format("sfumato.device-budget")
_MAX_BYTES: Final = 1 << 24


def units_above(epsilon: float) -> int:
    """Return an epsilon in units, rounded up.

    Parameters
    ----------
    epsilon : float

    Returns
    -------
    int
    """
    return -(-Fraction(epsilon) * UNIT // 1)


def units_below(epsilon: float) -> int:
    """Return an epsilon in units, rounded down.

    Parameters
    ----------
    epsilon : float

    Returns
    -------
    int
    """
    return Fraction(epsilon) * UNIT // 1


@final
@dataclass(slots=True, kw_only=True)
class CollectionSpent:
    """What one collection has cost.

    Parameters
    ----------
    spent : int
        In units.
    reports : int
        How many reports were let through.
    memos : int or None
        The generation of the memo store before its last report, if all its memos are paid for.
    """

    spent: int = 0
    reports: int = 0
    memos: int | None = None


@final
@dataclass(slots=True, kw_only=True)
class BudgetState:
    """All that a budget's file holds; amounts are in units.

    Parameters
    ----------
    lifetime, daily, report : int
        The caps, and the largest loss of one report or memo.
    collection : int or None
        The cap of one collection.
    digests : list of str, or None
        The specifications that are answered, in hexadecimal.
    simulated : bool
    generation : int
        How often the file was written.
    day : int
        The latest day that the clock has shown, counted from 1970.
    spent, today : int
        In all, and on that day.
    collections : dict
        By the identity of each.
    """

    lifetime: int
    daily: int
    report: int
    collection: int | None
    digests: list[str] | None
    simulated: bool
    generation: int = 0
    day: int = 0
    spent: int = 0
    today: int = 0
    collections: dict[str, CollectionSpent] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the file's content: JSON, and its own digest."""
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        parts["collections"] = {
            name: [one.spent, one.reports, one.memos] for name, one in self.collections.items()
        }
        return f"{canonical(_FORMAT.wrap({**parts, 'sha256': _digest(parts)}))}\n".encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> BudgetState:
        """Return what `to_bytes` wrote.

        Parameters
        ----------
        content : bytes

        Returns
        -------
        BudgetState

        Raises
        ------
        ParameterError
            If it is not whole, or of another format or version.
        """
        _, parts = _FORMAT.unwrap("budget", parse("budget", content))
        digest = parts.pop("sha256", None)
        if digest != _digest(parts):  # what passes is as `to_bytes` wrote it
            raise ParameterError("budget must be as it was written, got another content; see its backup")
        collections = {
            name: CollectionSpent(spent=spent, reports=reports, memos=memos)
            for name, (spent, reports, memos) in parts.pop("collections").items()
        }
        return cls(**parts, collections=collections)


def _digest(parts: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


@final
class BudgetFile:
    """A budget's file, which any number of processes and threads change one after the other.

    Parameters
    ----------
    path : path
        Of the file; beside it are ``.lock``, and during a write ``.new``. A symbolic link is followed.
    """

    __slots__ = ("path",)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))

    @contextmanager
    def changing(self, new: BudgetState | None = None) -> Iterator[BudgetState]:
        """Hold the file for a change that is on disk on leaving; one that fails writes nothing.

        Parameters
        ----------
        new : BudgetState, optional
            What a new file begins with; one that is there is refused.

        Yields
        ------
        BudgetState
            To be changed.
        """
        lock = self._locked()
        try:
            if new is not None and self.path.exists():
                self._refuse("be new", "use DeviceBudget.open")
            state = self.read() if new is None else new
            yield state
            state.generation += 1
            try:
                replace_file(self.path, self.path.with_name(self.path.name + ".new"), state.to_bytes())
            except OSError:
                self._refuse("be written before a report is drawn", "make room, and report again")
        finally:
            os.close(lock)

    def read(self) -> BudgetState:
        """Return what the file holds, as it was at some moment.

        Returns
        -------
        BudgetState

        Raises
        ------
        SourceError
            If it is missing or damaged.
        """
        try:
            with self.path.open("rb") as file:
                content = file.read(_MAX_BYTES + 1)
        except OSError:
            self._refuse("be a file that can be read", "DeviceBudget.create makes one: all of it is unspent")
        try:
            return BudgetState.from_bytes(content)
        except (ParameterError, TypeError, ValueError, AttributeError):
            self._refuse("be a device's budget, whole and unaltered", "a backup of it may be")

    def _locked(self) -> int:
        """Wait for the lock, and hold it for as long as the descriptor is open."""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            held = os.open(self.path.with_name(self.path.name + ".lock"), flags, 0o600)
        except OSError:
            self._refuse("be in a folder that can be written", "name another")
        fcntl.flock(held, fcntl.LOCK_EX)
        return held

    def _refuse(self, rule: str, remedy: str) -> NoReturn:
        raise SourceError(f"budget must {rule}, got {str(self.path)!r}; {remedy}") from None
