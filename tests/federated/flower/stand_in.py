"""As much of Flower as the adapter calls: records are dictionaries, and the grid calls each node's mod."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

Train = Callable[[int, int, list[Any]], list[Any]]
"""From a round, a node's place and the parameters that it was given to those that it returns."""


class Content(SimpleNamespace):
    """A record of records."""

    def __init__(self, config_records: dict[str, Any] | None = None) -> None:
        super().__init__(config_records=dict(config_records or {}), fit=None)


class Message:
    """A message, or the reply to one."""

    def __init__(
        self,
        content: Any,
        node: int | None = None,
        *,
        message_type: str = "",
        group_id: str = "",
        reply_to: Any = None,
    ) -> None:
        self.content = content
        kind = reply_to.metadata.message_type if reply_to else message_type
        source = reply_to.metadata.node if reply_to else None
        self.metadata = SimpleNamespace(message_type=kind, node=node, src_node_id=source, group_id=group_id)

    def has_error(self) -> bool:
        return isinstance(self.content, Exception)


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put modules in Flower's place until a test ends."""
    app = SimpleNamespace(ConfigRecord=dict, RecordDict=Content, Message=Message)
    compat = SimpleNamespace(
        arrayrecord_to_parameters=_parameters,
        parameters_to_arrayrecord=lambda parameters, keep_input: parameters,
        fitins_to_recorddict=_fit_content,
        recorddict_to_fitins=_instructions,
        recorddict_to_fitres=lambda content, keep_input: content.fit,
    )
    common = SimpleNamespace(
        parameters_to_ndarrays=list,
        ndarrays_to_parameters=list,
        Code=SimpleNamespace(OK=0),
        Status=lambda code, text: (code, text),
        FitRes=lambda status, parameters, count, metrics: SimpleNamespace(
            parameters=parameters, num_examples=count, metrics=metrics
        ),
    )
    constant = SimpleNamespace(
        MAIN_CONFIGS_RECORD="configs",
        MAIN_PARAMS_RECORD="parameters",
        Key=SimpleNamespace(CURRENT_ROUND="current_round"),
    )
    root = ModuleType("flwr")
    root.__dict__.update(
        app=app,
        common=common,
        compat=SimpleNamespace(common=SimpleNamespace(recorddict_compat=compat)),
        server=SimpleNamespace(workflow=SimpleNamespace(constant=constant)),
    )
    names = ("app", "compat", "compat.common", "compat.common.recorddict_compat", "server", "server.workflow")
    for name in (*names, "server.workflow.constant"):
        monkeypatch.setitem(sys.modules, f"flwr.{name}", ModuleType(f"flwr.{name}"))
    monkeypatch.setitem(sys.modules, "flwr", root)


def _fit_content(instructions: Any, keep_input: bool) -> Content:
    content = Content()
    content.fit = instructions
    return content


def _parameters(record: list[Any], keep_input: bool) -> list[Any]:
    found = list(record)
    if not keep_input:
        record.clear()
    return found


def _instructions(content: Content, keep_input: bool) -> Any:
    found = content.fit
    if not keep_input:
        content.fit = None
    return found


class Network:
    """Nodes with a mod each, a strategy that stores what it is given, and Flower's server context."""

    def __init__(self, mod: Any, nodes: Sequence[int], start: list[Any], train: Train) -> None:
        self.mod, self.nodes, self.train = mod, list(nodes), train
        self.states = {node: SimpleNamespace(state=SimpleNamespace(config_records={})) for node in nodes}
        self.errors: list[Exception] = []
        self.steps: list[str] = []
        self.results: list[Any] = []
        self.lost: set[tuple[str, int]] = set()
        self.history: list[int] = []
        self.sampled = len(self.nodes)
        self.context = SimpleNamespace(
            state=SimpleNamespace(
                config_records={"configs": {"current_round": 1}}, array_records={"parameters": start}
            ),
            strategy=self,
            client_manager=None,
            history=SimpleNamespace(
                add_metrics_distributed_fit=lambda server_round, metrics: self.history.append(server_round)
            ),
        )

    def begin(self, number: int) -> None:
        self.context.state.config_records["configs"]["current_round"] = number
        self.steps.clear()
        self.errors.clear()

    @property
    def parameters(self) -> list[Any]:
        found: list[Any] = self.context.state.array_records["parameters"]
        return found

    def configure_fit(self, number: int, parameters: list[Any], manager: Any) -> list[Any]:
        return [
            (
                SimpleNamespace(node_id=node),
                SimpleNamespace(parameters=[np.array(p) for p in parameters], number=number),
            )
            for node in self.nodes[: self.sampled]
        ]

    def aggregate_fit(self, number: int, results: list[Any], failed: list[Any]) -> tuple[Any, dict[str, Any]]:
        self.results = results
        assert {result.num_examples for _, result in results} == {1}
        return results[0][1].parameters, {"failed": len(failed)}

    def send_and_receive(self, messages: list[Message], timeout: float | None) -> list[Message]:
        self.steps.append(next(iter(messages[0].content.config_records.values()))["step"])
        return [self.answer(message) for message in messages]

    def answer(self, message: Message) -> Message:
        node = message.metadata.node
        try:
            reply: Message = self.mod(message, self.states[node], self.call_next)
        except Exception as error:  # as Flower does: the text of it goes to the server
            self.errors.append(error)
            return Message(error, reply_to=message)
        if (self.steps[-1], node) in self.lost:
            return Message(TimeoutError(), reply_to=message)
        return reply

    def call_next(self, message: Message, context: Any) -> Any:
        place = self.nodes.index(message.metadata.node)
        given = message.content.fit
        reply = Content()
        trained = self.train(given.number, place, [np.array(p) for p in given.parameters])
        reply.fit = SimpleNamespace(parameters=trained, num_examples=7 + place)
        return SimpleNamespace(content=reply)
