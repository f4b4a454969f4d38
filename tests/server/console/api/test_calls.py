"""The API by its calls: what is asked, charged once, answered, reviewed, published, and what is refused."""

from __future__ import annotations

import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.ledger import Approval
from sfumato.server.console.services.reviewing import CHECKLIST
from tests.cases import cases
from tests.server.console.api.calling import call, publish
from tests.server.console.office import COUNT, Office, Reply

ARROW = "application/vnd.apache.arrow.stream"
SQL = COUNT.replace("0.25", "0.125")
QUESTION = {"sql": SQL, "request": "a random id", "purpose": "a report"}


def _ended(office: Office, job: Reply) -> Reply:
    """Wait for a job as a client does."""
    for _ in range(1000):
        if job.json["retry_after"] is None:
            return job
        assert int(job.headers["retry-after"]) >= job.json["retry_after"]
        time.sleep(job.json["retry_after"])
        job = call(office, "ada", "GET", f"/jobs/{job.json['id']}")
    raise AssertionError(job.text)


def test_a_question_is_priced_charged_once_answered_and_found_again(asked_office: Office) -> None:
    office, ledger = asked_office, asked_office.console.ledger
    before = ledger.head().charges
    priced = call(office, "ada", "POST", "/questions/price", {"sql": SQL}).json
    assert (priced["sentence"], priced["cost"]) == ("Spend 0.125 of your 0.25 epsilon.", {"epsilon": 0.125})
    wanted = {"sql": SQL.replace("epsilon=0.125, ", ""), "wanted": {"error": 30}}
    assert call(office, "ada", "POST", "/questions/price", wanted).json["epsilon"] < 0.125
    assert ledger.head().charges == before
    sent = call(office, "ada", "POST", "/questions", {**QUESTION, "at_most": priced["cost"]})
    assert (sent.status, sent.location) == (202, f"/api/v1/jobs/{sent.json['id']}")
    early = call(office, "ada", "GET", f"/jobs/{sent.json['id']}/answer")
    job = _ended(office, sent)
    assert early.status in (200, 409)
    assert job.json["state"] == "done"
    again = call(office, "ada", "POST", "/questions", QUESTION)
    assert (again.status, again.json["id"]) == (200, job.json["id"])
    assert ledger.head().charges == before + 1
    path = f"/jobs/{job.json['id']}/answer"
    answer = call(office, "ada", "GET", path).json
    assert [column["name"] for column in answer["columns"]] == ["n", "n_lower", "n_upper"]
    stream = call(office, "ada", "GET", path, accept=f"{ARROW}, application/json;q=0.5")
    table = pa.ipc.open_stream(stream.content).read_all()
    assert [list(row.values()) for row in table.to_pylist()] == answer["rows"]
    assert json.loads(table.schema.metadata[b"sfumato.facts"]) == answer["facts"]
    assert answer["facts"]["receipts"][0]["number"] == job.json["charges"][0] == before + 1
    assert call(office, "ada", "GET", path, accept="image/png").status == 406
    assert call(office, "ada", "DELETE", f"/jobs/{job.json['id']}").json["state"] == "done"
    listed = call(office, "ada", "GET", "/jobs?limit=1").json["jobs"]
    assert [each["id"] for each in listed] == [job.json["id"]]
    reviewed = call(office, "ada", "POST", f"/jobs/{job.json['id']}/review", {"comment": "for print"})
    assert reviewed.json == {"reviews": [{"number": before + 1, "state": "requested"}]}
    for other in ("GET", "DELETE"):
        assert call(office, "ada", other, "/jobs/nothing").status == 404


def test_what_does_not_fit_says_what_would(asked_office: Office) -> None:
    before = asked_office.console.ledger.head()
    large = {**QUESTION, "sql": COUNT.replace("0.25", "0.375")}
    refused = call(asked_office, "ada", "POST", "/questions", large)
    assert (refused.status, refused.json["error"]) == (409, "BudgetExceeded")
    assert refused.json["remaining"]["answerable_epsilon"] == 0.25
    assert refused.json["requested"]["epsilon"] == 0.375
    assert asked_office.console.ledger.head() == before
    grown = call(asked_office, "ada", "POST", "/questions", {**QUESTION, "at_most": {"epsilon": 0.0625}})
    assert (grown.status, grown.json["error"]) == (400, "ParameterError")
    assert asked_office.console.ledger.head() == before


def test_account_dataset_and_dry_run(asked_office: Office) -> None:
    office = asked_office
    account = call(office, "ada", "GET", "/account").json
    assert (account["budget"]["epsilon"], account["left"]["amounts"]["epsilon"]) == (0.5, 0.25)
    body = {"epsilon": 1.5, "purpose": "more"}
    assert call(office, "ada", "POST", "/account/requests", body).json["request"]["budget"]["epsilon"] == 1.5
    assert call(office, "ada", "POST", "/account/requests", {"purpose": "more"}).status == 400
    facts = call(office, "ada", "GET", "/dataset").json
    assert [column["name"] for column in facts["tables"][0]["columns"]] == ["id", "age"]
    run = call(office, "ada", "POST", "/dry-runs", {"sql": SQL, "seed": 1}).json
    stream = call(office, "ada", "POST", "/dry-runs", {"sql": SQL, "seed": 1}, accept=ARROW)
    assert pa.ipc.open_stream(stream.content).read_all().column(0).to_pylist() == [run["rows"][0][0]]
    assert run["simulated"]


def test_a_release_is_reviewed_signed_published_and_withdrawn(office: Office, key: Ed25519PrivateKey) -> None:
    office.console.ledger.reviews.request(1, by="ada")
    assert [each["number"] for each in call(office, "rita", "GET", "/reviews").json["reviews"]] == [1]
    names = [name for name, _ in CHECKLIST]
    assert [each["name"] for each in call(office, "rita", "GET", "/reviews/1").json["checklist"]] == names
    assert "<!DOCTYPE html>" in call(office, "rita", "GET", "/reviews/1/page").text
    assert call(office, "rita", "POST", "/reviews/1/return", {"comment": " "}).status == 400
    assert call(office, "rita", "POST", "/reviews/1/return", {"comment": "no"}).json["state"] == "returned"
    office.console.ledger.reviews.request(1, by="ada")
    part = {"confirmed": names[1:]}
    assert call(office, "rita", "POST", "/reviews/1/statement", part).status == 400
    made = call(office, "rita", "POST", "/reviews/1/statement", {"confirmed": names, "comment": "fine"})
    statement = made.json["statement"]
    signature = Approval.from_json(statement).sign(key).hex()
    wrong = {"statement": statement, "signature": "0" * 128}
    assert call(office, "rita", "POST", "/reviews/1/approve", wrong).status == 400
    signed = {"statement": statement, "signature": signature}
    assert call(office, "rita", "POST", "/reviews/1/approve", signed).json["state"] == "approved"
    assert call(office, "", "GET", "/releases/1").status == 404
    assert call(office, "carl", "POST", "/reviews/1/publish", {}).json["state"] == "published"
    assert [each["state"] for each in call(office, "", "GET", "/releases").json["releases"]] == ["published"]
    shown = call(office, "", "GET", "/releases/1").json
    assert shown["facts"]["intervals"] == ["n"]
    assert shown["facts"]["digest"] == office.console.ledger.receipt(1).digest
    assert (
        call(office, "", "GET", "/releases/1", accept="text/html").text == office.get("", "/releases/1").text
    )
    assert call(office, "carl", "POST", "/reviews/1/withdraw", {"comment": "an error"}).status == 200
    gone = call(office, "", "GET", "/releases/1")
    assert (gone.status, gone.json["detail"]) == (410, "this release was withdrawn: an error")
    for path in ("/releases/1.parquet", "/releases/1.arrow"):
        assert call(office, "", "GET", path).status == 410
    for number in ("2", "x", "0", "9" * 40):
        assert call(office, "", "GET", f"/releases/{number}").status == 404
        assert call(office, "rita", "GET", f"/reviews/{number}").status == 404


def test_the_log_is_shown_verified_and_exported(office: Office) -> None:
    whole, part = (call(office, name, "GET", "/log").json for name in ("carl", "otto"))
    assert whole["head"]["position"] == office.console.ledger.head().position
    assert part["head"] is None
    assert {"noise drawn", "release stored"} & {event["kind"] for event in part["events"]} == set()
    assert call(office, "otto", "POST", "/log/verify", {}).json["sound"] is True
    assert call(office, "otto", "POST", "/log/export").text == office.console.ledger.export()
    assert office.console.heads.last() is not None
    assert call(office, "otto", "GET", "/log?page=9").json["page"] == 1


@cases(
    ("path", "body", "error"),
    [
        ("/questions", {"sql": SQL}, "body.request must be given"),
        ("/questions", {**QUESTION, "sql": 7}, "body.sql must be of type string"),
        ("/questions", {**QUESTION, "more": 7}, "body must have no member but"),
        ("/questions", {**QUESTION, "at_most": {"epsilon": "1"}}, "must be of type number"),
        ("/questions", {**QUESTION, "epsilon": True}, "body.epsilon must be of type"),
        ("/questions", {**QUESTION, "epsilon": -1}, "epsilon must be positive"),
        ("/questions", {**QUESTION, "purpose": "\ud800"}, "body must be of characters"),
        ("/questions", {**QUESTION, "params": {"x": {}}}, "params must have"),
        ("/questions", {**QUESTION, "request": ""}, "request must be"),
        ("/questions", {**QUESTION, "sql": "SELECT age FROM data"}, "WITH DIFFERENTIAL_PRIVACY"),
        ("/questions/price", {"sql": SQL, "wanted": {"error": {"n": "x"}}}, "must be of type number"),
        ("/questions/price", {"sql": SQL, "wanted": {"error": 10**400}}, "error must be positive"),
        ("/questions/price", {"sql": SQL, "wanted": {"error": {"n": -1}}}, "error of 'n' must be positive"),
        ("/questions/price", [SQL], "body must be of type object"),
        ("/dry-runs", {"sql": SQL, "seed": -1}, "body.seed must be at least 0"),
    ],
)
def test_bad_bodies_charge_nothing(
    asked_office: Office, path: str, body: dict[str, object], error: str
) -> None:
    before = asked_office.console.ledger.head()
    refused = call(asked_office, "ada", "POST", path, body)
    assert refused.status == 400
    assert error in refused.json["detail"]
    assert asked_office.console.ledger.head() == before


def test_requests_that_are_none(asked_office: Office) -> None:
    office = asked_office
    for raw in ("{", '{"sql": NaN}', "[" * 100_000, '{"sql": "\\ud800"}', "1" * 5000, "\x00"):
        sent = office.send("ada", "POST", "/api/v1/questions/price", raw.encode(), b"application/json")
        assert sent.status == 400, raw[:20]
    assert office.send("ada", "POST", "/api/v1/questions/price", b"sql=1", b"text/plain").status == 415
    large = office.send("ada", "POST", "/api/v1/questions", b"x" * (1 << 21), b"application/json")
    assert (large.status, large.headers["content-type"]) == (413, "application/problem+json")
    for query in ("limit=0", "limit=x", "limit=1&limit=2", "other=1", f"offset={'0' * 20}{'9' * 5000}"):
        assert call(office, "ada", "GET", f"/jobs?{query}").status == 400, query
    assert call(office, "ada", "GET", "/jobs?limit=0001").json == {"jobs": []}
    assert office.call("ada", "PUT", "/jobs").status == 405
    assert office.call("ada", "GET", "/jobs", cookie="a=b").json["status"] == 400
    assert office.call("", "GET", "/jobs", authorization="Bearer nonsense").json["status"] == 401
    forged = office.call("", "POST", "/questions", QUESTION, cookie="__Host-sfumato=x")
    assert (forged.status, forged.headers["content-type"]) == (403, "application/problem+json")


def test_published_tables_have_stable_tags(office: Office, key: Ed25519PrivateKey) -> None:
    publish(office, 1, key)
    for path in ("/releases/1", "/releases/1.arrow", "/releases/1.parquet", "/releases.duckdb"):
        first = call(office, "", "GET", path)
        office.ask(COUNT.replace("n FROM", f"m{len(path)} FROM").replace("0.25", "0.03125"))
        again = office.call("", "GET", path, if_none_match=first.headers["etag"])
        assert (again.status, again.content) == (304, b""), path
    assert office.call("", "HEAD", "/releases.duckdb").content == b""
    part = office.call("", "GET", "/releases/1.parquet", range="bytes=0-3")
    assert (part.status, part.content) == (206, b"PAR1")
    table = pq.read_table(pa.BufferReader(call(office, "", "GET", "/releases/1.parquet").content))
    assert table.schema.metadata[b"receipt"].startswith(b"receipt 1 of ledger")
