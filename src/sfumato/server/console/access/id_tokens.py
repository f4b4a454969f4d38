"""ID tokens of OpenID Connect: whose signature holds, for this console, now, and for this one sign-in.

References
----------
OpenID Connect Core 1.0, section 3.1.3.7; RFC 8725, section 3.1 (algorithms that are let, by name).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

__all__ = ["InvalidIdToken", "checked_claims", "read_keys"]

_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""None with a shared secret: who may check such a token may make one."""
_LEEWAY: Final = 60
"""Seconds by which two clocks may differ."""
_LONGEST: Final = 1 << 16


class InvalidIdToken(Exception):
    """A token by which nobody is signed in.

    Parameters
    ----------
    why : str
        For the operator: which check failed, and nothing of the token.
    """


def read_keys(document: object) -> KeySet:
    """Return the keys for signatures of a provider's key set; what is not known here is left out.

    Parameters
    ----------
    document : object
        Its JSON Web Key Set.

    Raises
    ------
    InvalidIdToken
        If there is no key in it.
    """
    listed = document.get("keys") if isinstance(document, dict) else None
    keys = []
    for one in listed if isinstance(listed, list) else ():
        usable = isinstance(one, dict) and one.get("kty") in ("RSA", "EC") and one.get("use", "sig") == "sig"
        if usable:
            try:
                keys += KeySet.import_key_set({"keys": [one]}).keys
            except (JoseError, ValueError, TypeError, KeyError):
                continue
    if not keys:
        raise InvalidIdToken("the provider has no key for signatures")
    return KeySet(keys)


def checked_claims(
    text: object, keys: KeySet, *, issuer: str, client_id: str, nonce: str, now: float
) -> Mapping[str, Any]:
    """Return what an ID token says, after all checks.

    Parameters
    ----------
    text : object
        What the provider answered.
    keys : KeySet
        The provider's.
    issuer, client_id : str
        From whom and for whom it must be.
    nonce : str
        Of the sign-in that it must belong to.
    now : float
        Seconds since 1970.

    Raises
    ------
    InvalidIdToken
        If one check fails.
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise InvalidIdToken("there is no ID token")
    try:
        claims: object = jwt.decode(text, keys, algorithms=list(_ALGORITHMS)).claims
    except (JoseError, ValueError, TypeError, RecursionError) as error:
        raise InvalidIdToken(f"the signature does not hold ({type(error).__name__})") from None
    if not isinstance(claims, dict):  # which older versions of the library let pass
        raise InvalidIdToken("it holds no claims")
    if claims.get("iss") != issuer:
        raise InvalidIdToken("it is of another issuer")
    _check_audience(claims, client_id)
    _check_time(claims, now)
    if claims.get("nonce") != nonce:
        raise InvalidIdToken("it is of another sign-in")
    return claims


def _check_audience(claims: Mapping[str, Any], client_id: str) -> None:
    audience, party = claims.get("aud"), claims.get("azp")
    several = audience if isinstance(audience, list) else [audience]
    # One that is for others too must say that this console asked for it.
    if client_id not in several or party not in (None, client_id) or (len(several) > 1 and party is None):
        raise InvalidIdToken("it is for another client")


def _check_time(claims: Mapping[str, Any], now: float) -> None:
    for name in ("exp", "iat"):
        if isinstance(claims.get(name), bool) or not isinstance(claims.get(name), int | float):
            raise InvalidIdToken("it does not say when it was made and ends")
    begins = claims.get("nbf", claims["iat"])
    if not isinstance(begins, int | float) or max(begins, claims["iat"]) > now + _LEEWAY:
        raise InvalidIdToken("it is not valid yet")
    if not claims["exp"] > now - _LEEWAY:
        raise InvalidIdToken("it is over")
