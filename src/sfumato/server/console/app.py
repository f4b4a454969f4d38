"""The console as an ASGI application: all screens, the API and the ways to sign in, behind the guards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from importlib import resources
from typing import Final, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from sfumato.errors import SfumatoError
from sfumato.report.markup.page_style import STYLE_SOURCE
from sfumato.server.asgi import Application, Connection, Receive, Refusal, Refused, Send
from sfumato.server.console.access.identification import Identification
from sfumato.server.console.access.oidc import OidcSignIn
from sfumato.server.console.access.proxy_header import ProxyHeader
from sfumato.server.console.access.sessions import Sessions
from sfumato.server.console.access.sign_in import SignIn
from sfumato.server.console.api.api_routes import ApiRoutes
from sfumato.server.console.api.catalog_of_operations import OPERATIONS
from sfumato.server.console.api.problems import refuse_as_problem
from sfumato.server.console.console import Console
from sfumato.server.console.endpoints import Endpoint, Endpoints
from sfumato.server.console.failures import OPERATOR_KNOWS
from sfumato.server.console.guard.guarded import guarded
from sfumato.server.console.guard.request_limits import RequestLimits
from sfumato.server.console.pages.rendering import Renderer
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.screens.catalog import SCREENS
from sfumato.server.console.sign_in_pages import SignInPages

__all__ = ["application"]

Handler: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]

_STYLE: Final = "static/console.css"
_API: Final = "/api/"


def application(
    console: Console,
    origins: Sequence[str],
    report_failure: Callable[[str], None],
    limits: RequestLimits | None = None,
) -> Application:
    """Return the application, with all guards around it.

    Parameters
    ----------
    console : Console
    origins : sequence of str
        At which browsers reach it.
    report_failure : callable
        Receives the kind of an error that should not have been, for the operator; nothing of who asked.
    limits : RequestLimits, optional
        Of each sender; by default addresses are not counted where a proxy stands before it.
    """
    settings = console.settings
    shown = [screen for screen in SCREENS if console.asking is not None or not screen.needs_data]
    sessions = Sessions(idle=min(1800.0, settings.hours * 3600), longest=settings.hours * 3600)
    endpoints = Endpoints(
        console, Renderer(settings.title, frozenset(screen.path for screen in shown)), report_failure
    )
    sign_in = SignIn(sessions, console.tokens, console.failed_logins)
    oidc = None if settings.oidc is None else OidcSignIn(settings.oidc, sign_in, console.failed_logins)
    signing = SignInPages(endpoints, sign_in, oidc)
    proxy = None
    if settings.proxy_header:
        proxy = ProxyHeader(
            header=settings.proxy_header, peers=settings.proxies, secret=settings.proxy_secret
        )
    api = ApiRoutes(console, OPERATIONS, report_failure)

    async def refusal(scope: Connection, send: Send, refused: Refused) -> None:
        answering = refuse_as_problem if scope["path"].startswith(_API) else endpoints.refusal
        await answering(scope, send, refused)

    def identified(inner: Application) -> Application:
        recognised = Identification(
            inner,
            roles=console.roles,
            tokens=console.tokens,
            sessions=sessions,
            failed=console.failed_logins,
            proxy=proxy,
            refusal=refusal,
        )
        return _with_ledger(recognised, refusal, report_failure)

    if limits is None:
        limits = RequestLimits(address_rate=None) if settings.behind_proxy else RequestLimits()
    return guarded(
        _routed(shown, endpoints, signing, api),
        identified=identified,
        origins=origins,
        limits=limits,
        refusal=refusal,
        styles=(STYLE_SOURCE,),
    )


def _with_ledger(app: Application, refusal: Refusal, report_failure: Callable[[str], None]) -> Application:
    """Return an application whose ledger or tokens may fail before it is known who asks: nobody then is."""

    async def answering(scope: Connection, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except SfumatoError as error:
            report_failure(str(error))
            await refusal(scope, send, Refused(503, OPERATOR_KNOWS))

    return answering


def _routed(
    screens: Sequence[Screen], endpoints: Endpoints, signing: SignInPages, api: ApiRoutes
) -> Application:
    """Return all paths, and what answers where none is."""
    routes: list[BaseRoute] = [
        Route(screen.path, endpoints.endpoint(screen), methods=[screen.method]) for screen in screens
    ]
    routes += signing.routes()
    routes += api.routes()
    routes.append(Route("/static/console.css", _style(), methods=["GET"]))
    routes.append(Route("/", endpoints.home, methods=["GET"]))
    handlers = {
        HTTPException: _by_path(api.refused, endpoints.refused),
        Exception: _by_path(api.failed, endpoints.failed),
    }
    made = Starlette(routes=routes, exception_handlers=handlers)
    # Each page has one address. To send on from another, the scheme would be needed, which a proxy hides.
    made.router.redirect_slashes = False
    return made


def _by_path(of_api: Handler, of_pages: Handler) -> Handler:
    """Return what answers an error in the form that its path's callers read."""

    async def answer(request: Request, error: Exception) -> Response:
        chosen = of_api if request.scope["path"].startswith(_API) else of_pages
        return await chosen(request, error)

    return answer


def _style() -> Endpoint:
    content = resources.files("sfumato.server.console").joinpath(_STYLE).read_bytes()

    async def answer(_: Request) -> Response:
        return Response(content, media_type="text/css", headers={"cache-control": "max-age=3600"})

    return answer
