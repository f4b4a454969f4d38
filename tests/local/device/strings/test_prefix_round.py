"""One round of questions about prefixes on the device: its exact law, what it sends, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import PrefixRoundRandomizer, Randomizer, Strings
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import below_exponential, named_alike, reports, worst_odds

TINY = Strings(length=3, alphabet="ab")
PROTOCOLS = [
    "randomized-response",
    "projective-geometry-response",
    "one-bit-hadamard",
    "optimized-unary-encoding",
]
VALUES = ["", "a", "b", "ab", "aba", "abb", "bab"]


def made(epsilon: float, protocol: str = PROTOCOLS[0], **change: Any) -> PrefixRoundRandomizer:
    shape: dict[str, Any] = {"strings": TINY, "start": 1, "given": ("a",), "stop": 2, **change}
    return PrefixRoundRandomizer(epsilon=epsilon, protocol=protocol, **shape)


@cases("protocol", PROTOCOLS)
@cases("epsilon", [0.5, 1.0, 4.0])
def test_the_odds_are_those_of_epsilon(protocol: str, epsilon: float) -> None:
    odds = worst_odds(made(epsilon, protocol).probabilities, VALUES)
    assert below_exponential(odds, epsilon, 0.98 if "Unary" in protocol else 0.999)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_drawn_is_the_law(protocol: str) -> None:
    device, n = made(1.0, protocol), 40_000
    for value, other in (("abb", "b"), ("b", "abb")):
        law = device.probabilities(value)
        records = device.randomize_batch([value] * n, 3).records
        assert device.layout.genuine(records).all()
        assert device.well_formed(records).all()
        found = Counter(row.tobytes() for row in records)
        assert set(found) <= set(law)
        sharper = named_alike(law, made(1.5, protocol).probabilities(value))
        another = device.probabilities(other)
        accepts_only(reports(found, law), law, of_another=another, of_epsilon_3_2=sharper)


def test_strings_are_told_by_their_prefix_or_not_at_all() -> None:
    device = made(40.0, given=("a", ""), stop=2)
    assert TINY.values(device.prefixes) == ["a", "aa", "ab", ""]
    # So great an epsilon that the truth is told.
    numbers = device.part.layout.unpack(device.inner(device.randomize_batch(VALUES, 1).records))
    assert numbers.tolist() == [3, 0, 4, 2, 2, 2, 4]


@pytest.mark.parametrize("alphabet", ["ab", b"ab"])
def test_a_specification_makes_the_same_randomizer(alphabet: Any) -> None:
    strings = Strings(length=3, alphabet=alphabet)
    given = (alphabet[:1], alphabet[:0])
    device = made(1.0, strings=strings, given=given)
    told = json.loads(json.dumps(device.specification()))
    again: Any = Randomizer.from_specification(told)
    assert again == device
    assert again.digest == device.digest
    assert again.randomize(alphabet, 5) == device.randomize(alphabet, 5)
    assert len(device.randomize_batch([])) == 0
    changes: list[dict[str, Any]] = [
        {"strings": None},
        {"given": None},
        {"given": [1]},
        {"given": []},
        {"given": ["x"]},
        {"stop": 1},
        {"stop": None},
        {"oracle": "split-budget"},
        {"part": "00"},
        {"epsilon": 2.0},
    ]
    for change in changes:
        with pytest.raises(ParameterError):
            Randomizer.from_specification({**told, **change})


def test_parameters_that_break_a_rule() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"strings": "ab"}, "strings must be Strings"),
        ({"stop": 4}, "stop must be above start"),
        ({"start": 2}, "stop must be above start"),
        ({"given": ()}, "given must be different"),
        ({"given": "a"}, "given must be different"),
        ({"given": ("a", "a")}, "given must be different"),
        ({"given": ("ab",)}, "given must be different"),
        ({"given": ("abab",)}, "given must be different"),
        ({"given": ("x",)}, "values must be"),
        ({"protocol": "prefix-round"}, "protocol must name"),
        ({"strings": Strings(length=9), "start": 0, "given": ("",), "stop": 5}, "stop must make at most"),
    ]
    for change, told in wrong:
        shape = {"epsilon": 1.0, "strings": TINY, "start": 1, "given": ("a",), "stop": 2, **change}
        with pytest.raises(ParameterError, match=told):
            PrefixRoundRandomizer(**shape)
