"""The Flower adapter without Flower: the real bytes between its two sides, and stand-ins for messages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfumato.errors import MissingExtra, ParameterError
from sfumato.federated import FlowerSecureAggregationMod, FlowerSecureAggregationWorkflow
from sfumato.federated.flower.client_steps import ClientLimits, answer
from sfumato.federated.flower.mod import CONFIG
from sfumato.federated.flower.server_round import ServerRound
from sfumato.federated.flower.weighted_vectors import WeightedVectors

LIMITS = ClientLimits(minimum_survivors=4, minimum_degree=2)
SHAPES = [(2, 2), (), (3,)]
NODES = [901, 17, 44, 5000, 3, 88]


def parameters(number: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(number)
    return [rng.normal(size=shape) for shape in SHAPES]


def weight(number: int) -> int:
    return 10 + number


def trained(number: int) -> tuple[list[Any], int]:
    return parameters(number), weight(number)


class Federation:
    """Six nodes; each step's state goes through the dictionary that Flower's context would hold."""

    def __init__(self) -> None:
        self.workflow = FlowerSecureAggregationWorkflow(minimum_share=0.6, clip_value=4.0, max_weight=100)
        self.work = ServerRound(self.workflow.plan(6, 8, 1), NODES, self.workflow.encoding)
        self.states: dict[int, Mapping[str, Any]] = {node: {} for node in NODES}
        self.sent: list[tuple[int, Mapping[str, Any], Mapping[str, Any]]] = []

    def step(self, step: str, gone: set[int] = frozenset()) -> None:  # type: ignore[assignment]
        replies = {}
        for node, request in self.work.requests(step).items():
            if node in gone:
                continue
            number = NODES.index(node)
            before = self.states[node]
            reply, after = answer(LIMITS, before, request, partial(trained, number))
            self.sent.append((node, before, request))
            self.states[node] = after
            replies[node] = reply
        self.work.take(replies)


def test_the_weighted_mean_of_the_survivors_comes_out() -> None:
    run = Federation()
    for step, gone in (("keys", set()), ("shares", set()), ("vector", {44}), ("unmask", {44, 3})):
        run.step(step, gone)
    means, survivors = run.work.means(SHAPES)
    assert survivors == [node for node in NODES if node != 44]
    kept = [NODES.index(node) for node in survivors]
    for at, mean in enumerate(means):
        expected = sum(weight(n) * np.clip(parameters(n)[at], -4, 4) for n in kept) / sum(map(weight, kept))
        assert mean.shape == SHAPES[at]
        assert np.allclose(mean, expected, rtol=0, atol=4.0 / (1 << 21))
    # Each request again: the state that came after it answers none of them.
    for node, _, request in run.sent:
        with pytest.raises(ParameterError):
            answer(LIMITS, run.states[node], request, lambda: (parameters(0), 1))
    # What is left of a client after its last answer is no key.
    state = run.states[NODES[0]]["client"]
    assert b'"key":""' in state
    assert b'"channel":""' in state
    assert b'"seed":""' in state


def test_replies_that_are_lost_or_foreign_are_drop_outs() -> None:
    run = Federation()
    run.step("keys")
    replies = {}
    for node, request in run.work.requests("shares").items():
        replies[node], run.states[node] = answer(LIMITS, run.states[node], request, lambda: ([], 0))
    run.work.take({**replies, NODES[0]: {"message": "text"}, NODES[1]: {}, 12: {"message": b"x"}})
    assert run.work.refused == [NODES[0], NODES[1], 12]
    assert set(run.work.requests("vector")) == set(NODES[2:])


def test_a_client_refuses_less_than_it_allows() -> None:
    run = Federation()
    request = dict(run.work.requests("keys")[NODES[0]])

    def train() -> tuple[list[Any], int]:
        raise AssertionError("a refused client must not train")

    with pytest.raises(ParameterError, match=r"^minimum_survivors must be at least 5, as this client asks"):
        answer(ClientLimits(minimum_survivors=5, minimum_degree=2), {}, request, train)
    with pytest.raises(ParameterError, match=r"^degree must be at least 6, as this client asks"):
        answer(ClientLimits(minimum_survivors=2, minimum_degree=6), {}, request, train)
    _, state = answer(LIMITS, {}, request, train)
    with pytest.raises(ParameterError, match=r"^round_number must be above 1, the last one of this client"):
        answer(LIMITS, state, request, train)
    for bad in ({"step": "shares"}, {"step": "vector", "message": b"x"}):
        with pytest.raises(ParameterError, match=r"^a request must come in a round with a message"):
            answer(LIMITS, {}, bad, train)
    with pytest.raises(ParameterError, match=r"^step must be keys, shares, vector or unmask, got 'plain'"):
        answer(LIMITS, state, {"step": "plain", "message": b"x"}, train)
    with pytest.raises(ParameterError):
        answer(LIMITS, state, {"step": "shares", "message": b"x"}, train)


def test_vectors_are_weighted_clipped_and_bounded() -> None:
    encoding = WeightedVectors(clip_value=2.0, levels=4, max_weight=10)
    assert encoding.encode([np.array([[0.5, -9.0]]), np.array(np.nan)], 3).tolist() == [3, -12, 0, 3]
    assert encoding.encode([np.array([np.inf, 1.2])], 99).tolist() == [40, 20, 10]
    assert encoding.bound == 40
    assert [encoding.bits(clients) for clients in (3, 4, 100)] == [8, 9, 13]
    means = encoding.decode(np.array([3, -12, 8, 4]), [(2,), (1, 1)])
    assert [mean.tolist() for mean in means] == [[0.375, -1.5], [[1.0]]]
    assert encoding.decode(np.array([7]), []) == []
    with pytest.raises(ParameterError, match=r"^the round must have examples"):
        encoding.decode(np.array([0, 0]), [(1,)])


def test_the_mod_passes_on_what_is_no_training_and_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    mod = FlowerSecureAggregationMod(minimum_survivors=4)
    other = SimpleNamespace(metadata=SimpleNamespace(message_type="evaluate"))
    assert mod(other, "context", lambda message, context: (message, context)) == (other, "context")
    for kind in ("train.default", "train.other"):  # which Flower routes to functions that train
        asked = SimpleNamespace(
            metadata=SimpleNamespace(message_type=kind), content=SimpleNamespace(config_records={})
        )
        with pytest.raises(ParameterError, match=r"^a training must be aggregated securely"):
            mod(asked, None, None)
    asked = SimpleNamespace(metadata=SimpleNamespace(message_type="get_parameters"))
    with pytest.raises(ParameterError, match=r"^a request must be for no plain parameters"):
        mod(asked, None, None)
    training = SimpleNamespace(
        metadata=SimpleNamespace(message_type="train"), content=SimpleNamespace(config_records={})
    )
    with pytest.raises(ParameterError, match=r"^a training must be aggregated securely"):
        mod(training, None, None)
    monkeypatch.setitem(__import__("sys").modules, "flwr", None)
    training.content.config_records[CONFIG] = {}
    with pytest.raises(MissingExtra, match=r"pip install 'sfumato\[flower\]'"):
        mod(training, None, None)
    with pytest.raises(MissingExtra, match=r"pip install 'sfumato\[flower\]'"):
        FlowerSecureAggregationWorkflow()(None, None)
    with pytest.raises(ParameterError, match=r"^minimum_survivors must be an integer of at least 2"):
        FlowerSecureAggregationMod(minimum_survivors=1)
