"""Circuits for tests: the draft's of degree three, and one whose clients send what they may not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.crypto.fields.field import Elements
from sfumato.crypto.fields.ntt_field import FIELD64
from sfumato.federated.vdaf.circuits.circuit import Circuit, Measurements
from sfumato.federated.vdaf.circuits.gadget import PolyEval
from sfumato.mechanisms.base.sensitivity import Shift

__all__ = ["Forged", "HigherDegree"]


@dataclass(frozen=True)
class HigherDegree(Circuit):
    """Measurements that are a root of x (x - 1) (x - 2)."""

    calls: int = 1
    field = FIELD64
    encoded_length = 1
    output_length = 1
    equations = 1
    gadget = PolyEval((0, 2, -3, 1))
    shift = extent = Shift.entries(1, 2)

    def encode(self, measurements: Measurements) -> Elements:
        return self.field.vector(measurements)[:, None]

    def truncate(self, encoded: Elements) -> Elements:
        return encoded

    def result(self, totals: list[int]) -> int:
        return totals[0]

    def inputs(self, encoded: Elements, joint: Elements, shares: int) -> Elements:
        return encoded[:, None].repeat(self.calls, axis=1)

    def evaluate(self, encoded: Elements, outputs: Elements, shares: int) -> Elements:
        return self.field.summed(outputs)[:, None]


@dataclass(frozen=True)
class Forged(Circuit):
    """A circuit whose encodings are all the same, valid or not."""

    circuit: Circuit
    encoding: list[int]

    def __getattribute__(self, name: str) -> Any:
        own = {"circuit", "encoding", "encode", "__class__", "__dict__"}
        return object.__getattribute__(self, name) if name in own else getattr(self.circuit, name)

    def encode(self, measurements: Measurements) -> Elements:
        rows: Elements = self.circuit.field.vector(self.encoding)[None].repeat(len(measurements), 0)
        return rows

    gadget = calls = encoded_length = output_length = equations = shift = extent = property(lambda _: None)

    def truncate(self, encoded: Elements) -> Elements:
        raise AssertionError

    def inputs(self, encoded: Elements, joint: Elements, shares: int) -> Elements:
        raise AssertionError

    def evaluate(self, encoded: Elements, outputs: Elements, shares: int) -> Elements:
        raise AssertionError
