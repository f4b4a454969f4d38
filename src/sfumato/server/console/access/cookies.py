"""Cookies that browsers send to this host alone, over TLS or loopback, and never for another site's page.

>>> read_cookie({"headers": [(b"cookie", b"a=1; __Host-sfumato=xyz")]}, SESSION)
'xyz'
>>> written_cookie(SESSION, "xyz")
b'__Host-sfumato=xyz; Path=/; Secure; HttpOnly; SameSite=Strict'

The prefix ``__Host-`` makes browsers refuse such a cookie from any other host, a subdomain too, so nobody can
plant one. It needs ``Secure``, and so TLS; Chromium takes ``http://127.0.0.1`` and ``http://localhost`` for
secure without it (tried with version 156). A browser that does not needs TLS on loopback too.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from sfumato.server.asgi import Connection, headers_of

__all__ = ["SESSION", "SIGN_IN", "ended_cookie", "read_cookie", "written_cookie"]

SESSION: Final = "__Host-sfumato"
"""The session, or a random value that form tokens are bound to before there is one."""
SIGN_IN: Final = "__Host-sfumato-sign-in"
"""What a sign-in by OpenID Connect has to find again when the browser comes back from the provider."""
_VALUE: Final = re.compile(r"[A-Za-z0-9_=-]{1,2048}")


def read_cookie(scope: Connection, name: str) -> str:
    """Return a cookie's value, or an empty text: also if there are two, of which one is not ours.

    Parameters
    ----------
    scope : dict
        ASGI's.
    name : str
    """
    found = []
    for header in headers_of(scope, b"cookie"):
        for pair in header.decode("latin-1").split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                found.append(value)
    return found[0] if len(found) == 1 and _VALUE.fullmatch(found[0]) else ""


def written_cookie(
    name: str, value: str, *, same_site: Literal["Strict", "Lax"] = "Strict", seconds: int | None = None
) -> bytes:
    """Return the value of a ``set-cookie`` header.

    Parameters
    ----------
    name : str
    value : str
    same_site : str
        ``"Lax"`` for what must come with a browser that another site sends back.
    seconds : int, optional
        For which it lasts; left out, until the browser is closed.
    """
    lasting = "" if seconds is None else f"; Max-Age={seconds}"
    return f"{name}={value}; Path=/; Secure; HttpOnly; SameSite={same_site}{lasting}".encode("ascii")


def ended_cookie(name: str) -> bytes:
    """Return the value of a ``set-cookie`` header that ends a cookie.

    Parameters
    ----------
    name : str
    """
    return written_cookie(name, "", seconds=0)
