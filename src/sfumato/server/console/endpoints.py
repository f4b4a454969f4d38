"""Screens as endpoints of HTTP: who may not is refused, and every error becomes a page."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias, final
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sfumato.errors import SfumatoError
from sfumato.server.asgi import Connection, Refused, Send, answer, header_of, refuse_in_json
from sfumato.server.console.access.identity import PUBLIC, identity_of
from sfumato.server.console.console import Console
from sfumato.server.console.failures import OPERATOR_KNOWS, OPERATORS, status_of
from sfumato.server.console.guard.bodies import form_of
from sfumato.server.console.guard.csrf import form_token
from sfumato.server.console.pages.answer import Answer, Document, Page, Redirect
from sfumato.server.console.pages.rendering import Renderer
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit

__all__ = ["Endpoint", "Endpoints", "fields_of"]

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_LONGEST_WAIT: Final = 5.0
_OK: Final = 200


@final
class Endpoints:
    """Turns screens into endpoints, and errors into pages.

    Parameters
    ----------
    console : Console
    renderer : Renderer
    report_failure : callable
        Receives the kind of an error that should not have been, for the operator; nothing of who asked.
    """

    def __init__(self, console: Console, renderer: Renderer, report_failure: Callable[[str], None]) -> None:
        self._console, self._renderer, self._report_failure = console, renderer, report_failure

    def endpoint(self, screen: Screen) -> Endpoint:
        """Return what answers at a screen's path: by default nobody may."""

        async def shown(request: Request) -> Response:
            identity = identity_of(request.scope)
            if not identity.may(screen.action):
                return self._not_permitted(request)
            visit = Visit(
                identity=identity,
                path=dict(request.path_params),
                query=dict(request.query_params),
                form=fields_of(request.scope) if screen.method == "POST" else {},
            )
            if screen.wait is not None:
                await self._wait(screen.wait, visit)
            return await run_in_threadpool(self._shown, screen, visit, request)

        return shown

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
        return self.message(request, title, message, status)

    async def failed(self, request: Request, error: Exception) -> Response:
        """Answer where the console itself failed: the operator hears of which kind, and nobody of what."""
        self._report_failure(f"a page failed with {type(error).__name__}")
        return self.message(request, "Failed", "The console failed. What was charged stays charged.", 500)

    async def refusal(self, scope: Connection, send: Send, refused: Refused) -> None:
        """Answer what a guard refused: a page, or JSON to who does not want one.

        Parameters
        ----------
        scope : dict
            ASGI's.
        send : callable
        refused : Refused
        """
        if b"text/html" not in header_of(scope, b"accept"):
            await refuse_in_json(scope, send, refused)
            return
        facts = {"message": _sentence(refused.why), "back": ""}
        page = Page(template="message.html", title="Refused", facts=facts, status=refused.status)
        content = self._renderer.html(page, PUBLIC, path=scope["path"]).encode()
        extra = [*refused.headers, (b"connection", b"close")]
        await answer(send, refused.status, content, kind=b"text/html; charset=utf-8", extra=extra)

    def _not_permitted(self, request: Request) -> Response:
        if not identity_of(request.scope).signed_in and request.method == "GET":
            return RedirectResponse("/sign-in", status_code=303)
        return self.message(request, "Not permitted", "Your roles do not permit this.", 403)

    async def _wait(self, wait: Callable[[Console, Visit], float], visit: Visit) -> None:
        """Wait until there is nothing to wait for any more, or for so long that the page says so."""
        left = _LONGEST_WAIT
        while left > 0:
            try:
                pause = await run_in_threadpool(wait, self._console, visit)
            except SfumatoError:  # which the screen then says
                return
            if pause <= 0:
                return
            await asyncio.sleep(min(pause, left))
            left -= pause

    def _shown(self, screen: Screen, visit: Visit, request: Request) -> Response:
        try:
            return self.response(screen.show(self._console, visit), request)
        except SfumatoError as error:
            said = str(error)
            if isinstance(error, OPERATORS):
                self._report_failure(said)
                said = _sentence(OPERATOR_KNOWS)
            elif (page := self._form_again(screen, visit)) is not None:
                refused = replace(page, refused=said, sent=visit.form, status=status_of(error))
                return self.response(refused, request)
            return self.message(request, "Not done", said, status_of(error), back=_way_back(screen, request))

    def _form_again(self, screen: Screen, visit: Visit) -> Page | None:
        """Return the page of a form that was refused, where there is one."""
        if screen.again is None:
            return None
        try:
            page = screen.again(self._console, visit)
        except SfumatoError:  # it cannot be shown either: what was said first stands on a page of its own
            return None
        return page if isinstance(page, Page) and page.status == _OK else None

    def message(
        self, request: Request, title: str, message: str, status: int, *, back: str = "/"
    ) -> Response:
        """Return a page with one message.

        Parameters
        ----------
        request : Request
        title, message : str
        status : int
        back : str
            Where its link leads.
        """
        facts = {"message": message, "back": back}
        return self.response(Page(template="message.html", title=title, facts=facts, status=status), request)

    def response(self, answer: Answer, request: Request) -> Response:
        """Return what a screen answered as HTTP has it.

        Parameters
        ----------
        answer : Page, Redirect or Document
        request : Request
        """
        if isinstance(answer, Redirect):
            return RedirectResponse(answer.path, status_code=303)
        if isinstance(answer, Document):
            return _document(answer)
        html = self._renderer.html(
            answer,
            identity_of(request.scope),
            path=request.scope["path"],
            csrf=partial(form_token, request.scope),
        )
        return Response(html, status_code=answer.status, media_type="text/html; charset=utf-8")


def _way_back(screen: Screen, request: Request) -> str:
    """Return where what was refused is asked again: the page with its form, or the page above it."""
    path: str = request.scope["path"]
    above = path.rpartition("/")[0]
    if screen.method == "POST" or "{" in screen.path:
        return quote(above or path)
    return path if request.scope["query_string"] else "/"


def _sentence(words: str) -> str:
    """Return words as a sentence of a page."""
    return f"{words[:1].upper()}{words[1:]}."


def _document(answer: Document) -> Response:
    headers = {}
    if answer.file_name:
        headers["content-disposition"] = f'attachment; filename="{answer.file_name}"'
    return Response(answer.content, media_type=answer.media_type, headers=headers)


def fields_of(scope: Connection) -> dict[str, str]:
    """Return the fields of a form, the first of each name.

    Parameters
    ----------
    scope : dict
        ASGI's.

    Raises
    ------
    HTTPException
        If the body is no form; see `sfumato.server.console.guard.bodies.form_of`.
    """
    try:
        fields = form_of(scope)
    except Refused as refused:
        raise HTTPException(refused.status) from None
    found: dict[str, str] = {}
    for name, value in fields:
        found.setdefault(name, value)
    return found
