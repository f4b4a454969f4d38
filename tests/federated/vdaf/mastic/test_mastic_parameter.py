"""What is asked of Mastic: its encoding, and which parameter may follow which."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato.errors import ParameterError
from sfumato.federated import AggregationParameter, MasticParameter
from tests.cases import cases


def asked(*prefixes: str, check: bool = False) -> MasticParameter:
    return MasticParameter.of(*prefixes, check_weights=check)


def test_encodings_are_read_back() -> None:
    for parameter in (asked("0"), asked("1", check=True), asked("010101011", "110101011", check=True)):
        assert MasticParameter.from_bytes(parameter.to_bytes()) == parameter
    assert asked("10", "01", check=True).to_bytes().hex() == "000100000002408001"
    assert asked("10", "01").prefixes == ("01", "10")


def test_weights_are_checked_first_and_levels_rise() -> None:
    first = asked("0", "1", check=True)
    assert first.follows(None)
    assert not asked("0").follows(None)
    assert asked("10").follows(first)
    assert asked("110").follows(asked("00"))
    assert not asked("0").follows(first)
    assert not asked("00", check=True).follows(first)
    assert not asked("0").follows(asked("00"))


@cases(
    "call, message",
    [
        (lambda: MasticParameter(AggregationParameter.from_bytes(bytes(6)), True), "at least one prefix"),
        (lambda: MasticParameter("0", True), "asked"),  # type: ignore[arg-type]
        (lambda: MasticParameter(AggregationParameter.of("0"), 1), "check_weights"),  # type: ignore[arg-type]
        (lambda: MasticParameter.from_bytes(asked("0").to_bytes()[:-1] + b"\2"), "0 or 1"),
        (lambda: MasticParameter.from_bytes(b""), "0 or 1"),
        (lambda: MasticParameter.from_bytes(asked("0").to_bytes() + b"\1"), "whole prefixes"),
    ],
)
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
