"""A name that a trusted proxy states in a header, for organisations whose proxy signs people in.

>>> trusted = ProxyHeader(header="x-remote-user")
>>> request = {"client": ("127.0.0.1", 5), "headers": [(b"x-remote-user", b"ada")]}
>>> trusted.name_of(request)
'ada'
>>> trusted.name_of({**request, "client": ("192.0.2.7", 5)})
Traceback (most recent call last):
...
sfumato.server.asgi.Refused: only the proxy may say who asks
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, final

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.ledger.log.words import check_name
from sfumato.server.asgi import Connection, Refused, headers_of
from sfumato.server.console.access.permissions import ALL_SCOPES, Scope

__all__ = ["ProxyHeader"]

_NAME: Final = re.compile("[a-z][a-z0-9-]{2,63}")
_TAKEN: Final = (
    "host",
    "cookie",
    "authorization",
    "origin",
    "content-length",
    "content-type",
    "x-csrf-token",
)
_SECRET: Final = b"x-sfumato-proxy-secret"
_SHORTEST: Final = 32
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyHeader:
    """Which header of whose requests names the member.

    Parameters
    ----------
    header : str
        Its name, in lower case. The proxy must remove it from what clients send.
    peers : sequence of str
        Addresses or networks from which the proxy connects: this machine's own by default. The header from
        anywhere else is refused.
    secret : bytes, optional
        At least 32 bytes that the proxy sends as ``X-Sfumato-Proxy-Secret``, where others than the proxy can
        connect from its address, as all users of this machine can from loopback.
    scopes : frozenset of Scope
        What whoever is named so may do, as far as their roles go.

    Raises
    ------
    ParameterError
        If one of them is none.
    """

    header: str
    peers: Sequence[str] = ("127.0.0.1", "::1")
    secret: bytes | None = field(default=None, repr=False)
    scopes: frozenset[Scope] = ALL_SCOPES
    _networks: tuple[_Network, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.header) or self.header in _TAKEN or self.header == _SECRET.decode():
            rule = "be the name of a header, in lower case, that has no other meaning"
            _check.refuse("header", rule, self.header, "pass 'x-remote-user'")
        if self.secret is not None and len(self.secret) < _SHORTEST:
            found = f"it has {len(self.secret)}"
            _check.refuse_state("secret", f"have at least {_SHORTEST} bytes", found, "make it at random")
        if not self.peers:
            _check.refuse("peers", "be at least one address", list(self.peers), "pass ['127.0.0.1']")
        object.__setattr__(self, "_networks", tuple(_network(peer) for peer in self.peers))

    def name_of(self, scope: Connection) -> str:
        """Return whom the proxy names, or an empty text if it names nobody.

        Parameters
        ----------
        scope : dict
            ASGI's, whose ``client`` is the peer itself.

        Returns
        -------
        str

        Raises
        ------
        Refused
            If the header comes from another peer, without the secret, twice, or is no name.
        """
        stated = headers_of(scope, self.header.encode())
        if not stated:
            return ""
        if not self._trusts(scope):
            raise Refused(403, "only the proxy may say who asks")
        try:
            (value,) = stated
            return check_name("name", value.decode())
        except (ParameterError, ValueError):
            raise Refused(400, "the proxy must name one member") from None

    def _trusts(self, scope: Connection) -> bool:
        if self.secret is not None:
            shown = headers_of(scope, _SECRET)
            if len(shown) != 1 or not hmac.compare_digest(shown[0], self.secret):
                return False
        client = scope.get("client")
        try:
            address = ipaddress.ip_address("" if client is None else client[0])
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def _network(peer: str) -> _Network:
    try:
        found = ipaddress.ip_network(peer)
    except ValueError:
        found = ipaddress.ip_network("0.0.0.0/0")
    if found.prefixlen == 0:
        rule = "be addresses or networks, and not everybody's"
        _check.refuse("peers", rule, peer, "pass '127.0.0.1' or '10.0.7.0/24'")
    return found
