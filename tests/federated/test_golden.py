"""What was written in the frozen formats is read today, and answered as it was answered then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.federated import (
    DapTask,
    DistributedDiscreteGaussian,
    DistributedSkellam,
    SecureAggregation,
    SecureAggregationServer,
    TrustReport,
)
from sfumato.federated.dap.tls_syntax import decoded
from sfumato.federated.secure_aggregation.client_state import client_from_bytes
from tests.golden.federated import making

HERE = Path(making.__file__).parent
DRAWN = ("round-semi-honest.json", "round-active.json", "star-reports.json")


def golden(name: str) -> Any:
    return json.loads((HERE / name).read_bytes())


def test_what_is_written_today_is_what_was_written_first() -> None:
    made = making.files()
    assert sorted(made) == sorted(path.name for path in HERE.glob("*.json"))
    for name, content in made.items():
        if name not in DRAWN:
            assert content == (HERE / name).read_bytes(), name


def test_what_was_written_is_read() -> None:
    for name, document in golden("plans.json").items():
        assert SecureAggregation.from_json(document) == making.plans()[name]
    for kind in (DistributedDiscreteGaussian, DistributedSkellam):
        document = golden("noises.json")[kind.__name__]
        assert kind.from_json(document).to_json() == document
    for document in golden("trust-reports.json").values():
        assert TrustReport.from_json(document).to_json() == document
    document = golden("dap-task.json")
    assert DapTask.from_specification(document).specification() == document


def test_messages_of_dap_are_read() -> None:
    sent = {name: bytes.fromhex(text) for name, text in golden("dap-messages.json").items()}
    assert len(sent) == len(making.MESSAGES) == 14
    for value in making.MESSAGES:
        assert decoded(sent[type(value).__name__], type(value).read) == value


@pytest.mark.parametrize("mode", ["semi-honest", "active"])
def test_a_server_of_today_ends_a_round_that_was_recorded(mode: str) -> None:
    document = golden(f"round-{mode}.json")
    plan = SecureAggregation.from_json(document["plan"])
    said = {kind: [bytes.fromhex(text) for text in texts] for kind, texts in document["messages"].items()}
    known = {n: making.identity(n).public_key().public_bytes_raw() for n in range(plan.clients)}
    server = SecureAggregationServer(plan, identities=known if plan.active else None)

    def take(kind: str) -> None:
        for message in said[kind]:
            server.receive(message)

    take("keys")
    assert list(server.rosters().values()) == said["roster"]
    take("shares")
    assert list(server.deliveries().values()) == said["delivery"]
    take("vector")
    assert [server.survivors()] == said["survivors"]
    if plan.active:
        take("consent")
        assert [server.evidence()] == said["evidence"]
    take("unmask")
    found = server.aggregate()
    staying = [n for n in range(plan.clients) if n != making.LOST]
    assert found.survivors == tuple(staying)
    assert found.total.tolist() == np.sum([making.VECTORS[n] for n in staying], axis=0).tolist()


def test_a_client_of_today_goes_on_from_a_state_that_was_stored() -> None:
    document = golden("round-semi-honest.json")
    said = {kind: [bytes.fromhex(text) for text in texts] for kind, texts in document["messages"].items()}
    new, sharing, masking, unmasking = (client_from_bytes(bytes.fromhex(text)) for text in document["states"])
    assert new.advertise() == said["keys"][1]
    shares, before = sharing.share(said["roster"][1]), said["shares"][1]  # polynomials are drawn anew
    header = 4 + int.from_bytes(before[:4], "big")
    assert (len(shares), shares[:header]) == (len(before), before[:header])
    assert masking.mask(said["delivery"][1], making.VECTORS[1]) == said["vector"][1]
    assert unmasking.unmask(said["survivors"][0]) == said["unmask"][1]


def test_reports_of_star_are_opened() -> None:
    reports = [bytes.fromhex(text) for text in golden("star-reports.json")]
    assert {len(report) for report in reports} == {making.STAR.report_bytes}
    found = making.STAR.aggregate(reports)
    assert {value: one.count for value, one in found.revealed.items()} == {b"yes": 3}
    assert sorted(found.revealed[b"yes"].data) == [b"1", b"2", b"4"]
    # A client of today is counted with them.
    one = making.STAR.report(b"no", randomness=bytes([2]) * 32, data=b"6")
    assert sorted(making.STAR.aggregate([*reports, one]).revealed) == [b"no", b"yes"]
