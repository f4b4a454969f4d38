"""The document is one of OpenAPI 3.1, and describes the routes that there are and no others."""

from __future__ import annotations

import re

import jsonschema
import pytest
from starlette.routing import Route

from sfumato.server.console.access.permissions import RULES
from sfumato.server.console.api.api_routes import ApiRoutes
from sfumato.server.console.api.catalog_of_operations import OPERATIONS
from sfumato.server.console.api.openapi import BASE
from tests.server.console.api.calling import document
from tests.server.console.office import MEMBERS, Office


def test_schemas_are_schemas_and_references_lead_somewhere() -> None:
    schemas = document()["components"]["schemas"]
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    text = repr(document())
    referred = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert referred == set(schemas)
    names = [each["operationId"] for path in document()["paths"].values() for each in path.values()]
    assert len(names) == len(set(names)) == len(OPERATIONS)
    for template, operations in document()["paths"].items():
        for each in operations.values():
            inside = {one["name"] for one in each["parameters"] if one["in"] == "path"}
            assert inside == set(re.findall(r"\{(\w+)\}", template))
            for status, answer in each["responses"].items():
                assert re.fullmatch("[2-5][0-9][0-9]", status)
                assert answer["description"]
                assert answer["content"]
    with pytest.raises(jsonschema.SchemaError):
        jsonschema.Draft202012Validator.check_schema({"type": "nonsense"})


def test_each_route_is_described_and_each_description_is_a_route(asked_office: Office) -> None:
    api = ApiRoutes(asked_office.console, OPERATIONS, asked_office.failures.append)
    routes = {
        (route.path, method)
        for route in api.routes()
        if isinstance(route, Route)
        for method in (route.methods or ())
        if method != "HEAD"
    }
    described = {(path, method.upper()) for path, each in document()["paths"].items() for method in each}
    assert routes - described == {(f"{BASE}/openapi.json", "GET")}
    assert described <= routes
    assert asked_office.call("", "GET", "/openapi.json").json == document()


def test_a_console_without_data_describes_no_questions(office: Office) -> None:
    paths = office.call("", "GET", "/openapi.json").json["paths"]
    assert f"{BASE}/questions" not in paths
    assert f"{BASE}/releases" in paths
    assert office.call("ada", "POST", "/questions", {}).status == 404


def test_who_may_do_what_is_the_tables_to_say(asked_office: Office) -> None:
    before = asked_office.console.ledger.head()
    for operation in OPERATIONS:
        path = operation.path.format(job="none", number="77")
        if RULES[operation.action].roles is None:
            continue
        for name, role in {"": None, **MEMBERS}.items():
            allowed = role in (RULES[operation.action].roles or ())
            if allowed and operation.name in {"exportLog", "verifyLog", "showLog", "showDataset"}:
                continue  # which answer something
            reply = asked_office.call(
                name, operation.method, path, None if operation.body is None else {"x": 1}
            )
            refused = (401, 403) if role is None else (403,)  # a form of another page gets 403
            assert (reply.status in refused) is not allowed, (name, operation.name, reply.status)
    assert asked_office.console.ledger.head() == before
