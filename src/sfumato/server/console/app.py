"""The console as an ASGI application: who asks is found out, may or may not, and is shown a screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Final, TypeAlias

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from sfumato.errors import BudgetExceeded, LedgerUnavailable, ParameterError, SfumatoError
from sfumato.server.console.access.identity import identity_of
from sfumato.server.console.console import Console
from sfumato.server.console.pages.answer import Answer, Document, Page, Redirect
from sfumato.server.console.pages.rendering import Renderer
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit
from sfumato.server.console.screens.catalog import SCREENS

__all__ = ["application"]

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_STYLE: Final = "static/console.css"
_FIELDS: Final = 100
"""Maximum number of fields of a form."""


def application(console: Console, report_failure: Callable[[str], None]) -> Starlette:
    """Return the application.

    Parameters
    ----------
    console : Console
    report_failure : callable
        Receives the kind of an error that should not have been, for the operator; nothing of who asked.
    """
    renderer = Renderer(console.settings.title, frozenset(screen.path for screen in SCREENS))
    pages = _Pages(console, renderer, report_failure)
    routes: list[BaseRoute] = [
        Route(
            screen.path,
            pages.endpoint(screen),
            methods=[screen.method],
            name=f"{screen.method} {screen.path}",
        )
        for screen in SCREENS
    ]
    routes.append(Route("/static/console.css", _style(), methods=["GET"]))
    routes.append(Route("/", pages.home, methods=["GET"]))
    handlers = {HTTPException: pages.refused, Exception: pages.failed}
    return Starlette(routes=routes, exception_handlers=handlers)


class _Pages:
    """Turns screens into endpoints, and errors into pages."""

    def __init__(self, console: Console, renderer: Renderer, report_failure: Callable[[str], None]) -> None:
        self._console, self._renderer, self._report_failure = console, renderer, report_failure

    def endpoint(self, screen: Screen) -> Endpoint:
        """Return what answers at a screen's path: by default nobody may."""

        async def answer(request: Request) -> Response:
            identity = identity_of(request.scope)
            if not identity.may(screen.action):
                return self._not_permitted(request)
            visit = Visit(
                identity=identity,
                path=dict(request.path_params),
                query=dict(request.query_params),
                form=await _fields(request) if screen.method == "POST" else {},
            )
            return await run_in_threadpool(self._shown, screen, visit, request)

        return answer

    async def home(self, request: Request) -> Response:
        """Send to the first screen of this visitor's menu."""
        return RedirectResponse(self._renderer.first(identity_of(request.scope)), status_code=303)

    async def refused(self, request: Request, error: Exception) -> Response:
        """Answer where there is no such page, or it takes no such method."""
        status = error.status_code if isinstance(error, HTTPException) else 400
        names = {
            404: ("Not found", "There is no such page."),
            405: ("Not possible", "This page takes no such request."),
        }
        title, message = names.get(status, ("Not possible", "This request could not be read."))
        return self._message(request, title, message, status)

    async def failed(self, request: Request, error: Exception) -> Response:
        """Answer where the console itself failed: the operator hears of which kind, and nobody of what."""
        self._report_failure(f"a page failed with {type(error).__name__}")
        return self._message(request, "Failed", "The console failed. What was charged stays charged.", 500)

    def _not_permitted(self, request: Request) -> Response:
        if not identity_of(request.scope).signed_in and request.method == "GET":
            return RedirectResponse("/sign-in", status_code=303)
        return self._message(request, "Not permitted", "Your roles do not permit this.", 403)

    def _shown(self, screen: Screen, visit: Visit, request: Request) -> Response:
        try:
            return self._response(screen.show(self._console, visit), request)
        except SfumatoError as error:
            return self._message(request, "Not done", str(error), _status(error))

    def _message(self, request: Request, title: str, message: str, status: int) -> Response:
        facts = {"message": message, "back": "/"}
        return self._response(Page(template="message.html", title=title, facts=facts, status=status), request)

    def _response(self, answer: Answer, request: Request) -> Response:
        if isinstance(answer, Redirect):
            return RedirectResponse(answer.path, status_code=303)
        if isinstance(answer, Document):
            return _document(answer)
        identity = identity_of(request.scope)
        html = self._renderer.html(
            answer, identity, path=request.url.path, csrf=request.scope.get("sfumato.csrf", "")
        )
        return Response(html, status_code=answer.status, media_type="text/html; charset=utf-8")


def _status(error: SfumatoError) -> int:
    """Return the status of an error that the visitor can read and mend."""
    if isinstance(error, LedgerUnavailable):
        return 503
    if isinstance(error, BudgetExceeded):
        return 409
    return 400 if isinstance(error, ParameterError) else 409


def _document(answer: Document) -> Response:
    headers = {}
    if answer.policy:
        headers["content-security-policy"] = f"{answer.policy}; frame-ancestors 'none'"
    if answer.file_name:
        headers["content-disposition"] = f'attachment; filename="{answer.file_name}"'
    return Response(answer.content, media_type=answer.media_type, headers=headers)


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a form: its texts, the first of each name."""
    found: dict[str, str] = {}
    async with request.form(max_files=0, max_fields=_FIELDS) as form:
        for name, value in form.multi_items():
            if isinstance(value, str):
                found.setdefault(name, value)
    return found


def _style() -> Endpoint:
    content = resources.files("sfumato.server.console").joinpath(_STYLE).read_bytes()

    async def answer(_: Request) -> Response:
        return Response(content, media_type="text/css", headers={"cache-control": "max-age=3600"})

    return answer
