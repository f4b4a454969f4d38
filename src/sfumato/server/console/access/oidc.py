"""Signing in by OpenID Connect: a browser goes to the provider, comes back with a code, and gets a session.

What a sign-in began with (state, nonce, and the secret whose hash the provider was given: PKCE) is sealed in
a cookie of that browser and nowhere else, so that a code of somebody else's sign-in is of no use in it, and
many sign-ins that are never ended cost nothing here. That cookie is ``SameSite=Lax``, since the provider's
page sends the browser back.

References
----------
OpenID Connect Core 1.0, section 3.1; RFC 7636 (PKCE); RFC 9207 (the issuer in the answer); RFC 9700, sections
2.1 and 4.7.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, final
from urllib.parse import parse_qsl

from cryptography.fernet import Fernet, InvalidToken

from sfumato.errors import ParameterError, SourceError
from sfumato.ledger.log.words import check_name
from sfumato.server.asgi import Connection, Refused
from sfumato.server.console.access.cookies import SIGN_IN, ended_cookie, read_cookie, written_cookie
from sfumato.server.console.access.failed_logins import FailedLogins
from sfumato.server.console.access.id_tokens import InvalidIdToken
from sfumato.server.console.access.oidc_provider import OidcProvider
from sfumato.server.console.access.oidc_settings import OidcSettings
from sfumato.server.console.access.sign_in import SignIn

__all__ = ["OidcSignIn"]

_SECONDS: Final = 600
_AT_ONCE: Final = 4
_AGAIN: Final = "sign in again"


@final
class OidcSignIn:
    """Sends browsers to a provider and signs members in when they come back.

    Parameters
    ----------
    settings : OidcSettings
    sign_in : SignIn
        Which begins the session.
    failed : FailedLogins
        Where refused sign-ins go.
    now : callable
        Seconds since 1970.

    Notes
    -----
    A sign-in takes 10 minutes at most, and is over when this process starts anew. The provider is asked for
    at most four at a time.
    """

    def __init__(
        self,
        settings: OidcSettings,
        sign_in: SignIn,
        failed: FailedLogins,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._sign_in, self._failed, self._now = settings, sign_in, failed, now
        self._provider = OidcProvider(settings, now=now)
        self._seal = Fernet(Fernet.generate_key())
        self._asking = 0

    async def begin(self) -> tuple[str, bytes]:
        """Begin a sign-in.

        Returns
        -------
        tuple of str and bytes
            Where to redirect the browser, and the value of a ``set-cookie`` header for it.

        Raises
        ------
        Refused
            With status 503, if the provider cannot be reached.
        """
        begun = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        challenge = base64.urlsafe_b64encode(hashlib.sha256(begun["verifier"].encode()).digest())
        url = await self._asked(
            self._provider.sign_in_url,
            response_type="code",
            client_id=self._settings.client_id,
            redirect_uri=self._settings.redirect_uri,
            scope=" ".join(self._settings.ask_for),
            state=begun["state"],
            nonce=begun["nonce"],
            code_challenge=challenge.decode().rstrip("="),
            code_challenge_method="S256",
        )
        sealed = self._seal.encrypt_at_time(json.dumps(begun).encode(), int(self._now()))
        return url, written_cookie(SIGN_IN, sealed.decode(), same_site="Lax", seconds=_SECONDS)

    async def finish(self, scope: Connection) -> tuple[bytes, bytes]:
        """Sign in a browser that comes back.

        Parameters
        ----------
        scope : dict
            ASGI's, of the request to ``redirect_uri``.

        Returns
        -------
        tuple of bytes
            The values of two ``set-cookie`` headers. The answer must be a page that leads on, and no
            redirect: the new cookie is not sent with a request that another site's page has begun.

        Raises
        ------
        Refused
            With status 400 if it is of no sign-in that began in this browser, 401 if the provider signed
            nobody in, 403 if they are no member, 503 if the provider cannot be reached.
        """
        begun = self._begun(scope)
        answer = _answer(scope)
        if not hmac.compare_digest(answer.get("state", "").encode(), begun["state"].encode()):
            raise Refused(400, f"this is of another sign-in; {_AGAIN}")
        if answer.get("iss", self._settings.issuer) != self._settings.issuer:
            raise Refused(400, f"this is of another provider; {_AGAIN}")
        if "error" in answer or not answer.get("code"):
            raise Refused(401, f"the provider signed nobody in; {_AGAIN}")
        try:
            claims = await self._asked(
                self._provider.claims_of, answer["code"], verifier=begun["verifier"], nonce=begun["nonce"]
            )
        except InvalidIdToken:
            await asyncio.to_thread(self._failed.note, "")
            raise Refused(401, f"the provider signed nobody in; {_AGAIN}") from None
        name = self._member(claims)
        if not name:
            await asyncio.to_thread(self._failed.note, "")
            raise Refused(403, "the provider knows you, but this console does not; ask its curator")
        session = self._sign_in.begin(scope, name, self._settings.scopes, via="oidc")
        return session, ended_cookie(SIGN_IN)

    def _begun(self, scope: Connection) -> dict[str, str]:
        try:
            sealed = read_cookie(scope, SIGN_IN).encode()
            begun = json.loads(self._seal.decrypt_at_time(sealed, _SECONDS, int(self._now())))
        except InvalidToken:
            raise Refused(400, f"no sign-in began in this browser, or too long ago; {_AGAIN}") from None
        found: dict[str, str] = begun
        return found

    def _member(self, claims: Mapping[str, Any]) -> str:
        """Return the name of whom the claims are of, empty if it is nobody's."""
        stated = claims.get(self._settings.claim)
        if not isinstance(stated, str) or not isinstance(claims.get("sub"), str):
            return ""
        if self._settings.claim == "email" and claims.get("email_verified") is not True:
            return ""
        name = stated if self._settings.members is None else self._settings.members.get(stated, "")
        try:
            return check_name("name", name)
        except ParameterError:
            return ""

    async def _asked(self, question: Callable[..., Any], *values: str, **named: str) -> Any:
        if self._asking >= _AT_ONCE:
            raise Refused(503, "too many sign-ins at a time; try again")
        self._asking += 1
        try:
            return await asyncio.to_thread(question, *values, **named)
        except SourceError:
            raise Refused(503, "the provider cannot be reached; try again") from None
        finally:
            self._asking -= 1


def _answer(scope: Connection) -> dict[str, str]:
    """Return the parameters with which a browser came back, each once."""
    try:
        pairs = parse_qsl(scope["query_string"].decode("ascii"), max_num_fields=50)
    except ValueError:
        pairs = []
    answer = dict(pairs)
    if len(answer) != len(pairs):
        raise Refused(400, f"this is no answer of the provider; {_AGAIN}")
    return answer
