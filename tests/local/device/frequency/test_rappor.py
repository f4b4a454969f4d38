"""RAPPOR on the device: its exact laws, what a device remembers, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import Randomizer, RapporRandomizer
from sfumato.local.device.frequency.bloom_filter import bloom_filters, bloom_indices, encoded
from tests.cases import cases
from tests.chance import accepts_only, frequencies, rate
from tests.local.laws import below_exponential, reports, worst_odds

STRINGS = [f"string {i}" for i in range(60)]
PLACES = [[82, 87], [12, 115], [33, 28]]
SHAPES: list[dict[str, Any]] = [
    {},
    {"hashes": 1},
    {"permanent": 0.3, "instantaneous": (0.1, 0.8)},
    {"permanent": 0.9, "instantaneous": None},
    {"permanent": 0.3, "hashes": 3},
]


def far_apart(made: RapporRandomizer) -> list[str]:
    """Two strings that share no bit and have one for each hash function: the worst. And three others."""
    held = {name: frozenset(made.indices([name], [0])[0].tolist()) for name in STRINGS}
    full = [name for name in STRINGS if len(held[name]) == made.hashes]
    one, other = next((a, b) for a in full for b in full if not held[a] & held[b])
    return [one, other, *STRINGS[:3]]


@cases("shape", SHAPES)
def test_the_odds_of_one_report_are_those_of_epsilon(shape: dict[str, Any]) -> None:
    made = RapporRandomizer(bits=8, cohorts=1, **shape)
    assert below_exponential(worst_odds(made.probabilities, far_apart(made)), made.epsilon)


@pytest.mark.parametrize("permanent", [0.25, 0.5, 0.75])
def test_the_odds_of_all_reports_together_are_those_of_the_memoized_bits(permanent: float) -> None:
    # What is memoized is what one-time RAPPOR sends.
    told = RapporRandomizer(bits=8, cohorts=1, permanent=permanent, instantaneous=None)
    made = RapporRandomizer(bits=8, cohorts=1, permanent=permanent)
    assert worst_odds(told.probabilities, far_apart(told)) == made.permanent_odds**made.hashes
    assert made.permanent_odds == ((2 - Fraction(permanent)) / Fraction(permanent)) ** 2


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_drawn_is_the_law(shape: dict[str, Any]) -> None:
    made, n = RapporRandomizer(bits=8, cohorts=2, **shape), 100_000
    law = made.probabilities("a")
    seen = Counter(made.randomize_batch(["a"] * n, 9))
    assert set(seen) <= set(law)
    even = dict.fromkeys(law, Fraction(1, len(law)))
    accepts_only(reports(seen, law), law, of_another=made.probabilities("b"), even=even)


def test_hash_functions_are_the_same_everywhere() -> None:
    found = bloom_indices([encoded("sfumato"), encoded(b"sfumato"), encoded("é")], [0, 1, 63], 2, 128)
    assert found.tolist() == PLACES
    assert encoded("a") != encoded(b"a")


def test_places_are_even_and_those_of_cohorts_independent() -> None:
    made, n = RapporRandomizer(bits=16, cohorts=2), 20_000
    names = [str(i) for i in range(n)]
    one, other = made.indices(names, [0] * n), made.indices(names, [1] * n)
    for pair in ((one[:, 0], one[:, 1]), (one[:, 0], other[:, 0]), (one[:, 1], other[:, 0])):
        cells = dict(enumerate(np.bincount(pair[0] * 16 + pair[1], minlength=256).tolist()))
        wrong = {16 * a + b: 0.0 if a == b else 1 / 240 for a in range(16) for b in range(16)}
        doubled = {cell: 1 / 1024 + (3 / 1024 if cell % 2 else 0) for cell in range(256)}
        even = dict.fromkeys(range(256), 1 / 256)
        accepts_only(frequencies(cells), even, never_alike=wrong, mostly_odd=doubled)


def test_a_device_remembers_by_its_key_alone() -> None:
    made = RapporRandomizer(bits=64, cohorts=16, permanent=0.5)
    one, again, other = made.client(b"k" * 32), made.client(b"k" * 32), made.client(b"l" * 32)
    assert (one.memo("a") == again.memo("a")).all()
    assert one.cohort == again.cohort
    assert (one.memo("a") != other.memo("a")).any()
    # The coins of two strings are others: else two memos would show where the filters differ.
    coins = [
        one.memo(name) ^ bloom_filters(made.indices([name], [one.cohort]), made.bits) for name in ("a", "b")
    ]
    assert (coins[0] != coins[1]).any()
    reports = [one.report("a") for _ in range(2000)]
    assert len(set(reports)) > 1900
    rows, cohorts = made.opened(np.frombuffer(b"".join(reports), np.uint8).reshape(-1, made.width))
    assert set(cohorts.tolist()) == {one.cohort}
    memo = np.unpackbits(one.memo("a")[0], bitorder="little")
    ones = np.unpackbits(rows, axis=1, bitorder="little").sum(axis=0).tolist()
    for count, held in zip(ones, memo.tolist(), strict=True):
        accepts_only(rate(count, 2000), 0.75 if held else 0.5, of_the_other_bit=0.5 if held else 0.75)
    assert "k" * 8 not in repr(one)
    assert len(made.client().key) == 32
    assert made.client() != made.client()


def test_memoized_bits_over_devices_have_the_law_of_permanent_response() -> None:
    made, n = RapporRandomizer(bits=8, cohorts=4, permanent=0.5), 4000
    generator = np.random.default_rng(3)
    wrong, cohorts = np.zeros(8), np.zeros(4)
    for _ in range(n):
        client = made.client(generator.bytes(32))
        held = np.zeros(8, bool)
        held[made.indices(["a"], [client.cohort])[0]] = True
        wrong += np.unpackbits(client.memo("a")[0], bitorder="little") != held
        cohorts[client.cohort] += 1
    for count in wrong.astype(int).tolist():
        accepts_only(rate(count, n), 0.25, half_as_often=0.125, as_often_as_not=0.5)
    even, three = dict.fromkeys(range(4), 0.25), dict.fromkeys(range(3), 1 / 3)
    accepts_only(frequencies(dict(enumerate(cohorts.astype(int).tolist()))), even, three_cohorts=three)


def test_specifications_come_back() -> None:
    for both in (None, (0.25, 0.5)):
        made = RapporRandomizer(bits=32, cohorts=5, permanent=0.1, hashes=1, instantaneous=both)
        again = Randomizer.from_specification(json.loads(json.dumps(made.specification())))
        assert again == made
        assert again.digest == made.digest
        assert again.randomize("b", 4) == made.randomize("b", 4)
    assert len({RapporRandomizer(**shape).digest for shape in SHAPES}) == len(SHAPES)


@cases(
    ("parameters", "message"),
    [
        ({"bits": 12}, "bits must be a multiple of 8"),
        ({"bits": 8, "hashes": 5}, "bits must be a multiple of 8, at least 2"),
        ({"bits": 8000}, "bits must be"),
        ({"hashes": 0}, "hashes must be"),
        ({"hashes": 9}, "hashes must be at most 8"),
        ({"cohorts": 0}, "cohorts must be"),
        ({"cohorts": 1 << 17}, "cohorts must be at most"),
        ({"permanent": 0.0}, "permanent must be"),
        ({"permanent": 1.0}, "permanent must be"),
        ({"permanent": 1e-6}, "permanent must be at least"),
        ({"permanent": 1e-4, "hashes": 8, "instantaneous": None}, "permanent must make epsilon at most 40"),
        ({"instantaneous": (0.75, 0.5)}, "instantaneous must be"),
        ({"instantaneous": (0.5, 0.5)}, "instantaneous must be"),
        ({"instantaneous": (0.0, 0.5)}, "instantaneous must be"),
        ({"instantaneous": 0.5}, "instantaneous must be a pair"),
    ],
)
def test_odd_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        RapporRandomizer(**{"permanent": 0.5, **parameters})


def test_other_values_and_keys_are_refused_without_being_shown() -> None:
    made = RapporRandomizer()
    for values in ([12345], [None], ["fine", ("secret",)]):
        with pytest.raises(ParameterError, match="values must be strings or bytes") as told:
            made.randomize_batch(values)
        assert "12345" not in str(told.value)
        assert "secret" not in str(told.value)
    with pytest.raises(ParameterError, match="values must be a list"):
        made.randomize_batch("secret")
    for key in (b"short", "x" * 32):
        with pytest.raises(ParameterError, match="key must be 32 secret bytes"):
            made.client(key)  # type: ignore[arg-type]
    assert len(made.randomize_batch([])) == 0


def test_the_longest_filters_have_memos_of_all_their_bits() -> None:
    device = RapporRandomizer(bits=4096, permanent=0.3)
    client = device.client(bytes(32))
    assert client.memo("red").shape == (1, 512)
    assert len(client.report("red", 1)) == device.width
