"""Calls of the console's API whose answers must be those that its document describes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.server.console.api.catalog_of_operations import OPERATIONS
from sfumato.server.console.api.openapi import BASE, openapi_document
from sfumato.server.console.api.plain_values import json_bytes
from tests.server.console.office import Office, Reply

__all__ = ["call", "document", "publish"]


@cache
def document() -> Mapping[str, Any]:
    """The document of a console with data."""
    found: Mapping[str, Any] = json.loads(json_bytes(openapi_document(OPERATIONS)))
    return found


def call(office: Office, name: str, method: str, path: str, body: object = None, **headers: str) -> Reply:
    """Return an answer, after a look at whether the document describes it."""
    reply = office.call(name, method, path, body, **headers)
    check(method, path.partition("?")[0], reply)
    return reply


def check(method: str, path: str, reply: Reply) -> None:
    """Refuse an answer that the document does not describe."""
    described = _described(method, path)["responses"][str(reply.status)]
    kind = reply.headers["content-type"].partition(";")[0]
    content = described["content"][kind]
    if "schema" in content:
        schema = {**content["schema"], "components": document()["components"]}
        jsonschema.Draft202012Validator(schema).validate(reply.json)
    if reply.status >= 400:
        assert kind == "application/problem+json"
        assert reply.json["status"] == reply.status
        assert "Traceback" not in reply.text


def _described(method: str, path: str) -> Mapping[str, Any]:
    found = [
        operations[method.lower()]
        for template, operations in document()["paths"].items()
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), BASE + path)
        and method.lower() in operations
    ]
    described: Mapping[str, Any] = found[0]
    return described


def publish(office: Office, number: int, key: Ed25519PrivateKey) -> None:
    """Bring one release of ada's to the public, in the ledger itself."""
    reviews = office.console.ledger.reviews
    reviews.request(number, by="ada")
    approval = reviews.approval(number, by="rita")
    reviews.approve(approval, approval.sign(key))
    reviews.publish(number, by="carl")
