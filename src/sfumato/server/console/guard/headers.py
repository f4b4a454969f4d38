"""Headers by which browsers protect a page: where its parts come from, who may frame it, what is stored.

Scripts and styles come from this host's own files, or have the nonce of the answer they stand in, which is
new for each. Forms go to this host alone, and nothing may frame a page or be loaded into another site's.

``Referrer-Policy`` is ``same-origin`` and not ``no-referrer``: with the latter, browsers send forms with the
origin ``null``, which the guard of forms refuses.
"""

from __future__ import annotations

import secrets
from typing import Final, final

from sfumato.server.asgi import Application, Connection, Message, Receive, Send
from sfumato.server.console.access.identity import identity_of

__all__ = ["SecurityHeaders", "nonce_of"]

_KEY: Final = "sfumato.nonce"
_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'nonce-{0}'; style-src 'self' 'nonce-{0}'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_OURS: Final = {b"content-security-policy", *(name for name, _ in _ALWAYS)}
_TLS: Final = (b"strict-transport-security", b"max-age=31536000")
_NO_STORE: Final = (b"cache-control", b"no-store")


@final
class SecurityHeaders:
    """An application of which every answer has them, whatever it says itself.

    Parameters
    ----------
    app : ASGI application
    https : bool
        Whether browsers reach it by TLS: they are asked never to try without.

    Notes
    -----
    An answer to a member is not stored by any cache, nor is one that does not say how it may be.
    """

    def __init__(self, app: Application, *, https: bool) -> None:
        self._app, self._https = app, https

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(16)
        scope[_KEY] = nonce

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": self._headers(scope, nonce, message.get("headers", ()))}
            await send(message)

        await self._app(scope, receive, sending)

    def _headers(
        self, scope: Connection, nonce: str, stated: list[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]]:
        private = identity_of(scope).signed_in or any(name.lower() == b"set-cookie" for name, _ in stated)
        left_out = _OURS | {b"cache-control", b"expires"} if private else _OURS
        headers = [(name, value) for name, value in stated if name.lower() not in left_out]
        if all(name.lower() != b"cache-control" for name, _ in headers):
            headers.append(_NO_STORE)
        headers += _ALWAYS
        headers.append((b"content-security-policy", _POLICY.format(nonce).encode()))
        # What is there for a member is not there for everybody at the same address.
        headers.append((b"vary", b"cookie, authorization"))
        if self._https:
            headers.append(_TLS)
        return headers


def nonce_of(scope: Connection) -> str:
    """Return the nonce by which this answer's own scripts and styles are let run.

    Parameters
    ----------
    scope : dict
        ASGI's; ``request.scope`` with Starlette.
    """
    found: str = scope[_KEY]
    return found
