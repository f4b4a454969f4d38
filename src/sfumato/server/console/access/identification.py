"""Who makes each request: by a bearer token, by what a trusted proxy says, or by the session of a browser.

In this order; a request that has a bearer token and something else as well is refused, since it is not clear
who asks. Roles are those that the ledger has now, and a session that began with a token ends with it.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal, final

from sfumato.server.asgi import (
    Application,
    Connection,
    Receive,
    Refusal,
    Refused,
    Send,
    headers_of,
    refuse_in_json,
)
from sfumato.server.console.access.cookies import SESSION, read_cookie
from sfumato.server.console.access.failed_logins import FailedLogins
from sfumato.server.console.access.identity import PUBLIC, Identity, put_identity
from sfumato.server.console.access.member_roles import MemberRoles
from sfumato.server.console.access.proxy_header import ProxyHeader
from sfumato.server.console.access.sessions import Sessions
from sfumato.server.console.access.token_store import InvalidToken, TokenStore

__all__ = ["Identification"]

_CHALLENGE: Final = ((b"www-authenticate", b'Bearer realm="sfumato"'),)


@final
class Identification:
    """An application whose requests say who makes them; see `identity_of`.

    Parameters
    ----------
    app : ASGI application
    roles : MemberRoles
    tokens : TokenStore
    sessions : Sessions
    failed : FailedLogins
    proxy : ProxyHeader, optional
        Of a proxy that signs people in; sessions count besides where it names nobody.
    refusal : callable
        Answers what is refused.
    """

    def __init__(
        self,
        app: Application,
        *,
        roles: MemberRoles,
        tokens: TokenStore,
        sessions: Sessions,
        failed: FailedLogins,
        proxy: ProxyHeader | None = None,
        refusal: Refusal = refuse_in_json,
    ) -> None:
        self._app, self._refusal = app, refusal
        self._roles, self._tokens, self._sessions, self._failed = roles, tokens, sessions, failed
        self._proxy = proxy

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            try:
                await self._identify(scope)
            except Refused as refused:
                await self._refusal(scope, send, refused)
                return
        await self._app(scope, receive, send)

    async def _identify(self, scope: Connection) -> None:
        authorization = headers_of(scope, b"authorization")
        named = "" if self._proxy is None else self._proxy.name_of(scope)
        cookie = read_cookie(scope, SESSION)
        if authorization:
            if named or headers_of(scope, b"cookie"):
                raise Refused(400, "a request with a token must have no cookie and no other name")
            put_identity(scope, await self._by_token(authorization), bearer=True)
        elif named and self._proxy is not None:
            put_identity(scope, await self._member(named, self._proxy.scopes, "proxy"))
        else:
            put_identity(scope, await self._by_session(cookie))

    async def _by_token(self, authorization: list[bytes]) -> Identity:
        kind, _, text = authorization[0].decode("latin-1").partition(" ")
        if len(authorization) > 1 or kind.lower() != "bearer":
            raise Refused(401, "pass one token as 'Authorization: Bearer ...'", headers=_CHALLENGE)
        try:
            token = self._tokens.verified(text.strip())
        except InvalidToken as invalid:
            await asyncio.to_thread(self._failed.note, invalid.name)
            raise Refused(401, str(invalid), headers=_CHALLENGE) from None
        return await self._member(token.name, token.scopes, "token")

    async def _by_session(self, cookie: str) -> Identity:
        session = self._sessions.find(cookie) if cookie else None
        if session is None:
            return PUBLIC
        scopes = session.scopes
        if session.token:
            token = self._tokens.find(session.token)
            if token is None:
                self._sessions.end(cookie)
                return PUBLIC
            scopes &= token.scopes
        return await self._member(session.name, scopes, session.via)

    async def _member(
        self, name: str, scopes: frozenset[str], via: Literal["token", "oidc", "proxy"]
    ) -> Identity:
        return Identity(name=name, roles=await self._roles.read(name), scopes=frozenset(scopes), via=via)
