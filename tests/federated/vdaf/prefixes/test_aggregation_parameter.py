"""Aggregation parameters: their order, what may follow, and their bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato.errors import ParameterError
from sfumato.federated import AggregationParameter
from tests.cases import cases

of = AggregationParameter.of


def test_bytes_of_the_draft() -> None:
    told = of("11100000111", "00000000000", "11001000001")
    assert told.to_bytes().hex() == "000a00000003" + "0000" + "c820" + "e0e0"
    assert AggregationParameter.from_bytes(told.to_bytes()) == told
    assert told.bits.tolist()[1] == [1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1]
    eight = of("10000001")
    assert eight.to_bytes().hex() == "00070000000181"
    assert AggregationParameter.from_bytes(eight.to_bytes()) == eight


def test_what_may_follow() -> None:
    first = of("01", "10")
    assert of("0110", "1000").follows(first)
    assert of("010").follows(first)
    assert not of("0110", "1100").follows(first)
    assert not first.follows(first)
    assert not of("0").follows(first)


@cases(
    "call, message",
    [
        (of, "empty"),
        (lambda: of("0", "01"), "2 characters|1 characters"),
        (lambda: of("02"), "characters 0 and 1"),
        (lambda: AggregationParameter(0, ("1", "0")), "order"),
        (lambda: AggregationParameter(0, ("1", "1")), "different"),
        (lambda: AggregationParameter(1 << 16, ()), "65,536"),
        (lambda: AggregationParameter(0, ["0"]), "prefixes"),  # type: ignore[arg-type]
        (lambda: AggregationParameter(0, (0,)), "prefixes"),  # type: ignore[arg-type]
        (lambda: AggregationParameter.from_bytes(bytes.fromhex("00000000000200")), "6 bytes"),
        (lambda: AggregationParameter.from_bytes(bytes.fromhex("0000000000020080ff")), "6 bytes"),
        (lambda: AggregationParameter.from_bytes(b""), "6 bytes"),
        (lambda: AggregationParameter.from_bytes(bytes.fromhex("00000000000141")), "padding"),
        (lambda: AggregationParameter.from_bytes(bytes.fromhex("0000000000028000")), "order"),
    ],
)
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
