"""The roles of a member as the ledger has them at this moment: nothing is cached.

>>> class Known:
...     def all(self):
...         return (Member(name="ada", roles=frozenset({Role.ANALYST})),)
>>> roles = MemberRoles(Known())
>>> roles.of("ada"), roles.of("eve")
(frozenset({<Role.ANALYST: 'analyst'>}), frozenset())
"""

from __future__ import annotations

import asyncio
import threading
from typing import Protocol, final

from sfumato.ledger.log.member_events import Role
from sfumato.ledger.log.member_roll import Member

__all__ = ["MemberList", "MemberRoles"]


class MemberList(Protocol):
    """What is asked for members: `Ledger.members`."""

    def all(self) -> tuple[Member, ...]:
        """Return all who ever had a role."""


@final
class MemberRoles:
    """Reads roles from the ledger, once for each request.

    Parameters
    ----------
    members : Members
        The ledger's.

    Notes
    -----
    One who has left, or never was a member, has no roles.
    """

    def __init__(self, members: MemberList) -> None:
        self._members, self._lock = members, threading.Lock()

    def of(self, name: str) -> frozenset[Role]:
        """Return a member's roles.

        Parameters
        ----------
        name : str
        """
        with self._lock:
            found = self._members.all()
        return next((member.roles for member in found if member.name == name), frozenset())

    async def read(self, name: str) -> frozenset[Role]:
        """Return a member's roles, and let other requests go on while the ledger is read.

        Parameters
        ----------
        name : str
        """
        return await asyncio.to_thread(self.of, name)
