"""Who has signed in by a browser: sessions that are known by a random identifier, and end.

>>> now = 0.0
>>> sessions = Sessions(idle=60.0, longest=3600.0, now=lambda: now)
>>> number = sessions.begin(name="ada", scopes=frozenset({"read"}), via="oidc")
>>> sessions.find(number).name
'ada'
>>> now = 61.0
>>> sessions.find(number) is None
True
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal, final

from sfumato import _check

__all__ = ["Session", "Sessions"]

_EACH: Final = 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One sign-in.

    Parameters
    ----------
    name : str
        The member's.
    scopes : frozenset of str
        What it may be used for.
    via : str
        By what the member was recognised.
    token : str
        The identifier of the token by which it began, with which it ends; empty for none.
    begun, seen : float
        When it began and was used last, by the clock of `Sessions`.
    """

    name: str
    scopes: frozenset[str]
    via: Literal["token", "oidc"]
    token: str
    begun: float
    seen: float


@final
class Sessions:
    """The sessions of one process, in its memory: whoever is signed in signs in again when it starts anew.

    Parameters
    ----------
    idle : float
        Seconds without a request after which a session is over.
    longest : float
        Seconds after which it is over in any case.
    most : int
        Maximum number of sessions; beyond it the one that was used longest ago ends.
    now : callable
        Seconds of a clock that never goes back.

    Notes
    -----
    An identifier has 256 random bits, and only its SHA-256 is in memory. A member has at most 16 sessions, of
    which the one that was used longest ago ends for another. Not for several threads.
    """

    def __init__(
        self,
        *,
        idle: float = 1800.0,
        longest: float = 28_800.0,
        most: int = 10_000,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._idle, self._longest = _check.positive("idle", idle), _check.positive("longest", longest)
        self._most = _check.integer("most", most, minimum=1)
        self._now = now
        self._known: dict[bytes, Session] = {}

    def begin(
        self, *, name: str, scopes: frozenset[str], via: Literal["token", "oidc"], token: str = ""
    ) -> str:
        """Begin a session under a new identifier, whatever the browser had before.

        Parameters
        ----------
        name : str
        scopes : frozenset of str
        via : str
        token : str

        Returns
        -------
        str
            The identifier, for the browser alone.
        """
        now = self._now()
        self._end_late(now)
        own = [key for key, session in self._known.items() if session.name == name]
        for key in own[: max(0, len(own) - _EACH + 1)]:
            del self._known[key]
        while len(self._known) >= self._most:
            del self._known[next(iter(self._known))]
        number = secrets.token_urlsafe(32)
        self._known[_key(number)] = Session(
            name=name, scopes=scopes, via=via, token=token, begun=now, seen=now
        )
        return number

    def find(self, number: str) -> Session | None:
        """Return a session that is not over, and remember that it was used.

        Parameters
        ----------
        number : str
        """
        key, now = _key(number), self._now()
        session = self._known.pop(key, None)
        if session is None or self._over(session, now):
            return None
        self._known[key] = session = replace(session, seen=now)
        return session

    def end(self, number: str) -> None:
        """End a session, if there is such a one.

        Parameters
        ----------
        number : str
        """
        self._known.pop(_key(number), None)

    def _over(self, session: Session, now: float) -> bool:
        return now - session.seen >= self._idle or now - session.begun >= self._longest

    def _end_late(self, now: float) -> None:
        for key in [key for key, session in self._known.items() if self._over(session, now)]:
            del self._known[key]


def _key(number: str) -> bytes:
    return hashlib.sha256(number.encode()).digest()
