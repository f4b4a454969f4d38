"""Which connections a service admits: so many at a time, and so many from one address.

>>> admission = Admission(connections=3, per_address=2)
>>> one, two = "192.0.2.1", "192.0.2.2"
>>> [admission.enter(address) for address in (one, one, one, two, two)]
[None, None, 'address', None, 'connections']
>>> admission.leave(one)
>>> admission.enter(two), admission.admitted
(None, 3)
"""

from __future__ import annotations

import ipaddress
import resource
from collections import Counter
from typing import Final, final

__all__ = ["Admission", "allow_files", "origin"]

_OWN_FILES: Final = 64
"""Files of the process beside its connections."""
_REFUSALS: Final = 448
"""Connections that are being refused; what is beyond them is closed at once."""
_PREFIX: Final = 64
"""Bits of an IPv6 address that one subscriber has as a rule."""


@final
class Admission:
    """Counts of the connections that are open: one that is admitted stays so, however many come after it.

    Parameters
    ----------
    connections : int
        Maximum number at a time.
    per_address : int, optional
        Maximum number from one address; None for as many as there are, as behind a proxy.

    Notes
    -----
    An address is forgotten with its last connection.
    """

    def __init__(self, connections: int, per_address: int | None) -> None:
        self._connections, self._per_address = connections, per_address
        self._of: Counter[str] = Counter()
        self.admitted = 0
        self.refusing = 0

    def enter(self, address: str) -> str | None:
        """Count a connection, or return by what limit it is refused: ``"connections"`` or ``"address"``."""
        if self.admitted >= self._connections:
            return "connections"
        if self._per_address is not None:
            if self._of[address] >= self._per_address:
                return "address"
            self._of[address] += 1
        self.admitted += 1
        return None

    def leave(self, address: str) -> None:
        """Count a connection that was admitted and is closed."""
        self.admitted -= 1
        if self._per_address is not None:
            self._of[address] -= 1
            if not self._of[address]:
                del self._of[address]

    @property
    def crowded(self) -> bool:
        """Whether so many are being refused that there is no time for an answer."""
        return self.refusing >= _REFUSALS


def origin(host: str) -> str:
    """Return what one sender has: an IPv4 address, or the network of an IPv6 address.

    >>> origin("192.0.2.1"), origin("::ffff:192.0.2.1"), origin("2001:db8::1:2")
    ('192.0.2.1', '192.0.2.1', '2001:db8::/64')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:  # a socket without an address
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _PREFIX), strict=False))


def allow_files(connections: int) -> int:
    """Let this process open files for so many connections; return for how many the system lets it."""
    wanted = connections + _REFUSALS + _OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    infinite = resource.RLIM_INFINITY
    if soft != infinite and soft < wanted:
        soft = wanted if hard == infinite else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == infinite else max(1, min(connections, soft - _REFUSALS - _OWN_FILES))
