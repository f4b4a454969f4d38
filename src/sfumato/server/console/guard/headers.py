"""Headers by which browsers protect a page: where its parts come from, who may frame it, what is stored.

There are no scripts. Styles come from this host's own file, or are sheets whose hashes are named: a nonce
would let in whatever got it, a hash only what it was made of. Forms go to this host alone, and nothing may
frame a page or be loaded into another site's.

``Referrer-Policy`` is ``same-origin`` and not ``no-referrer``: with the latter, browsers send forms with the
origin ``null``, which the guard of forms refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from sfumato.server.asgi import Application, Connection, Message, Receive, Send
from sfumato.server.console.access.identity import identity_of

__all__ = ["SecurityHeaders"]

_POLICY: Final = (
    "default-src 'none'; style-src {}; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
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
    styles : sequence of str
        Sheets inside of pages that are let in, such as ``"'sha256-...'"``.

    Notes
    -----
    An answer to a member is not stored by any cache, nor is one that does not say how it may be.
    """

    def __init__(self, app: Application, *, https: bool, styles: Sequence[str] = ()) -> None:
        self._app, self._https = app, https
        self._policy = _POLICY.format(" ".join(("'self'", *styles))).encode("ascii")

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": self._headers(scope, message.get("headers", ()))}
            await send(message)

        await self._app(scope, receive, sending)

    def _headers(self, scope: Connection, stated: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        private = identity_of(scope).signed_in or any(name.lower() == b"set-cookie" for name, _ in stated)
        left_out = _OURS | {b"cache-control", b"expires"} if private else _OURS
        headers = [(name, value) for name, value in stated if name.lower() not in left_out]
        if all(name.lower() != b"cache-control" for name, _ in headers):
            headers.append(_NO_STORE)
        headers += _ALWAYS
        headers.append((b"content-security-policy", self._policy))
        # What is there for a member is not there for everybody at the same address.
        headers.append((b"vary", b"cookie, authorization"))
        if self._https:
            headers.append(_TLS)
        return headers
