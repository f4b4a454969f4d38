"""Frequent strings in rounds: found with any oracle, with the oracle's own spread, loss and counting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.errors import ParameterError
from sfumato.local import (
    HadamardResponse,
    OptimalLocalHashing,
    PrefixRound,
    ProjectiveGeometryResponse,
    RandomizedResponse,
    Strings,
)
from tests.chance import accepts_only, at_most
from tests.local.laws import audited, within

ORACLES: list[Any] = [ProjectiveGeometryResponse, OptimalLocalHashing, HadamardResponse]
PEOPLE = ["sfumato"] * 50 + ["oil"] * 30 + [""] * 15 + ["zebra"] * 5
WORDS = Strings(length=6)


def counted(asked: PrefixRound, people: list[str], seed: int) -> Any:
    aggregator = asked.aggregator()
    aggregator.add_batch(asked.randomize_batch(people, seed))
    return aggregator.estimate()


@pytest.mark.parametrize("oracle", ORACLES)
def test_rounds_find_frequent_strings(oracle: Any) -> None:
    asked, stops = PrefixRound(epsilon=4.0, strings=WORDS, oracle=oracle, max_prefixes=2000), []
    for seed in range(10):
        estimate = counted(asked, PEOPLE * 80, seed)
        stops.append(asked.stop)
        if asked.last:
            break
        asked = asked.next(estimate, max_candidates=8)
    assert stops == [2, 3, 4, 5, 6]
    assert asked.found(estimate, 1e-6) == ["sfumat", "oil", "", "zebra"]
    assert asked.given is not None
    assert len(asked.given) == 8
    places, shares = asked.domain.codes(["sfumat", "oil", "", "zebra"]), [0.5, 0.3, 0.15, 0.05]
    found = within(estimate.frequencies[places], estimate.stddev[places])
    accepts_only(found, shares, in_another_order=shares[::-1], of_half=[0.25, 0.15, 0.075, 0.025])


def test_whatever_is_no_extension_is_the_last_category() -> None:
    asked = PrefixRound(epsilon=6.0, strings=WORDS, start=2, given=("oi", "sf"), stop=3)
    estimate = counted(asked, PEOPLE * 200, 1)
    shares = within([estimate.of(None), estimate.of("oil")], estimate.stddev.max())
    accepts_only(shares, [0.2, 0.3], swapped=[0.3, 0.2], without_the_others=[0.0, 0.375])
    assert asked.found(estimate) == ["sfu", "oil"]
    assert None not in asked.next(estimate, max_candidates=500).given  # type: ignore[operator]


def test_the_loss_and_the_spread_are_the_oracles() -> None:
    asked = PrefixRound(epsilon=1.0, strings=WORDS)
    estimate = counted(asked, PEOPLE, 1)
    assert asked.privacy_loss == asked.inner.privacy_loss == estimate.loss
    assert estimate.error_model == asked.inner.error_model
    assert asked.privacy_loss.epsilon(0.0) <= 1.0
    whole, left, right = (asked.aggregator() for _ in range(3))
    batches = [asked.randomize_batch(PEOPLE, seed) for seed in (1, 2)]
    for batch, part in zip(batches, (left, right), strict=True):
        whole.add_batch(batch)
        part.add_batch(batch)
    assert left.merge(right.to_bytes()).totals.tolist() == whole.totals.tolist()
    noise = np.random.default_rng(1).integers(0, 256, (4000, asked.device.width), dtype=np.uint8)
    left.add_batch(noise)
    left.add_batch(PrefixRound(epsilon=2.0, strings=WORDS).randomize_batch(PEOPLE, 1))
    assert left.accepted + sum(left.refused.values()) == 4000 + 300
    assert left.refused["specification"] > 3000


def test_strings_that_nobody_has_are_seldom_found() -> None:
    asked, runs, n = PrefixRound(epsilon=1.0, strings=Strings(length=3, alphabet="ab")), 200, 400
    assert asked.last
    records = asked.randomize_batch(["aba"] * (runs * n), 5).records
    wrong = np.zeros(2, int)
    for part in np.split(records, runs):
        estimate = asked.estimate(asked.tally(part), n)
        wrong += [bool(set(asked.found(estimate, level)) - {"aba"}) for level in (0.05, 0.5)]
    accepts_only(lambda count: at_most(count, runs)(0.05), int(wrong[0]), judged_at_a_half=int(wrong[1]))


def test_estimates_of_other_rounds_are_refused() -> None:
    first = PrefixRound(epsilon=6.0, strings=Strings(length=2, alphabet="ab"), max_prefixes=1)
    assert (first.stop, first.last) == (1, False)
    estimate = counted(first, ["ab"] * 100, 1)
    last = first.next(estimate, max_candidates=2)
    assert last.last
    for call in (lambda: last.next(estimate), lambda: last.found(estimate)):
        with pytest.raises(ParameterError, match="estimate must be of this round"):
            call()
    with pytest.raises(ParameterError, match="before the last"):
        last.next(counted(last, ["ab"] * 100, 1))
    wrong: Any = int
    with pytest.raises(ParameterError, match="oracle must be a frequency oracle"):
        PrefixRound(epsilon=1.0, strings=WORDS, oracle=wrong)
    with pytest.raises(ParameterError, match="strings must be"):
        PrefixRound(epsilon=1.0, strings=wrong)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_bytes_keep_epsilon_and_use_it(epsilon: float) -> None:
    strings = Strings(length=2, alphabet="ab")
    asked = PrefixRound(epsilon=epsilon, strings=strings, stop=1, oracle=RandomizedResponse)
    generator = np.random.default_rng(7)
    found = audit(
        lambda value, size: asked.randomize_batch([("aa", "bb")[value]] * size, generator).records,
        epsilon=epsilon,
        pairs=[(0, 1)],
        trials={0.5: 800_000, 1.0: 400_000, 4.0: 150_000}[epsilon],
        batch=True,
        confidence=1 - 1e-11,
    )
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)


@pytest.mark.parametrize("given", ["x", None, [0.5]])
def test_a_round_takes_estimates_alone(given: Any) -> None:
    asked = PrefixRound(epsilon=4.0, strings=Strings(length=4, alphabet="abc"))
    for call in (asked.next, asked.found):
        with pytest.raises(ParameterError, match=r"estimate must be an Estimate, got .*; pass what"):
            call(given)


def test_no_reports_choose_no_prefixes() -> None:
    strings = Strings(length=20, alphabet="abcdefghijklmnopqrstuvwxyz")
    asked = PrefixRound(epsilon=4.0, strings=strings)
    nothing = asked.aggregator().estimate()
    assert asked.found(nothing) == []
    with pytest.raises(ParameterError, match=r"estimate must be of at least 1 report, got 0; collect some"):
        asked.next(nothing)


@pytest.mark.parametrize("oracle", ORACLES)
def test_a_single_report_of_chance_finds_nothing(oracle: Any) -> None:
    """Each round is wrong with a chance of 0.05 at most."""
    asked = PrefixRound(epsilon=12.0, strings=Strings(length=3), stop=2, oracle=oracle)
    told = [counted(asked, ["zzz"] * 3000, seed) for seed in range(20)]
    found = [asked.found(each) for each in told]
    assert all("zz" in texts for texts in found)
    wrong, above = sum(len(texts) > 1 for texts in found), sum((each.raw > 0).sum() > 1 for each in told)
    accepts_only(lambda count: at_most(count, 20)(0.05), wrong, all_above_0=above)
