"""Who asks: a member of the ledger by name, with roles, scopes, and by what they were recognised.

>>> from sfumato.ledger import Role
>>> ada = Identity(name="ada", roles=frozenset({Role.ANALYST}), scopes=frozenset({"read"}), via="token")
>>> ada.may("view_own"), ada.may("ask"), PUBLIC.may("view_release")
(True, False, True)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, final

from sfumato.ledger.log.member_events import Role
from sfumato.server.asgi import Connection, Refused
from sfumato.server.console.access.permissions import Action, actions_of, allowed

__all__ = ["PUBLIC", "Identity", "by_bearer", "identity_of", "put_identity"]

_KEY: Final = "sfumato.identity"
_BEARER: Final = "sfumato.bearer"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who makes a request.

    Parameters
    ----------
    name : str
        The member's, as the ledger has it; empty for the public.
    roles : frozenset of Role
        What the ledger says now. They are read anew for every request.
    scopes : frozenset of str
        What the token, or the sign-in, may be used for; see `Scope`.
    via : str
        ``"token"`` for a bearer token or a session that began with one, ``"oidc"``, ``"proxy"``, or
        ``"public"`` for whoever was not recognised.

    Examples
    --------
    >>> Identity(name="ada", roles=frozenset(Role), scopes=frozenset({"read"}), via="oidc").signed_in
    True
    """

    name: str
    roles: frozenset[Role]
    scopes: frozenset[str]
    via: Literal["token", "oidc", "proxy", "public"]

    @property
    def signed_in(self) -> bool:
        """Whether this is somebody: even so they may have no role any more."""
        return self.via != "public"

    @property
    def actions(self) -> frozenset[Action]:
        """All that they may do."""
        return actions_of(self.roles, self.scopes)

    def may(self, action: Action | str) -> bool:
        """Return whether they may do this.

        Parameters
        ----------
        action : Action
            One without a rule is refused to everybody.
        """
        return allowed(action, self.roles, self.scopes)

    def require(self, action: Action | str) -> None:
        """Let pass who may do this.

        Parameters
        ----------
        action : Action

        Raises
        ------
        Refused
            With status 401 for the public, and 403 for a member without the role or the scope.
        """
        if not self.may(action):
            if not self.signed_in:
                raise Refused(401, "sign in first")
            raise Refused(403, "neither your roles nor this token allow it")


PUBLIC: Final = Identity(name="", roles=frozenset(), scopes=frozenset(), via="public")
"""Whoever was not recognised."""


def put_identity(scope: Connection, identity: Identity, *, bearer: bool = False) -> None:
    """Say who makes a request, for all that come after.

    Parameters
    ----------
    scope : dict
        ASGI's.
    identity : Identity
    bearer : bool
        Whether the request itself holds a token, which no browser adds of its own accord.
    """
    scope[_KEY], scope[_BEARER] = identity, bearer


def by_bearer(scope: Connection) -> bool:
    """Return whether the request itself holds a token, so that no other page can have made a browser send it.

    Parameters
    ----------
    scope : dict
        ASGI's.
    """
    return scope.get(_BEARER, False) is True


def identity_of(scope: Connection) -> Identity:
    """Return who makes a request: the public, unless something recognised them.

    Parameters
    ----------
    scope : dict
        ASGI's; ``request.scope`` with Starlette.

    Examples
    --------
    >>> identity_of({}) is PUBLIC
    True
    """
    found: Identity = scope.get(_KEY, PUBLIC)
    return found
