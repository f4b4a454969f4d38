"""Flower with distributed noise: real messages through the mod and the workflow; Flower is stood in for."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfumato.errors import BudgetExceeded, MissingExtra, ParameterError
from sfumato.federated import (
    DistributedDiscreteGaussian,
    DistributedPoissonBinomial,
    DistributedSkellam,
    FlowerDistributedNoiseMod,
    FlowerDistributedNoiseWorkflow,
    FlowerSecureAggregationMod,
    FlowerSecureAggregationWorkflow,
)
from sfumato.federated.flower.mod import CONFIG
from sfumato.federated.flower.noisy_changes import read_noise, round_loss
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring
from tests.chance import accepts_only
from tests.federated.flower.stand_in import Content, Message, Network, install

DELTA = 1e-5
SHAPES = [(2, 2), (3,)]
NODES = [901, 17, 44, 5000, 3, 88]
NOISE = DistributedDiscreteGaussian(
    clients=6,
    minimum_survivors=4,
    colluders=1,
    dimension=7,
    clip_norm=1.0,
    noise_multiplier=1e-3,  # so little that sums can be compared
    bits=32,
)
FIELDS = ("clients", "minimum_survivors", "colluders", "dimension", "clip_norm")
LITTLE = {"noise_multiplier": 1e-3, "bits": 32}
COINS = {"theta": 0.25, "draws": 60_000}
PRIVATE = replace(NOISE, noise_multiplier=4.0, bits=18, scale=None)


def start() -> list[Any]:
    return [np.zeros(shape, np.float32) for shape in SHAPES]


def change(place: int) -> list[Any]:
    rng = np.random.default_rng(place)
    return [rng.normal(size=shape) * 0.1 for shape in SHAPES]


def train(number: int, place: int, given: list[Any]) -> list[Any]:
    return [a + b for a, b in zip(given, change(place), strict=True)]


def free_mod(**options: Any) -> FlowerDistributedNoiseMod:
    return FlowerDistributedNoiseMod(**{"minimum_survivors": 4, "epsilon": 1e12, "delta": DELTA, **options})


@pytest.fixture(autouse=True)
def flower(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)


@pytest.fixture
def ledger() -> Any:
    with Ledger.open(
        None,
        budget=Budget.approximate(epsilon=50.0, delta=DELTA),
        privacy_unit="client",
        neighboring=Neighboring.ZERO_OUT,
        dataset=Dataset(schema="clients", fingerprint=lambda key: "0" * 64),
    ) as opened:
        yield opened


@pytest.mark.parametrize(
    "kind", [DistributedDiscreteGaussian, DistributedSkellam, DistributedPoissonBinomial]
)
def test_the_mean_change_of_the_survivors_is_added(kind: type[Any]) -> None:
    given = {name: getattr(NOISE, name) for name in FIELDS}
    noise = kind(**given, **COINS) if kind is DistributedPoissonBinomial else kind(**given, **LITTLE)
    workflow, network = FlowerDistributedNoiseWorkflow(noise), Network(free_mod(), NODES, start(), train)
    network.lost = {("vector", 44), ("unmask", 3)}
    workflow(network, network.context)
    assert network.steps == ["keys", "shares", "vector", "unmask"]
    assert network.errors == []
    kept = [place for place, node in enumerate(NODES) if node != 44]
    assert [proxy.node_id for proxy, _ in network.results] == [NODES[place] for place in kept]
    # Seven standard deviations of the noise, and the rounding to floats of 32 bits.
    margin = 7 * noise.variance(5) ** 0.5 / 5 + 1e-6
    assert margin < 0.03
    for at, found in enumerate(network.parameters):
        expected = np.mean([change(place)[at] for place in kept], axis=0)
        assert found.shape == SHAPES[at]
        assert found.dtype == np.float32
        assert np.abs(found - expected).max() < margin
    assert network.history == [1]
    assert (workflow.rounds, workflow.aborted) == (1, {})
    # The next round starts from these parameters.
    before = network.parameters
    network.begin(2)
    network.lost = set()
    workflow(network, network.context)
    for at, found in enumerate(network.parameters):
        expected = before[at] + np.mean([change(place)[at] for place in range(6)], axis=0)
        assert np.abs(found - expected).max() < margin


def test_the_smallest_sample_runs_and_each_round_has_a_seed_of_its_own() -> None:
    workflow, network = FlowerDistributedNoiseWorkflow(NOISE), Network(free_mod(), NODES, start(), train)
    assert workflow.privacy_loss.epsilon(DELTA) == 0
    network.sampled = 4
    seeds = set()
    for number in (1, 2):
        network.begin(number)
        workflow(network, network.context)
        seeds |= {network.states[node].state.config_records[CONFIG]["seed"] for node in NODES[:4]}
    assert network.history == [1, 2]
    assert [len(seed) for seed in seeds] == [16, 16]


def test_the_noise_in_the_sum_is_the_noise_that_is_priced() -> None:
    """By the variance of 16,384 entries, of which seven standard errors are 8 %."""
    noise = replace(PRIVATE, dimension=1 << 14, scale=None)

    def still(number: int, place: int, given: list[Any]) -> list[Any]:
        return given

    network = Network(free_mod(epsilon=100.0), NODES, [np.zeros(1 << 14, np.float32)], still)
    network.lost = {("vector", 44), ("vector", 17)}
    FlowerDistributedNoiseWorkflow(noise)(network, network.context)
    error = 4 * network.parameters[0].astype(np.float64)

    def follows(variance: float) -> None:
        assert abs(error.mean()) < 7 * math.sqrt(variance / len(error))
        assert abs(float((error**2).mean()) / variance - 1) < 7 * math.sqrt(2 / len(error))

    accepts_only(
        follows,
        (noise.noise_multiplier * noise.clip_norm) ** 2 * 4 / 3,  # of four survivors, three count
        of_six=noise.variance(6),
        the_colluder_counts=(noise.noise_multiplier * noise.clip_norm) ** 2,
    )


def test_a_client_without_the_mod_has_dropped_out() -> None:
    network = Network(free_mod(), NODES, start(), train)
    answered = network.answer

    def answer(message: Message) -> Message:
        reply = answered(message)
        return Message(Content(), reply_to=message) if message.metadata.node == 44 else reply

    network.answer = answer  # type: ignore[method-assign]
    FlowerDistributedNoiseWorkflow(NOISE)(network, network.context)
    assert [proxy.node_id for proxy, _ in network.results] == [node for node in NODES if node != 44]


def test_a_round_below_the_minimum_is_aborted_masked_and_charged(ledger: Ledger) -> None:
    workflow = FlowerDistributedNoiseWorkflow(PRIVATE, ledger=ledger, delta=DELTA)
    network = Network(free_mod(epsilon=100.0, colluders=1), NODES, start(), train)
    network.lost = {("vector", node) for node in NODES[:3]}
    workflow(network, network.context)
    assert network.steps == ["keys", "shares", "vector"]  # nobody was asked to unmask
    assert network.results == []
    assert all((array == 0).all() for array in network.parameters)
    assert list(workflow.aborted) == [1]
    assert "have at least 4 clients" in workflow.aborted[1]
    one = PRIVATE.privacy_loss
    assert workflow.privacy_loss.epsilon(DELTA) == pytest.approx(one.epsilon(DELTA), rel=1e-12)
    assert len(ledger.entries()) == 1
    # Its clients have charged it too: their vectors were sent.
    for node in NODES:
        assert network.states[node].state.config_records[CONFIG]["spent"] == one.to_json()
    network.begin(2)
    network.lost = set()
    workflow(network, network.context)
    assert network.history == [2]
    assert workflow.privacy_loss.epsilon(DELTA) == pytest.approx((one * 2).epsilon(DELTA), rel=1e-12)
    assert workflow.privacy_loss.neighboring is Neighboring.ZERO_OUT
    assert len(ledger.entries()) == 2


def test_a_client_that_sent_no_vector_has_charged_nothing() -> None:
    network = Network(free_mod(), NODES, start(), train)
    network.lost = {("shares", node) for node in NODES[:3]}
    workflow = FlowerDistributedNoiseWorkflow(PRIVATE)
    workflow(network, network.context)
    assert network.steps == ["keys", "shares"]
    for node in NODES:
        assert network.states[node].state.config_records[CONFIG]["spent"] == ""
    # The server's own count is the higher one: it is charged before anybody is asked.
    assert workflow.privacy_loss.epsilon(DELTA) == PRIVATE.privacy_loss.epsilon(DELTA)


def test_the_ledger_refuses_before_any_message() -> None:
    budget = Budget.approximate(epsilon=1.0, delta=DELTA)
    with Ledger.open(
        None,
        budget=budget,
        privacy_unit="client",
        neighboring=Neighboring.ZERO_OUT,
        dataset=Dataset(schema="clients", fingerprint=lambda key: "0" * 64),
    ) as ledger:
        workflow = FlowerDistributedNoiseWorkflow(PRIVATE, ledger=ledger, delta=DELTA)
        network = Network(free_mod(), NODES, start(), train)
        with pytest.raises(BudgetExceeded):
            workflow(network, network.context)
    assert network.steps == []
    assert workflow.rounds == 0
    assert workflow.privacy_loss.epsilon(DELTA) == 0


def test_a_client_counts_its_rounds_and_stops_before_a_key_is_made() -> None:
    allowed = (PRIVATE.loss_against(1) * 2).epsilon(DELTA)
    network = Network(free_mod(epsilon=allowed, colluders=1), NODES, start(), train)
    workflow = FlowerDistributedNoiseWorkflow(PRIVATE)
    for number in (1, 2, 3):
        network.begin(number)
        workflow(network, network.context)
    assert network.history == [1, 2]
    assert network.steps == ["keys"]
    assert len(network.errors) == 6
    assert str(network.errors[0]).startswith("a round must leave this client's rounds within epsilon")
    for node in NODES:
        held = network.states[node].state.config_records[CONFIG]
        assert held["spent"] == (PRIVATE.loss_against(1) * 2).to_json()
        assert held["last_round"] == 2
        assert b'"key":""' in held["client"]
    # With more colluders in mind than the server plans for, fewer rounds fit.
    wary = Network(free_mod(epsilon=allowed, colluders=2), NODES, start(), train)
    for number in (1, 2):
        wary.begin(number)
        workflow(wary, wary.context)
    assert wary.history == [1]


def test_a_client_refuses_noise_that_is_for_others() -> None:
    workflow = FlowerDistributedNoiseWorkflow(PRIVATE)
    plan, text = json.dumps(workflow.plan().to_json()), json.dumps(PRIVATE.to_json())
    request = {"step": "keys", "plan": plan, "client": 0, "noise": text, "seed": b"seed"}
    weaker = json.dumps(replace(PRIVATE, noise_multiplier=0.5, scale=None).to_json())
    more = json.dumps(replace(PRIVATE, minimum_survivors=5, scale=None).to_json())
    less = json.dumps(replace(PRIVATE, clients=5, scale=None).to_json())
    other = json.dumps(workflow.plan().to_json())
    bits = json.dumps(replace(PRIVATE, bits=20, scale=None).to_json())
    long = json.dumps(replace(PRIVATE, dimension=9, scale=None).to_json())
    plain = json.dumps(FlowerSecureAggregationWorkflow(max_weight=1).plan(6, 7, 1).to_json())
    fit = "noise must be for the plan's vectors, clients and survivors"
    mod = free_mod(epsilon=PRIVATE.loss_against(0).epsilon(DELTA))
    for changed, message in (
        ({"noise": weaker}, "a round must leave this client's rounds within epsilon"),
        ({"noise": more}, fit),
        ({"noise": less}, fit),
        ({"noise": bits}, fit),
        ({"noise": long}, fit),
        ({"plan": plain}, fit),
        ({"noise": other}, "noise must be of a known mechanism"),
        ({"noise": "[]"}, "noise must be of a known mechanism"),
        ({"noise": '{"mechanism":[]}'}, "noise must be of a known mechanism"),
        ({"noise": "{"}, "noise must be"),
        ({"seed": b""}, "seed must be public bytes"),
        ({"seed": "text"}, "seed must be public bytes"),
        ({"step": "shares", "message": b""}, "a request must come in a round with a message"),
    ):
        context = SimpleNamespace(state=SimpleNamespace(config_records={}))
        asked = Message(Content({CONFIG: {**request, **changed}}), 3, message_type="train")
        with pytest.raises(ParameterError) as refused:
            mod(asked, context, None)
        assert str(refused.value).startswith(message), changed
        assert context.state.config_records == {}
    asked = Message(Content({CONFIG: dict(request)}), 3, message_type="train")
    assert mod(asked, context, None).content.config_records[CONFIG]["message"]


def test_the_mod_answers_nothing_but_training_with_noise() -> None:
    mod = free_mod()
    for kind, message in (
        ("evaluate", "a request must be to train"),
        ("query", "a request must be to train"),
        ("get_parameters", "a request must be for no plain parameters"),
        ("train.default", "a training must be aggregated securely"),
    ):
        with pytest.raises(ParameterError) as refused:
            mod(Message(Content(), 3, message_type=kind), None, None)
        assert str(refused.value).startswith(message)


def test_the_server_is_not_told_why_training_failed(caplog: pytest.LogCaptureFixture) -> None:
    def failing(number: int, place: int, given: list[Any]) -> list[Any]:
        if place == 1:
            raise RuntimeError("row 7 is of Ada")
        if place == 2:
            return given[:1]
        return [np.full(shape, np.inf) for shape in SHAPES] if place == 3 else given

    workflow, network = FlowerDistributedNoiseWorkflow(NOISE), Network(free_mod(), NODES, start(), failing)
    workflow(network, network.context)
    assert [str(error).partition(";")[0] for error in network.errors] == [
        "training must return parameters, but an error was raised",
        "training must return as many parameters as it was given, but it has another number of them",
    ]
    assert "row 7 is of Ada" in caplog.text  # in the client's own log
    assert len(network.results) == 4
    assert all(np.abs(array).max() < 0.01 for array in network.parameters)  # infinite counts as zeros


def test_what_does_not_fit_is_refused_before_any_message(ledger: Ledger) -> None:
    network = Network(free_mod(), NODES, start(), train)
    for noise, message in (
        (
            replace(NOISE, dimension=8, scale=None),
            "noise.dimension must be the 7 parameters of the model, got 8",
        ),
        (replace(NOISE, clients=5, scale=None), "the number of sampled clients must be at most 5"),
    ):
        workflow = FlowerDistributedNoiseWorkflow(noise, ledger=ledger, delta=DELTA)
        with pytest.raises(ParameterError) as refused:
            workflow(network, network.context)
        assert str(refused.value).startswith(message)
    network.sampled = 3
    workflow = FlowerDistributedNoiseWorkflow(NOISE, ledger=ledger, delta=DELTA)
    workflow(network, network.context)
    assert workflow.aborted == {1: "3 clients were sampled, and no message was sent"}
    assert (network.steps, ledger.entries(), workflow.rounds) == ([], (), 0)
    for options, message in (
        ({"minimum_survivors": 1}, "minimum_survivors must be an integer of at least 2"),
        ({"colluders": 4}, "colluders must be below the 4 survivors"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"delta": 1.0}, "delta must be strictly between 0 and 1"),
        ({"minimum_degree": 1}, "minimum_degree must be an integer of at least 2"),
    ):
        with pytest.raises(ParameterError) as refused:
            free_mod(**options)
        assert str(refused.value).startswith(message)
    with pytest.raises(ParameterError, match=r"^noise must be a DistributedMechanism"):
        FlowerDistributedNoiseWorkflow(0.1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^delta must be"):
        FlowerDistributedNoiseWorkflow(NOISE, ledger=ledger)
    with pytest.raises(ParameterError, match=r"^ledger must be an open ledger"):
        FlowerDistributedNoiseWorkflow(NOISE, ledger="ledger.db", delta=DELTA)
    broken = replace(NOISE, colluders=3, scale=None)  # of six, three hold enough shares
    with pytest.raises(ParameterError, match=r"^colluders must be too few to break the masks of 6 clients"):
        FlowerDistributedNoiseWorkflow(broken)


def test_a_sparse_graph_costs_a_delta() -> None:
    noise = replace(PRIVATE, clients=40, minimum_survivors=36, colluders=10, scale=None)
    workflow = FlowerDistributedNoiseWorkflow(noise, degree=24, threshold=14)
    loss, dense = workflow.loss_of(3), noise.privacy_loss * 3
    assert workflow.plan(38).neighbors == 24
    failure = loss.epsilon(1e-4) - dense.epsilon(1e-4)
    assert 0 < failure < 0.01
    assert FlowerDistributedNoiseWorkflow(noise).loss_of(3).epsilon(1e-4) == dense.epsilon(1e-4)
    found = {row.colluders: row for row in workflow.trust_report(1e-4, rounds=3).rows}
    assert found[10].epsilon == pytest.approx(loss.epsilon(1e-4), rel=1e-3)
    fewer = workflow.trust_report(1e-4, clients=37)
    assert "of 37 clients, degree 24, threshold 14, semi-honest mode, 1 rounds" in fewer.setting
    assert round_loss(workflow.plan(), noise, 0).epsilon(1e-4) < workflow.loss_of(1).epsilon(1e-4)
    assert read_noise(json.dumps(noise.to_json())) == noise


def test_the_masks_of_both_workflows_run_with_the_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    mod = FlowerSecureAggregationMod(minimum_survivors=4)
    network = Network(mod, NODES, start(), train)
    network.lost = {("vector", 44)}
    workflow = FlowerSecureAggregationWorkflow(minimum_share=0.6, clip_value=4.0, max_weight=100)
    workflow(network, network.context)
    kept = [place for place, node in enumerate(NODES) if node != 44]
    weights = np.array([7 + place for place in kept], float)
    for at, found in enumerate(network.parameters):
        expected = np.average([change(place)[at] for place in kept], axis=0, weights=weights)
        assert np.allclose(found, expected, rtol=0, atol=1e-5)
    network.begin(2)
    network.lost = {("vector", node) for node in NODES[:3]}
    with pytest.raises(ParameterError, match=r"^the round must have at least 4 clients"):
        workflow(network, network.context)
    monkeypatch.setitem(__import__("sys").modules, "flwr", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sfumato\[flower\]'"):
        FlowerDistributedNoiseWorkflow(NOISE)(None, None)
