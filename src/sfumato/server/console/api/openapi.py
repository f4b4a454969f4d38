"""The OpenAPI 3.1 document of the interface, made from the operations themselves.

>>> document = openapi_document(())
>>> document["openapi"], document["paths"]
('3.1.0', {})
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import sfumato
from sfumato.server.console.access.permissions import RULES
from sfumato.server.console.api.operation import JSON, Operation, Schema
from sfumato.server.console.api.problems import PROBLEM
from sfumato.server.console.api.schemas import SCHEMAS, reference

__all__ = ["BASE", "openapi_document", "problem_statuses"]

BASE: Final = "/api/v1"
_NAMES: Final = re.compile(r"\{(\w+)\}")
_ABOUT: Final = (
    "Questions, jobs, accounts, reviews and published releases of one ledger. Times of answers follow from "
    "public parameters: look again after Retry-After. Errors are problems of RFC 9457."
)


def openapi_document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the document.

    Parameters
    ----------
    operations : sequence of Operation
        Those that a console has.
    """
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(BASE + each.path, {})[each.method.lower()] = _described(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": "sfumato console", "version": sfumato.__version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def problem_statuses(operation: Operation) -> tuple[int, ...]:
    """Return the statuses with which an operation may refuse.

    Parameters
    ----------
    operation : Operation
    """
    found = {400, 401, 406, 429, 503, *operation.problems}
    rule = RULES[operation.action]
    if rule.roles is not None:
        found.add(403)
    if _NAMES.search(operation.path):
        found.add(404)
    if operation.body is not None:
        found |= {408, 413, 415}
    return tuple(sorted(found))


def _described(operation: Operation) -> dict[str, Any]:
    rule = RULES[operation.action]
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "security": [{"token": []}] if rule.roles is not None else [{}, {"token": []}],
        "parameters": _parameters(operation),
        "responses": {
            **{str(status): _answer(status, kinds) for status, kinds in operation.answers.items()},
            **{str(status): _problem(status) for status in problem_statuses(operation)},
        },
    }
    if rule.scope is not None:
        described["description"] = f"For tokens with the scope {rule.scope.value!r}."
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": operation.body}}}
    return described


def _parameters(operation: Operation) -> list[Mapping[str, Any]]:
    text = {"type": "string"}
    inside = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in _NAMES.findall(operation.path)
    ]
    asked = [{"name": name, "in": "query", "schema": schema} for name, schema in operation.query.items()]
    return [*inside, *asked]


def _answer(status: int, kinds: Mapping[str, Schema | None]) -> Mapping[str, Any]:
    content = {kind: {} if schema is None else {"schema": schema} for kind, schema in kinds.items()}
    return {"description": HTTPStatus(status).phrase, "content": content}


def _problem(status: int) -> Mapping[str, Any]:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {PROBLEM: {"schema": reference("Problem")}},
    }
