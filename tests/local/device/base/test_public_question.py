"""What a device sends to a collector: bound to the question, known again by nonce, and private alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sfumato import local
from sfumato.errors import ParameterError
from sfumato.local import device
from sfumato.local.shuffle import ShuffledSum

ORACLE = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(["red", "green", "blue"]))
ASKED = device.PublicQuestion(randomizer=ORACLE.device, name="week 7")


def test_a_question_is_known_by_all_that_is_asked() -> None:
    again = device.PublicQuestion.from_specification(json.loads(json.dumps(ASKED.specification())))
    assert again == ASKED
    assert again.id == ASKED.id
    other = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(["red", "green"])).device
    changed = (
        device.PublicQuestion(randomizer=ORACLE.device),
        device.PublicQuestion(randomizer=other, name="week 7"),
    )
    assert len({ASKED.id, *(each.id for each in changed)}) == 3
    # Frozen: devices that have the file must compute the same id and nonce in every later version.
    assert ASKED.id.hex() == "2ecab8e020dfbb0d561a8cfdbc4c1427aa4d31345c622d0e264ca2321a880160"
    assert ASKED.nonce(bytes(16)).hex() == "6cb1cfd2609b79fb303c5b1e651b0c6b"


def test_a_submission_is_the_nonce_and_the_report() -> None:
    secret = b"s" * 32
    sent = ASKED.submission("red", secret)
    assert len(sent) == ASKED.submission_width
    assert sent[:16] == ASKED.nonce(secret)
    assert ORACLE.aggregator().add(sent[16:])
    assert ASKED.packed(sent[16:], sent[:16]) == sent
    assert ASKED.nonce(secret) != ASKED.nonce(b"t" * 32)
    assert ASKED.nonce(secret) != device.PublicQuestion(randomizer=ORACLE.device).nonce(secret)


def test_what_breaks_a_rule_is_refused() -> None:
    several = ShuffledSum(epsilon=1.0, delta=1e-6, clients=1000, bounds=(0.0, 1.0)).device
    written = ASKED.specification()
    for make, told in (
        (lambda: device.PublicQuestion(randomizer=several), "randomizer must be one that sends one record"),
        (lambda: device.PublicQuestion(randomizer=ORACLE), "randomizer must be a Randomizer"),  # type: ignore[arg-type]
        (lambda: device.PublicQuestion(randomizer=ORACLE.device, name="x" * 201), "name must be a text"),
        (lambda: ASKED.nonce(b"short"), "secret must be at least 16 bytes, but 5 were given"),
        (lambda: ASKED.packed(b"", bytes(16)), "report must be 5 bytes, but 0 were given"),
        (lambda: ASKED.packed(bytes(5), bytes(15)), "nonce must be 16 bytes, but 15 were given"),
        (lambda: ASKED.submission("mauve", bytes(16)), "values must be categories of the domain"),
        (lambda: read({**written, "batch_size": 3}), "question must have only fields that are known"),
        (lambda: read({**written, "randomizer": 3}), "randomizer must be a dict"),
        (lambda: read({**written, "format": "sfumato.collection"}), "question must be a document of"),
        (lambda: read({**written, "version": 2}), "question must have a version"),
    ):
        with pytest.raises(ParameterError, match=told) as caught:
            make()
        assert "mauve" not in str(caught.value)


def read(document: dict[str, Any]) -> device.PublicQuestion:
    return device.PublicQuestion.from_specification(document)
