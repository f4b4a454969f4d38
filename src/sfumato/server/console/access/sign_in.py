"""Signing in by a form, with a token, and signing out.

A browser cannot send a token with each request, so it gets a session for one. What it had before ends, and
the new session has a new identifier: nobody who knew the old one is signed in with it.
"""

from __future__ import annotations

import asyncio
from typing import Literal, final

from sfumato.server.asgi import Connection, Refused
from sfumato.server.console.access.cookies import SESSION, ended_cookie, read_cookie, written_cookie
from sfumato.server.console.access.failed_logins import FailedLogins
from sfumato.server.console.access.sessions import Sessions
from sfumato.server.console.access.token_store import InvalidToken, TokenStore

__all__ = ["SignIn"]


@final
class SignIn:
    """Begins and ends sessions of browsers.

    Parameters
    ----------
    sessions : Sessions
    tokens : TokenStore
    failed : FailedLogins
        Where attempts with a wrong token go.
    """

    def __init__(self, sessions: Sessions, tokens: TokenStore, failed: FailedLogins) -> None:
        self._sessions, self._tokens, self._failed = sessions, tokens, failed

    async def by_token(self, scope: Connection, text: str) -> bytes:
        """Sign a browser in by a token.

        Parameters
        ----------
        scope : dict
            ASGI's, of the request with the form.
        text : str
            The form's field.

        Returns
        -------
        bytes
            The value of a ``set-cookie`` header for the answer.

        Raises
        ------
        Refused
            With status 401, whatever is wrong with the token.
        """
        try:
            token = self._tokens.verified(text.strip())
        except InvalidToken as invalid:
            await asyncio.to_thread(self._failed.note, invalid.name)
            raise Refused(401, str(invalid)) from None
        return self.begin(scope, token.name, token.scopes, via="token", token=token.id)

    def begin(
        self,
        scope: Connection,
        name: str,
        scopes: frozenset[str],
        *,
        via: Literal["token", "oidc"],
        token: str = "",
    ) -> bytes:
        """Begin a session of a member who was recognised.

        Parameters
        ----------
        scope : dict
            ASGI's: the session that the browser had ends.
        name : str
            The member's.
        scopes : frozenset of str
        via : str
        token : str
            The identifier of the token that it ends with.

        Returns
        -------
        bytes
            The value of a ``set-cookie`` header for the answer.
        """
        self._sessions.end(read_cookie(scope, SESSION))
        return written_cookie(SESSION, self._sessions.begin(name=name, scopes=scopes, via=via, token=token))

    def sign_out(self, scope: Connection) -> bytes:
        """End the session of a browser.

        Parameters
        ----------
        scope : dict
            ASGI's, of a request by POST, which the guard of forms has let in.

        Returns
        -------
        bytes
            The value of a ``set-cookie`` header for the answer.
        """
        self._sessions.end(read_cookie(scope, SESSION))
        return ended_cookie(SESSION)
