"""Which provider signs members in by OpenID Connect, and which of its claims names them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final
from urllib.parse import urlsplit

from sfumato import _check
from sfumato.ledger.log.words import check_name
from sfumato.server.console.access.permissions import ALL_SCOPES, Scope

__all__ = ["OidcSettings", "is_secure_url"]

_NEEDED: Final = "openid"


def is_secure_url(url: object) -> bool:
    """Return whether what is sent to a URL cannot be read on the way: by TLS, or on this machine.

    Parameters
    ----------
    url : object

    Examples
    --------
    >>> [is_secure_url(f"{one}/token") for one in ("https://id.example", "http://127.0.0.1:9", "http://id.example")]
    [True, True, False]
    """
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if not host or parts.username is not None or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_local(host))


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """What a console knows of its provider.

    Parameters
    ----------
    issuer : str
        The provider's name, a URL; what it says of itself is below it at
        ``/.well-known/openid-configuration``.
    client_id : str
        What the provider calls this console.
    client_secret : str, optional
        For a provider that wants one; read from a file, never from a command line.
    redirect_uri : str
        Where a browser comes back from the provider: registered there.
    claim : str
        That names the member: ``"sub"``, which no provider gives to another person, or ``"email"``, which
        must be verified, or any other that the provider's users cannot choose themselves.
    members : mapping of str to str, optional
        From what the claim says to a member's name; who is not in it is not let in. Left out, the claim is
        the name.
    ask_for : sequence of str
        Scopes of OpenID Connect, such as ``("openid", "email")``.
    scopes : frozenset of Scope
        What whoever signs in so may do, as far as their roles go.

    Raises
    ------
    ParameterError
        If one of them is none.

    Examples
    --------
    >>> OidcSettings(
    ...     issuer="https://id.example", client_id="console",
    ...     redirect_uri="https://console.example/sign-in/oidc/back", members={"1f3a": "ada"},
    ... ).claim
    'sub'
    """

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    redirect_uri: str
    claim: str = "sub"
    members: Mapping[str, str] | None = None
    ask_for: tuple[str, ...] = (_NEEDED,)
    scopes: frozenset[Scope] = ALL_SCOPES

    def __post_init__(self) -> None:
        for name in ("issuer", "redirect_uri"):
            if not is_secure_url(getattr(self, name)) or urlsplit(getattr(self, name)).query:
                rule = "be an https:// URL, or http:// on this machine"
                _check.refuse(name, rule, getattr(self, name), "leave out any query")
        for name in ("client_id", "claim"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value or not value.isprintable():
                _check.refuse(name, "be a printable text", value, "the provider states it")
        if _NEEDED not in self.ask_for or not all(
            word.isprintable() and word.split() == [word] for word in self.ask_for
        ):
            rule = f"be single words and have {_NEEDED!r} among them"
            _check.refuse("ask_for", rule, list(self.ask_for), f"pass ({_NEEDED!r}, 'email')")
        for member in (self.members or {}).values():
            check_name("members", member)
