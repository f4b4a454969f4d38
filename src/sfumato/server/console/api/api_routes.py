"""Operations as routes: who may not is refused, what is asked is checked, and every error is a problem."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, final

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from sfumato import _check
from sfumato.errors import SfumatoError
from sfumato.server.asgi import header_of
from sfumato.server.console.access.identity import identity_of
from sfumato.server.console.access.permissions import RULES
from sfumato.server.console.api.body_check import check_value, read_query
from sfumato.server.console.api.negotiation import chosen
from sfumato.server.console.api.openapi import BASE, openapi_document
from sfumato.server.console.api.operation import JSON, Call, Operation, Outcome
from sfumato.server.console.api.plain_values import json_bytes
from sfumato.server.console.api.problems import PROBLEM, Problem, problem_of
from sfumato.server.console.console import Console
from sfumato.server.console.failures import OPERATORS
from sfumato.server.console.guard.bodies import body_of

__all__ = ["ApiRoutes"]


@final
class ApiRoutes:
    """Answers requests by the operations that a console has.

    Parameters
    ----------
    console : Console
    operations : sequence of Operation
    report_failure : callable
        Receives the kind of an error that should not have been, for the operator; nothing of who asked.
    """

    def __init__(
        self, console: Console, operations: Sequence[Operation], report_failure: Callable[[str], None]
    ) -> None:
        self._console, self._report_failure = console, report_failure
        self._operations = [each for each in operations if console.asking is not None or not each.needs_data]
        self._document = json_bytes(openapi_document(self._operations))

    def routes(self) -> list[BaseRoute]:
        """Return the routes, the document's among them."""
        made: list[BaseRoute] = [Route(f"{BASE}/openapi.json", self._openapi, methods=["GET"])]
        return made + [
            Route(BASE + each.path, self._endpoint(each), methods=[each.method]) for each in self._operations
        ]

    async def _openapi(self, _: Request) -> Response:
        return Response(self._document, media_type=JSON)

    def _endpoint(self, operation: Operation) -> Callable[[Request], Any]:
        async def answered(request: Request) -> Response:
            return await run_in_threadpool(self._answered, operation, request)

        return answered

    def _answered(self, operation: Operation, request: Request) -> Response:
        identity = identity_of(request.scope)
        try:
            if not identity.may(operation.action):
                _forbid(signed_in=identity.signed_in)
            media = _media(request, operation)
            call = Call(
                identity=identity,
                path=dict(request.path_params),
                query=read_query(request.query_params.multi_items(), operation.query),
                body={} if operation.body is None else _body(request, operation),
                media=media,
            )
            return _response(operation, operation.run(self._console, call), call, request)
        except Problem as problem:
            return _problem_response(problem)
        except SfumatoError as error:
            if isinstance(error, OPERATORS):
                self._report_failure(str(error))
            return _problem_response(problem_of(error))

    async def refused(self, _: Request, error: Exception) -> Response:
        """Answer where there is no such route, or it takes no such method."""
        status = error.status_code if isinstance(error, HTTPException) else 400
        detail = f"the OpenAPI document at {BASE}/openapi.json says what there is"
        return _problem_response(Problem(status=status, detail=detail))

    async def failed(self, _: Request, error: Exception) -> Response:
        """Answer where the console itself failed: the operator hears of which kind, and nobody of what."""
        self._report_failure(f"a call failed with {type(error).__name__}")
        detail = "the console failed; what was charged stays charged"
        return _problem_response(Problem(status=500, detail=detail))


def _forbid(*, signed_in: bool) -> NoReturn:
    if signed_in:
        raise Problem(status=403, detail="neither your roles nor this token allow it")
    headers = {"www-authenticate": 'Bearer realm="sfumato"'}
    raise Problem(status=401, detail="pass a token as 'Authorization: Bearer ...'", headers=headers)


def _media(request: Request, operation: Operation) -> str:
    media = chosen(request.headers.get("accept", ""), operation.media)
    if media is None:
        raise Problem(status=406, detail=f"this is answered as {', '.join(operation.media)}")
    return media


def _body(request: Request, operation: Operation) -> Mapping[str, Any]:
    """Return the JSON object that a request has, of the declared schema."""
    kind = header_of(request.scope, b"content-type").partition(b";")[0].strip().lower()
    raw = body_of(request.scope)
    if kind != JSON.encode() and (raw or kind):
        raise Problem(status=415, detail=f"the body must be {JSON}")
    try:
        found = json.loads(raw or b"{}", parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Problem(status=400, detail="the body must be JSON in UTF-8", error="ParameterError") from None
    check_value("body", found, operation.body or {})
    if not _storable(found):
        _check.refuse_state("body", "be of characters", "one is half of a pair", "send UTF-8")
    return dict(found)


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _storable(value: object) -> bool:
    """Whether all texts are of whole characters."""
    if isinstance(value, str):
        return not any("\ud800" <= each <= "\udfff" for each in value)
    if isinstance(value, dict):
        return all(_storable(each) for pair in value.items() for each in pair)
    return all(_storable(each) for each in value) if isinstance(value, list) else True


def _response(operation: Operation, outcome: Outcome, call: Call, request: Request) -> Response:
    """Return what an operation answered; what everybody may see has a tag, for caches."""
    headers = dict(outcome.headers)
    if len(operation.media) > 1:
        headers["vary"] = "accept"
    content = outcome.part()
    if isinstance(content, Path):
        headers |= {"etag": f'"{content.stem}"', "cache-control": "no-cache"}
        if _is_known(request, headers["etag"]):
            return Response(status_code=304, headers=headers)
        return FileResponse(content, headers=headers, media_type=call.media)
    body = json_bytes(outcome.content) if content is None else content
    if request.method == "GET" and RULES[operation.action].roles is None:
        tag = hashlib.sha256(call.media.encode() + b"\n" + body).hexdigest()
        headers |= {"etag": f'"{tag}"', "cache-control": "no-cache"}
        if _is_known(request, headers["etag"]):
            return Response(status_code=304, headers=headers)
    kind = f"{call.media}; charset=utf-8" if call.media.startswith("text/") else call.media
    return Response(body, status_code=outcome.status, headers={**headers, "content-type": kind})


def _is_known(request: Request, tag: str) -> bool:
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return tag in known or "*" in known


def _problem_response(problem: Problem) -> Response:
    headers = {**problem.headers, "content-type": PROBLEM}
    return Response(json_bytes(problem.to_json()), status_code=problem.status, headers=headers)
