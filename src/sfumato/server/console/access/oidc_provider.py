"""What a provider of OpenID Connect is asked: where its parts are, its keys, and a code's ID token."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, final
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from joserfc.jwk import KeySet

from sfumato.errors import SourceError
from sfumato.server.console.access.id_tokens import InvalidIdToken, checked_claims, read_keys
from sfumato.server.console.access.oidc_settings import OidcSettings, is_secure_url

__all__ = ["OidcProvider"]

_LONGEST: Final = 1 << 20
_SECONDS: Final = 10.0
_FRESH: Final = 3600.0
_AGAIN: Final = 60.0


class _NoRedirect(HTTPRedirectHandler):
    """A provider that sends elsewhere is not followed: a code and a secret are for its own addresses."""

    def redirect_request(self, *_: Any) -> None:
        return None


@final
class OidcProvider:
    """A provider, as it describes itself; asked anew after an hour, and for a key that is not known.

    Parameters
    ----------
    settings : OidcSettings
    now : callable
        Seconds since 1970.

    Notes
    -----
    Every method may wait for the network, 10 seconds at most for each answer, and raises `SourceError` if
    there is none. For any number of threads.
    """

    def __init__(self, settings: OidcSettings, *, now: Callable[[], float] = time.time) -> None:
        self._settings, self._now = settings, now
        self._opener = build_opener(_NoRedirect())
        self._lock = threading.Lock()
        self._described: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    def describe(self) -> Mapping[str, Any]:
        """Return what the provider says of itself.

        Returns
        -------
        mapping
            OpenID Connect Discovery 1.0, section 3.
        """
        with self._lock:
            if self._described is None or self._now() - self._described[0] >= _FRESH:
                url = self._settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
                self._described = self._now(), self._checked(self._ask(Request(url)))  # noqa: S310
            return self._described[1]

    def sign_in_url(self, **parameters: str) -> str:
        """Return where a browser goes to sign in.

        Parameters
        ----------
        **parameters : str
            Of this one sign-in.
        """
        place: str = self.describe()["authorization_endpoint"]
        return f"{place}{'&' if '?' in place else '?'}{urlencode(parameters)}"

    def claims_of(self, code: str, *, verifier: str, nonce: str) -> Mapping[str, Any]:
        """Exchange a code for an ID token, and return what that says.

        Parameters
        ----------
        code : str
            With which a browser came back.
        verifier : str
            Whose hash the sign-in began with (PKCE, RFC 7636).
        nonce : str
            With which it began.

        Raises
        ------
        InvalidIdToken
            If the provider does not take the code, or its token does not hold.
        SourceError
            If there is no answer.
        """
        answer = self._exchange(code, verifier)

        def checked(keys: KeySet) -> Mapping[str, Any]:
            own = self._settings
            given = answer.get("id_token")
            return checked_claims(
                given, keys, issuer=own.issuer, client_id=own.client_id, nonce=nonce, now=self._now()
            )

        keys = self._known_keys()
        try:
            return checked(keys)
        except InvalidIdToken:
            newer = self._known_keys(older_than=_AGAIN)
            if newer is keys:
                raise
            return checked(newer)

    def _exchange(self, code: str, verifier: str) -> Mapping[str, Any]:
        own, described = self._settings, self.describe()
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": own.redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"content-type": "application/x-www-form-urlencoded"}
        methods = described.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if own.client_secret is None:
            fields["client_id"] = own.client_id
        elif "client_secret_basic" in methods:
            pair = f"{quote(own.client_id, safe='')}:{quote(own.client_secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            fields |= {"client_id": own.client_id, "client_secret": own.client_secret}
        place = described["token_endpoint"]
        request = Request(place, data=urlencode(fields).encode(), headers=headers, method="POST")  # noqa: S310
        return self._ask(request)

    def _known_keys(self, older_than: float = _FRESH) -> KeySet:
        place = self.describe()["jwks_uri"]
        with self._lock:
            if self._keys is None or self._now() - self._keys[0] >= older_than:
                self._keys = self._now(), read_keys(self._ask(Request(place)))  # noqa: S310
            return self._keys[1]

    def _checked(self, described: Mapping[str, Any]) -> Mapping[str, Any]:
        own = self._settings.issuer
        if described.get("issuer") != own:
            raise SourceError(f"{own} must describe itself by this name, got another; check issuer")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            place = described.get(name)
            # Only a provider on this machine may name addresses without TLS.
            if not is_secure_url(place) or not str(place).startswith(("https:", f"{urlsplit(own).scheme}:")):
                raise SourceError(f"the provider's {name} must be an https:// URL, got another or none")
        return described

    def _ask(self, request: Request) -> Mapping[str, Any]:
        """Return the JSON object that a URL answers with: one that `is_secure_url` has let."""
        request.add_header("accept", "application/json")
        try:
            with self._opener.open(request, timeout=_SECONDS) as response:
                content = response.read(_LONGEST + 1)
        except HTTPError as error:
            error.close()
            if request.data is not None and error.code in (400, 401):
                raise InvalidIdToken("the provider does not take the code") from None
            raise SourceError(f"the provider must answer, got status {error.code}; try again") from None
        except (OSError, http.client.HTTPException) as error:
            raise SourceError(f"the provider must answer, got {type(error).__name__}; try again") from None
        try:
            found = json.loads(content) if len(content) <= _LONGEST else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise SourceError("the provider must answer with a JSON object, got something else; check issuer")
        return found
