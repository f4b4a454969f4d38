"""The pages on which people sign in with a token, and sign out."""

from __future__ import annotations

from typing import final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from sfumato.server.asgi import Refused
from sfumato.server.console.access.identity import identity_of
from sfumato.server.console.access.sign_in import SignIn
from sfumato.server.console.endpoints import Endpoints, fields_of
from sfumato.server.console.pages.answer import Page

__all__ = ["SignInPages"]


@final
class SignInPages:
    """What stands at ``/sign-in`` and ``/sign-out``.

    Parameters
    ----------
    endpoints : Endpoints
    sign_in : SignIn
    """

    def __init__(self, endpoints: Endpoints, sign_in: SignIn) -> None:
        self._endpoints, self._sign_in = endpoints, sign_in

    def routes(self) -> list[BaseRoute]:
        """Return the routes of these pages.

        Returns
        -------
        list of Route
        """
        return [
            Route("/sign-in", self.show, methods=["GET"]),
            Route("/sign-in", self.take, methods=["POST"]),
            Route("/sign-out", self.leave, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """Show the form."""
        return self._form(request, "", 200)

    async def take(self, request: Request) -> Response:
        """Sign in with the token of the form."""
        token = (await fields_of(request)).get("token", "")
        try:
            cookie = await self._sign_in.by_token(request.scope, token)
        except Refused as refused:
            return self._form(request, refused.why, refused.status)
        return _onward("/", cookie)

    async def leave(self, request: Request) -> Response:
        """Sign out."""
        return _onward("/releases", self._sign_in.sign_out(request.scope))

    def _form(self, request: Request, refused: str, status: int) -> Response:
        signed_in = identity_of(request.scope).signed_in
        facts = {"refused": refused, "signed_in": signed_in}
        page = Page(template="sign_in.html", title="Sign in", facts=facts, status=status)
        return self._endpoints.response(page, request)


def _onward(path: str, cookie: bytes) -> Response:
    answer = RedirectResponse(path, status_code=303)
    answer.raw_headers.append((b"set-cookie", cookie))
    return answer
