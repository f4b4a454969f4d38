"""The pages on which people sign in with a token, and sign out."""

from __future__ import annotations

from functools import partial
from typing import final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from sfumato.server.asgi import Refused
from sfumato.server.console.access.identity import identity_of
from sfumato.server.console.access.oidc import OidcSignIn
from sfumato.server.console.access.sign_in import SignIn
from sfumato.server.console.endpoints import Endpoints, fields_of
from sfumato.server.console.pages.answer import Page
from sfumato.server.console.settings import OIDC_BACK

__all__ = ["SignInPages"]


@final
class SignInPages:
    """What stands at ``/sign-in`` and ``/sign-out``.

    Parameters
    ----------
    endpoints : Endpoints
    sign_in : SignIn
    oidc : OidcSignIn, optional
    """

    def __init__(self, endpoints: Endpoints, sign_in: SignIn, oidc: OidcSignIn | None = None) -> None:
        self._endpoints, self._sign_in, self._oidc = endpoints, sign_in, oidc

    def routes(self) -> list[BaseRoute]:
        """Return the routes of these pages.

        Returns
        -------
        list of Route
        """
        own: list[BaseRoute] = [
            Route("/sign-in", self.show, methods=["GET"]),
            Route("/sign-in", self.take, methods=["POST"]),
            Route("/sign-out", self.leave, methods=["POST"]),
        ]
        if self._oidc is not None:
            own.append(Route("/sign-in/oidc", partial(self._to_provider, self._oidc), methods=["GET"]))
            own.append(Route(OIDC_BACK, partial(self._from_provider, self._oidc), methods=["GET"]))
        return own

    async def show(self, request: Request) -> Response:
        """Show the form."""
        return self._form(request, "", 200)

    async def take(self, request: Request) -> Response:
        """Sign in with the token of the form."""
        token = fields_of(request.scope).get("token", "")
        try:
            cookie = await self._sign_in.by_token(request.scope, token)
        except Refused as refused:
            return self._form(request, refused.why, refused.status)
        return _onward("/", cookie)

    async def leave(self, request: Request) -> Response:
        """Sign out."""
        return _onward("/releases", self._sign_in.sign_out(request.scope))

    async def _to_provider(self, oidc: OidcSignIn, request: Request) -> Response:
        """Send the browser to the provider."""
        try:
            place, cookie = await oidc.begin()
        except Refused as refused:
            return self._form(request, refused.why, refused.status)
        return _onward(place, cookie)

    async def _from_provider(self, oidc: OidcSignIn, request: Request) -> Response:
        """Take back a browser that the provider signed in; the page leads on by a link, see `finish`."""
        try:
            cookies = await oidc.finish(request.scope)
        except Refused as refused:
            return self._form(request, refused.why, refused.status)
        answer = self._endpoints.response(Page(template="signed_in.html", title="Signed in"), request)
        answer.raw_headers += [(b"set-cookie", cookie) for cookie in cookies]
        return answer

    def _form(self, request: Request, refused: str, status: int) -> Response:
        signed_in = identity_of(request.scope).signed_in
        facts = {"signed_in": signed_in, "oidc": self._oidc is not None}
        page = Page(template="sign_in.html", title="Sign in", facts=facts, status=status, refused=refused)
        return self._endpoints.response(page, request)


def _onward(path: str, cookie: bytes) -> Response:
    answer = RedirectResponse(path, status_code=303)
    answer.raw_headers.append((b"set-cookie", cookie))
    return answer
