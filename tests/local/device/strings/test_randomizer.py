"""Questions about strings on one device: the exact law of a person, that it is drawn, what is refused."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import (
    BitstogramRandomizer,
    PrefixExtendingRandomizer,
    Randomizer,
    SequenceFragmentPuzzleRandomizer,
    Strings,
    TreeHistRandomizer,
)
from sfumato.local.device.frequency.local_hashing import hashed, keys_of
from sfumato.local.device.strings.randomizer import StringsRandomizer
from tests.cases import cases
from tests.chance import accepts_only, rate
from tests.local.laws import below_exponential, named_alike, reports, worst_odds

TINY = Strings(length=2, alphabet="ab")
VALUES = ["", "a", "b", "aa", "ab", "ba", "bb"]
KINDS: list[Any] = [
    PrefixExtendingRandomizer,
    TreeHistRandomizer,
    BitstogramRandomizer,
    SequenceFragmentPuzzleRandomizer,
]
SKETCH: dict[str, Any] = {"size": 8, "hashes": 2}
SHAPES: dict[Any, dict[str, Any]] = {
    PrefixExtendingRandomizer: {},
    TreeHistRandomizer: SKETCH,
    BitstogramRandomizer: {**SKETCH, "fragment": 1, "buckets": 2, "tables": 2},
    SequenceFragmentPuzzleRandomizer: {
        **SKETCH,
        "fragment": 1,
        "buckets": 2,
        "sketch": "hadamard-count-mean-sketch",
    },
}


def tiny(kind: Any, epsilon: float, weight: int) -> Any:
    return kind(epsilon=epsilon, strings=TINY, weight=weight, **SHAPES[kind])


def law_of(made: Any, value: str, seed: int = 5) -> dict[bytes, Fraction]:
    """The whole law; of local hashing that given one seed, which is drawn whatever is true."""
    given = {"seed": seed} if isinstance(made, PrefixExtendingRandomizer) else {}
    law: dict[bytes, Fraction] = made.probabilities(value, **given)
    return law


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [0, 3])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_odds_of_whole_persons_are_those_of_epsilon(kind: Any, weight: int, epsilon: float) -> None:
    made = tiny(kind, epsilon, weight)
    # Given the question, two strings with other codes are enough to have all of the odds.
    values = VALUES if weight else ["", "ab", "bb"]
    assert below_exponential(worst_odds(lambda value: law_of(made, value), values), epsilon)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_odds_of_bits_in_the_puzzle(epsilon: float) -> None:
    made = SequenceFragmentPuzzleRandomizer(
        epsilon=epsilon, strings=TINY, weight=1, fragment=2, buckets=2, **SKETCH
    )
    # Bits have coins of few bits, which fall short of epsilon by a little.
    assert below_exponential(worst_odds(made.probabilities, ["", "ab", "b"]), epsilon, 0.98)


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("weight", [0, 3])
def test_what_is_drawn_is_the_law(kind: Any, weight: int) -> None:
    made, n = tiny(kind, 1.0, weight), 100_000
    for value, other in (("ab", "b"), ("b", "ab")):
        law = law_of(made, value)
        records = made.randomize_batch([value] * n, 3).records
        assert made.layout.genuine(records).all()
        assert made.well_formed(records).all()
        sent = records.tobytes()
        found = Counter(sent[at : at + made.width] for at in range(0, records.size, made.width))
        assert set(found) <= set(law)
        sharper = named_alike(law, law_of(tiny(kind, 1.5, weight), value))
        accepts_only(reports(found, law), law, of_another=law_of(made, other), of_epsilon_3_2=sharper)


def test_hashed_prefixes_are_the_law_too() -> None:
    made, n = tiny(PrefixExtendingRandomizer, 1.0, 2), 200_000
    records = made.randomize_batch(["bb"] * n, 3).records
    asked = made.asked(records)
    accepts_only(rate(int((asked == 0).sum()), n), 1 / 3, without_weights=1 / 2, weights_swapped=2 / 3)
    for whole, code in ((False, made.part_codes(TINY.symbols(["bb"]), np.array([0]))), (True, None)):
        codes = made.whole_codes(TINY.symbols(["bb"])) if code is None else code
        pieces = made.cut(records[asked == int(whole)], whole=whole)
        device = made.whole if whole else made.part
        seeds, buckets = device.opened(pieces)
        true = hashed(seeds, keys_of(codes)).astype(np.uint64) * np.uint64(4) >> np.uint64(32)
        hits, chance = int((true == buckets).sum()), device.truth.chance
        accepts_only(rate(hits, len(pieces)), chance, even=1 / 4, a_tenth_less=0.9 * float(chance))


@cases("kind", KINDS)
@cases("weight", [0, 4])
def test_both_parts_of_epsilon_never_exceed_it(kind: Any, weight: int) -> None:
    for epsilon in (0.1, 0.7, 1.0, 3.3):
        made = tiny(kind, epsilon, weight)
        parts = Fraction(made.part.epsilon), Fraction(made.whole.epsilon)
        assert (max(parts) if weight else sum(parts)) == Fraction(epsilon)


@cases("kind", KINDS)
@cases("weight", [0, 4])
def test_a_specification_makes_the_same_randomizer(kind: Any, weight: int) -> None:
    made = kind(epsilon=1.0, strings=Strings(length=4, alphabet=b"abc"), weight=weight, key=2**64 - 1)
    told = json.loads(json.dumps(made.specification()))
    again: Any = Randomizer.from_specification(told)
    assert again == made
    assert again.digest == made.digest
    assert again.randomize(b"cab", 5) == made.randomize(b"cab", 5)
    assert len(made.randomize(b"cab")) == made.width
    assert len(made.randomize_batch([])) == 0
    changes: list[dict[str, Any]] = [
        {"strings": None},
        {"strings": {"length": 4}},
        {"weight": None},
        {"key": -1},
        {"parts": []},
        {"epsilon": 2.0},
        {"hash": "other"},
    ]
    for change in changes:
        with pytest.raises(ParameterError):
            Randomizer.from_specification({**told, **change})


@cases("kind", KINDS)
@cases("weight", [0, 1])
def test_only_records_that_may_be_sent_are_well_formed(kind: Any, weight: int) -> None:
    made = tiny(kind, 1.0, weight)
    noise = np.random.default_rng(1).integers(0, 256, (40_000, made.width), dtype=np.uint8)
    noise[:, 0] %= made.questions + 2
    known = made.randomize_batch(VALUES * 100, 2).records
    both = np.concatenate([noise, known])
    made.layout.stamp(both)
    sound = made.well_formed(both)
    assert sound[len(noise) :].all()
    assert not sound[both[:, 0] > made.questions - (weight == 0)].any()
    for rows, device, start in pieces_of(made, both[sound]):
        piece = np.ascontiguousarray(rows[:, start : start + device.width])
        assert device.layout.genuine(piece).all()
        assert device.well_formed(piece).all()
        if weight:
            assert not rows[:, 1 + device.width : -4].any()


def pieces_of(made: Any, records: Any) -> list[tuple[Any, Any, int]]:
    if not made.weight:
        return [(records, made.part, 1), (records, made.whole, 1 + made.part.width)]
    whole = records[:, 0] == made.questions
    return [(records[~whole], made.part, 1), (records[whole], made.whole, 1)]


def test_parameters_that_break_a_rule() -> None:
    long = Strings(length=8)
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (TreeHistRandomizer, {"strings": "ab"}, "strings must be Strings"),
        (TreeHistRandomizer, {"weight": -1}, "weight must"),
        (TreeHistRandomizer, {"weight": 51}, "weight must be at most"),
        (TreeHistRandomizer, {"key": 2**64}, "key must be below"),
        (TreeHistRandomizer, {"levels": ()}, "levels must be rising"),
        (TreeHistRandomizer, {"levels": (3, 2)}, "levels must be rising"),
        (TreeHistRandomizer, {"levels": (3, 8)}, "levels must be rising"),
        (PrefixExtendingRandomizer, {"strings": Strings(length=1)}, "strings must have a length"),
        (BitstogramRandomizer, {"fragment": 9}, "fragment must be at most 8"),
        (BitstogramRandomizer, {"buckets": 24}, "buckets must be a power of two"),
        (BitstogramRandomizer, {"fragment": 5}, "fragment must make at most"),
        (BitstogramRandomizer, {"tables": 17}, "tables must be at most"),
        (SequenceFragmentPuzzleRandomizer, {"sketch": "one-bit-hadamard"}, "sketch must be one of"),
        (SequenceFragmentPuzzleRandomizer, {"epsilon": 41.0}, "epsilon must"),
    ]
    for kind, change, told in wrong:
        with pytest.raises(ParameterError, match=told):
            kind(**{"epsilon": 1.0, "strings": long, **change})


def test_all_of_a_base_are_on_the_face() -> None:
    assert all(issubclass(kind, StringsRandomizer) for kind in KINDS)
