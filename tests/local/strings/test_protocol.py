"""Strings that are found without a list: which, how often wrongly, how exactly, and what is promised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import (
    Bitstogram,
    FrequentStrings,
    HeavyHitters,
    PrefixExtending,
    SequenceFragmentPuzzle,
    Strings,
    TreeHist,
    choose,
)
from tests.cases import cases
from tests.chance import accepts_only, at_least, at_most
from tests.drawings import bars, new_axes, written
from tests.local.laws import SEVEN_SIGMA, covers

KINDS: list[Any] = [PrefixExtending, TreeHist, Bitstogram, SequenceFragmentPuzzle]
SMALL: dict[Any, dict[str, Any]] = {
    PrefixExtending: {},
    TreeHist: {"hashes": 64},
    Bitstogram: {"hashes": 64, "buckets": 64},
    SequenceFragmentPuzzle: {"hashes": 32, "sketch": "hadamard-count-mean-sketch"},
}
PEOPLE = ["sfumato"] * 50 + ["oil"] * 30 + [""] * 20
TINY = Strings(length=2, alphabet="ab")


def found_by(kind: Any, strings: Strings, values: Any, **shape: Any) -> HeavyHitters:
    protocol = kind(strings=strings, **{"epsilon": 6.0, **SMALL[kind], **shape})
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch(values, 1))
    told: HeavyHitters = aggregator.estimate()
    return told


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [0, 4])
def test_frequent_strings_are_found_and_cut(kind: Any, weight: int) -> None:
    told = found_by(kind, Strings(length=6), PEOPLE * 200, weight=weight)
    assert told.found == ["sfumat", "oil", ""]
    assert [text for text, _ in told.top(2)] == ["sfumat", "oil"]
    assert told.simulated
    assert told.respondents == 20_000
    assert (told.reports == 20_000) == (weight == 0)
    lower, upper, _ = told.bands(0.999_999)
    text: Any
    for text, share in zip(told.found, (0.5, 0.3, 0.2), strict=True):
        place = told.candidates.index(text)
        assert lower[place] <= share <= upper[place]
        assert told.of(text) == told.frequencies[place]
    table = told.to_dict()
    assert table["string"] == told.found
    assert {len(column) for column in table.values()} == {3}
    with pytest.raises(ParameterError, match="string must be a candidate"):
        told.of("zzzzzz")


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_bits_and_letters_of_any_kind(kind: Any) -> None:
    few: dict[str, Any] = {"fragment": 1} if kind in (Bitstogram, SequenceFragmentPuzzle) else {}
    raw = [b"\0\xff"] * 60 + [b"\0"] * 40
    assert found_by(kind, Strings(length=3, alphabet=bytes(range(256))), raw * 150, **few).found == raw[59:61]
    bits = ["0110100"] * 60 + ["0110101"] * 40
    assert found_by(kind, Strings(length=7, alphabet="01"), bits * 200).found == bits[59:61]
    letters = ["λόγος"] * 60 + ["όγος"] * 40
    greek = Strings(length=5, alphabet="αβγδεζηθικλμνξοπρςστυφχψωάέήίόύώ")
    assert found_by(kind, greek, letters * 200).found == letters[59:61]


@cases("kind", KINDS)
@cases("weight", [0, 4])
def test_nobody_tells_nothing(kind: Any, weight: int) -> None:
    protocol = kind(
        epsilon=1.0, strings=TINY, weight=weight, **({"fragment": 1} if kind in KINDS[2:] else {})
    )
    told = protocol.aggregator().estimate()
    assert told.found == []
    assert told.top(3) == []
    assert told.to_dict()["string"] == []
    assert len(told.bands().lower) == len(told.candidates) == len(told.counts) == 0
    # One report is of one question: the others have none.
    alone = protocol.aggregator()
    alone.add(protocol.randomize("ab", 1))
    assert alone.estimate().found == []


def test_reports_that_raise_all_prefixes_at_once_do_not_make_all_of_them_candidates() -> None:
    protocol = TreeHist(epsilon=1.0, strings=Strings(length=4), size=64, hashes=16)
    device: Any = protocol.device
    drawn = protocol.randomize_batch(["zz"] * 20_000, 1).records
    asked = device.asked(drawn)
    aggregator = protocol.aggregator()
    for question in range(device.questions):
        own = drawn[asked == question]
        _, entries, negative = device.part.opened(device.cut(own, whole=False))
        # A plus at the constant entry is a plus for all that is asked about.
        aggregator.add_batch(np.repeat(own[(entries == 0) & (negative == 0)][:1], 30, axis=0))
    aggregator.add_batch(drawn[asked == device.questions][:30])
    assert len(aggregator.estimate().candidates) <= 4096 * 27


def test_two_tables_find_what_shares_a_bucket() -> None:
    words = ["aaaa", "bbbb", "abab", "baba", "aabb", "bbaa"]
    values, shape = words * 4000, {"buckets": 8, "fragment": 2, "false_positive_rate": 1e-9}
    strings = Strings(length=4, alphabet="ab")
    one, three = (
        {
            word
            for key in range(6)
            for word in found_by(Bitstogram, strings, values, tables=tables, key=key, **shape).found
        }
        for tables in (1, 3)
    )
    assert one <= set(words)
    assert three == set(words)
    counts = [
        len(found_by(Bitstogram, strings, values, tables=tables, key=3, **shape).found) for tables in (1, 3)
    ]
    assert counts[0] < counts[1]


WHOLE: dict[Any, dict[str, Any]] = {
    PrefixExtending: {},
    TreeHist: {"hashes": 64, "size": 256},
    SequenceFragmentPuzzle: {
        "hashes": 64,
        "size": 256,
        "fragment": 1,
        "buckets": 2,
        "sketch": "hadamard-count-mean-sketch",
    },
}
"""Over an alphabet so small that all strings are candidates."""
SHARES = {"": 0.0, "a": 0.3, "b": 0.0, "aa": 0.2, "ab": 0.0, "ba": 0.5, "bb": 0.0}


def repeated(kind: Any, weight: int, repeats: int, n: int) -> tuple[Any, Any, int, int]:
    """Errors and their stated variances, how often intervals hold, and how often a string is made up."""
    protocol = kind(epsilon=2.0, strings=TINY, weight=weight, **WHOLE[kind])
    people = [text for text, share in SHARES.items() for _ in range(round(share * n))]
    records = protocol.randomize_batch(people * repeats, 5).records
    errors, stated, held, wrong = [], [], [], 0
    for part in np.split(records, repeats):
        kept = protocol.aggregator()
        kept.add_batch(part)
        told = kept.estimate()
        assert sorted(told.candidates) == sorted(SHARES)
        truth = np.array([SHARES[text] for text in told.candidates])
        order = np.argsort(told.candidates)
        lower, upper, _ = told.interval(0.95)
        # That of a share of 0 cannot begin above it, and is missed half as often.
        held.append(((lower <= truth) & (truth <= upper))[truth > 0])
        errors.append((told.frequencies - truth)[order])
        stated.append((told.error_model.variance(truth) / told.reports)[order])
        wrong += any(SHARES[text] == 0 for text in told.found)
    return np.array(errors), np.array(stated), int(np.sum(held)), wrong


def stray(errors: Any, slack: float, family: float = 0.0) -> Callable[[Any], None]:
    """A check of errors, one row a repeat, against the variances that are stated: no bias, and the ratio."""
    square, mean = float(np.mean(np.square(errors))), np.mean(errors, axis=0)

    def check(stated: Any) -> None:
        assert (abs(mean) <= SEVEN_SIGMA * np.sqrt(np.mean(stated, axis=0) / len(errors)) + family).all()
        assert abs(square / np.mean(stated) - 1) <= slack

    return check


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("weight", [0, 2])
def test_no_bias_and_the_stated_spread(kind: Any, weight: int) -> None:
    repeats, n = 80, 600
    errors, stated, held, wrong = repeated(kind, weight, repeats, n)
    # What a fixed sketch adds to one repeat it adds to all: it is in the stated variance.
    family = 0.0 if kind is PrefixExtending else np.sqrt(0.38 / 64 / 256) * SEVEN_SIGMA
    check = stray(errors, SEVEN_SIGMA * np.sqrt(2 / (repeats * len(SHARES))), family)
    accepts_only(check, stated, half=stated / 2, twice=2 * stated)
    covers(held, 3 * repeats, claimed=0.9999, most=0.96, under=0.7)
    accepts_only(at_least(repeats - wrong, repeats), 0.95, never_wrong=1.0)


@pytest.mark.parametrize("repeats", [400, 1600])
def test_spread_coverage_and_false_alarms_to_a_few_percent(repeats: int) -> None:
    n = 1000
    errors, stated, held, wrong = repeated(PrefixExtending, 2, repeats, n)
    check = stray(errors, 0.06 * np.sqrt(1600 / repeats))
    accepts_only(check, stated, a_fifth_less=0.8 * stated, a_fifth_more=1.2 * stated)
    covers(held, 3 * repeats, most=0.96)
    accepts_only(at_most(wrong, repeats), 0.05, a_thousandth=0.001)


def test_who_was_not_asked_is_in_the_spread() -> None:
    # So great an epsilon that nearly all error is that only every second person tells the whole string.
    protocol = PrefixExtending(epsilon=12.0, strings=TINY, weight=1)
    people, repeats, errors, stated, held = ["a"] * 60 + ["ba"] * 40, 160, [], [], 0
    for part in np.split(protocol.randomize_batch(people * repeats, 5).records, repeats):
        told = protocol.estimate(part)
        place = told.candidates.index("a")
        errors.append(told.frequencies[place] - 0.6)
        stated.append(told.variances[place])
        held += bool(told.interval().lower[place] <= 0.6 <= told.interval().upper[place])
    told_alone, whole = np.array(stated), stray(np.array(errors), SEVEN_SIGMA * np.sqrt(2 / repeats))
    accepts_only(whole, told_alone, half=told_alone / 2, ten_times=10 * told_alone)
    covers(held, repeats, 0.93, claimed=1.0)  # Counts of fifty people are coarse.


@pytest.mark.parametrize("kind", KINDS)
def test_the_planned_share_is_about_the_smallest_that_is_found(kind: Any) -> None:
    strings, n = Strings(length=4, alphabet="abcdefgh"), 100_000
    protocol = kind(epsilon=4.0, strings=strings, weight=2, **SMALL[kind])
    share = protocol.smallest_share(n)
    assert protocol.smallest_share(4 * n) < share < protocol.smallest_share(n, 0.9) < 1
    rare = np.random.default_rng(1).integers(1, 9, (n, 4)).astype(np.uint16)
    values: Any = strings.values(rare)
    counts = {}
    for factor in (0.25, 2.5):
        values[: round(factor * share * n)] = ["face"] * round(factor * share * n)
        kept = protocol.aggregator()
        kept.add_batch(protocol.randomize_batch(values, 7))
        counts[factor] = "face" in kept.estimate().found
    assert counts == {0.25: False, 2.5: True}


def test_choosing_compares_all_four() -> None:
    choice = choose(FrequentStrings(Strings(length=6, alphabet="01")), epsilon=2.0, n=100_000)
    shares = [plan.share for plan in choice.plans]
    assert shares == sorted(shares)
    assert len(choice.plans) == 4
    assert choice.best is choice.plans[0]
    for plan in choice.plans:
        assert plan.bytes == plan.protocol.device.width
        assert plan.share == plan.protocol.smallest_share(100_000)
        assert 0 < plan.threshold == plan.protocol.threshold(plan.share, 100_000) < 1.2 * plan.share
        assert type(plan.protocol).__name__ in str(choice)
    kept = {type(plan.protocol): plan.stored_bytes for plan in choice.plans}
    assert kept[PrefixExtending] == 100_000 * 10
    alone = choose(FrequentStrings(Strings(length=1, alphabet="01")), epsilon=2.0, n=100_000)
    assert set(alone.ruled_out) == {"PrefixExtending", "TreeHist"}
    with pytest.raises(ParameterError, match="PrefixExtending: no share is found; TreeHist: no share"):
        choose(FrequentStrings(Strings(length=8)), epsilon=1.0, n=100)
    for epsilon, n in ((0.0, 10), (1.0, 0), (1.0, 1)):
        with pytest.raises(ParameterError):
            choose(FrequentStrings(Strings(length=6, alphabet="01")), epsilon=epsilon, n=n)


def test_parameters_that_break_a_rule() -> None:
    for change, told in (
        ({"max_candidates": 0}, "max_candidates must"),
        ({"max_candidates": 5000}, "max_candidates must be at most"),
        ({"false_positive_rate": 0.0}, "false_positive_rate must"),
        ({"levels": (6,)}, "levels must have at most"),
    ):
        with pytest.raises(ParameterError, match=told):
            PrefixExtending(**{"epsilon": 1.0, "strings": Strings(length=8), **change})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="max_candidates must be at most"):
        SequenceFragmentPuzzle(epsilon=1.0, strings=Strings(length=8), max_candidates=10**6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [0, 3])
def test_planned_shares_are_found_as_often_as_planned(kind: Any, weight: int) -> None:
    shape: dict[str, Any] = {"fragment": 1} if kind in KINDS[2:] else {}
    if kind is SequenceFragmentPuzzle:
        shape["max_candidates"] = 64
    strings, n, runs = Strings(length=4, alphabet="abcdefgh"), 10**6, 40
    protocol = kind(epsilon=2.0, strings=strings, weight=weight, **{**SMALL[kind], **shape})
    for power in (0.5, 0.9):
        count = round(protocol.smallest_share(n, power) * n)
        people = {"face": count, "heed": n - count}
        found = [protocol.simulate(people, seed).found for seed in range(runs)]
        hits = sum("face" in texts for texts in found)

        def check(planned: float, hits: int = hits) -> None:
            # Normal errors, and one that takes a place: a little less or more than planned.
            at_least(hits, runs)(planned - 0.1)
            at_most(hits, runs)(planned + 0.05)

        # So few draws tell no more than this; that a quarter of the share is not found is said above.
        accepts_only(check, power, never=0.0, **({} if power == 0.5 else {"seldom": 0.2}))
        assert all("heed" in texts for texts in found)


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("weight", [0, 2])
def test_simulated_counts_have_the_law_of_reports(kind: Any, weight: int) -> None:
    protocol = kind(epsilon=2.0, strings=TINY, weight=weight, **WHOLE[kind])
    people, n, runs = {text: round(share * 600) for text, share in SHARES.items()}, 600, 200
    errors, stated = [], []
    for seed in range(runs):
        told = protocol.simulate(people, seed)
        order = np.argsort(told.candidates)
        truth = np.array([SHARES[text] for text in told.candidates])
        assert told.simulated
        assert told.respondents == n
        errors.append((told.frequencies - truth)[order])
        stated.append((told.error_model.variance(truth) / told.reports)[order])
    told_variances = np.array(stated)
    check = stray(errors, SEVEN_SIGMA * np.sqrt(2 / (runs * len(SHARES))))
    accepts_only(check, told_variances, a_third_less=told_variances / 1.5, half_more=1.5 * told_variances)


def test_a_thousand_million_people_are_simulated_at_once() -> None:
    protocol = PrefixExtending(epsilon=1.0, strings=Strings(length=8))
    told = protocol.simulate({"rare": 10**7, "selfie": 10**9 - 10**7}, 1)
    assert told.found == ["selfie", "rare"]
    assert told.of("rare") == pytest.approx(0.01, abs=0.002)
    assert protocol.simulate({}, 1).found == []
    with pytest.raises(ParameterError, match="people must be an integer"):
        protocol.simulate({"a": -1})
    with pytest.raises(ParameterError, match="values must be str"):
        protocol.simulate({"A": 1})


def test_a_plan_names_the_parameter_that_is_wrong() -> None:
    for wrong, rule in (
        (
            {"strings": "abc"},
            r"strings must be a Strings, got a value of type str; pass Strings\(length=...\)",
        ),
        ({"epsilon": 0.0}, r"epsilon must be positive and finite, got 0\.0$"),
        ({"n": 0}, r"n must be an integer of at least 1"),
    ):
        given: Any = {"epsilon": 4.0, "strings": Strings(length=4), "n": 1000} | wrong
        with pytest.raises(ParameterError, match=rule):
            choose(FrequentStrings(given.pop("strings")), **given)


def test_fragments_have_as_many_buckets_as_there_is_room_for_and_serve() -> None:
    for strings, n, buckets in (
        (Strings(length=1, alphabet="01"), 100_000, 4096),
        (Strings(length=3, alphabet="abcdefgh"), 10_000, 256),  # of 9^3 fragments each: within 2^18 codes
    ):
        choice = choose(FrequentStrings(strings), epsilon=4.0, n=n)
        (bitstogram,) = (plan.protocol for plan in choice.plans if isinstance(plan.protocol, Bitstogram))
        assert bitstogram.buckets == buckets
        assert buckets * strings.base**bitstogram.fragment <= 2**18


def test_found_strings_are_drawn_with_their_bands() -> None:
    protocol = PrefixExtending(epsilon=4.0, strings=Strings(length=4))
    aggregator = protocol.aggregator()
    assert not aggregator.estimate().plot(new_axes()).patches  # none is found
    aggregator.add_batch(protocol.randomize_batch(["oil", "ink", "oil"] * 1_000, rng=1))
    hitters = aggregator.estimate()
    columns = hitters.to_dict(0.9)
    ax = hitters.plot(new_axes(), level=0.9)
    assert written(ax) == hitters.found == columns["string"]
    heights, ends = bars(ax)
    assert heights == columns["frequency"].tolist()
    np.testing.assert_allclose(ends, np.stack([columns["lower"], columns["upper"]], axis=1))
