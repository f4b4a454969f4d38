"""Forms of this service's own pages alone: no other site's page can make a member's browser change anything.

Three things must hold for a request that is not only read. The browser says that it comes from a page of this
origin (``Origin``, and ``Sec-Fetch-Site`` where it is sent). The form has a token that is a keyed hash of the
cookie, so that it is of this browser and this session: another sign-in has another. And the cookie itself is
never sent for another site's page.

A request with a bearer token needs none of it: no page can make a browser send one. Whoever sends it must
send no cookie, which `Identification` sees to.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from typing import Any, Final, final
from urllib.parse import parse_qsl

from sfumato.server.asgi import (
    Application,
    Connection,
    Message,
    Receive,
    Refusal,
    Refused,
    Send,
    header_of,
    headers_of,
    refuse_in_json,
)
from sfumato.server.console.access.cookies import SESSION, read_cookie, written_cookie
from sfumato.server.console.access.identity import by_bearer, identity_of
from sfumato.server.console.guard.bodies import body_of

__all__ = ["FIELD", "FORM", "HEADER", "CsrfGuard", "form_token"]

FIELD: Final = "csrf_token"
"""The form's field that holds the token."""
FORM: Final = b"application/x-www-form-urlencoded"
"""The kind of body that forms of its pages have."""
HEADER: Final = b"x-csrf-token"
"""The header that may hold it instead, for a script of an own page."""
_KEY: Final = "sfumato.csrf"
_SAFE: Final = ("GET", "HEAD")
_FIELDS: Final = 1000


class _Tokens:
    """Makes the token of one request's browser, which is given a cookie for it if it has none."""

    __slots__ = ("_cookie", "_key", "made")

    def __init__(self, key: bytes, cookie: str) -> None:
        self._key, self._cookie = key, cookie
        self.made = ""

    def of(self, name: str) -> str:
        """Return the token of this browser, for a member or the public."""
        if not self._cookie:
            self._cookie = self.made = secrets.token_urlsafe(32)
        bound = f"{self._cookie}\0{name}".encode()
        return hmac.new(self._key, bound, "sha256").hexdigest()


def form_token(scope: Connection) -> str:
    """Return what a form of this page must hold in the hidden field ``csrf_token``.

    Parameters
    ----------
    scope : dict
        ASGI's; ``request.scope`` with Starlette. To be called before the answer begins: a browser that has no
        cookie gets one with it.
    """
    tokens: _Tokens = scope[_KEY]
    return tokens.of(identity_of(scope).name)


@final
class CsrfGuard:
    """An application that answers forms of its own pages.

    Parameters
    ----------
    app : ASGI application
        It sees methods other than GET and HEAD only if they come from its own pages, or with a bearer token.
    origins : sequence of str
        What `own_origins` returned.
    refusal : callable
        Answers what is refused, with status 403.

    Notes
    -----
    It stands behind `BodyGuard` and `Identification`. The key is this process's own: after a new start, a
    page must be loaded anew before its form is sent. A token that is found out is of no use with another
    cookie.
    """

    def __init__(
        self, app: Application, *, origins: Sequence[str], refusal: Refusal = refuse_in_json
    ) -> None:
        self._app, self._refusal = app, refusal
        self._origins = frozenset(origin.encode() for origin in origins)
        self._key = secrets.token_bytes(32)

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        tokens = _Tokens(self._key, read_cookie(scope, SESSION))
        scope[_KEY] = tokens
        try:
            if not by_bearer(scope):
                self._check(scope, tokens)
        except Refused as refused:
            await self._refusal(scope, send, refused)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and tokens.made:
                message = _with_cookie(message, tokens.made)
            await send(message)

        await self._app(scope, receive, sending)

    def _check(self, scope: Connection, tokens: _Tokens) -> None:
        site = header_of(scope, b"sec-fetch-site")
        if scope["method"] in _SAFE:
            elsewhere = site in (b"cross-site", b"same-site")  # another port of this host is the same site
            if elsewhere and identity_of(scope).signed_in and not _navigates(scope):
                raise Refused(403, "another service's page may not load this")
            return
        origins = headers_of(scope, b"origin")
        if len(origins) != 1 or origins[0] not in self._origins or site not in (b"", b"same-origin"):
            raise Refused(403, "this must come from a page of this service")
        if not hmac.compare_digest(_shown(scope), tokens.of(identity_of(scope).name).encode()):
            raise Refused(403, "this form is of another session; load its page again")


def _navigates(scope: Connection) -> bool:
    """Return whether somebody follows a link to a page, rather than a page that loads a part."""
    mode, place = header_of(scope, b"sec-fetch-mode"), header_of(scope, b"sec-fetch-dest")
    return mode == b"navigate" and place == b"document"


def _shown(scope: Connection) -> bytes:
    """Return the token that a request has, empty if it is not exactly one."""
    shown = headers_of(scope, HEADER)
    if not shown and header_of(scope, b"content-type").partition(b";")[0].strip().lower() == FORM:
        try:
            fields = parse_qsl(body_of(scope).decode("ascii"), max_num_fields=_FIELDS)
        except ValueError:
            return b""
        shown = [value.encode() for name, value in fields if name == FIELD]
    return shown[0] if len(shown) == 1 else b""


def _with_cookie(message: Message, value: str) -> dict[str, Any]:
    """Add the cookie that the form's token is bound to, unless the answer sets this cookie itself."""
    own = SESSION.encode() + b"="
    headers = list(message.get("headers", ()))
    if not any(name.lower() == b"set-cookie" and text.startswith(own) for name, text in headers):
        headers.append((b"set-cookie", written_cookie(SESSION, value)))
    return {**message, "headers": headers}
