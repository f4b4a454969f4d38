"""One status for each error, whoever says it: a page, or the interface for programs."""

from __future__ import annotations

import pytest

from sfumato.errors import LedgerCorrupt, LedgerMismatch, LedgerUnavailable, QueryError, SourceError
from sfumato.server.console.api.problems import problem_of
from sfumato.server.console.asking.job_store import TooManyJobs
from sfumato.server.console.asking.service import AskingService
from sfumato.server.console.failures import OPERATOR_KNOWS, status_of
from tests.server.console.office import COUNT, Office


def test_what_names_files_is_the_operators() -> None:
    for kind in (LedgerCorrupt, LedgerUnavailable, SourceError):
        problem = problem_of(kind("'/secret/people.ledger' must be a file"))
        assert (problem.status, problem.detail, problem.error) == (503, OPERATOR_KNOWS, kind.__name__)
    for error, status in ((LedgerMismatch("no"), 409), (QueryError("no"), 400), (TooManyJobs("no"), 429)):
        assert status_of(error) == problem_of(error).status == status
        assert problem_of(error).detail == "no"


def test_a_members_page_and_call_say_the_same(asked_office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(*_: object, **__: object) -> None:
        raise SourceError("'/secret/people.parquet' must be as it was, got a changed one")

    monkeypatch.setattr(AskingService, "propose", failed)
    page = asked_office.post("ada", "/ask/price", {"sql": COUNT})
    call = asked_office.call("ada", "POST", "/questions/price", {"sql": COUNT})
    for reply in (page, call):
        assert reply.status == 503
        assert "secret" not in reply.text
    assert ["/secret/people.parquet" in said for said in asked_office.failures] == [True, True]
    asked_office.failures.clear()
