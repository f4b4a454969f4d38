"""From counts of bits to strings: what is there is found, nothing else is, and errors are as stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sfumato.errors import ParameterError
from sfumato.local import Rappor
from sfumato.local.frequency.rappor.lasso import DesignMatrix, lasso, nonnegative
from tests.chance import accepts_only, at_most
from tests.drawings import bars, new_axes, written
from tests.local.laws import covers, have_moments, within

ORACLE = Rappor(bits=64, cohorts=16, permanent=0.25, instantaneous=(0.25, 0.75))
COUNTS = {"red": 60_000, "green": 25_000, "blue": 10_000, "black": 5000}
NAMES = [*COUNTS, *(f"no colour {i}" for i in range(496))]


def test_strings_are_found_with_their_frequencies() -> None:
    found = ORACLE.simulate(COUNTS, 1).decode(NAMES)
    assert found.detected == ["red", "green", "blue", "black"]
    shares = np.array([COUNTS[name] for name in COUNTS]) / 100_000
    accepts_only(within(found.frequencies[:4], found.stddev[:4]), shares, in_another_order=shares[::-1])
    assert found.counts[0] == pytest.approx(60_000, rel=0.1)
    lower, upper, _ = found.interval(0.999_999)
    assert ((lower[:4] <= shares) & (shares <= upper[:4])).all()
    table = found.to_dict()
    assert table["candidate"] == ["red", "green", "blue", "black"]
    assert (table["p_value"] < 1e-4).all()
    assert (table["lower"] < table["frequency"]).all()


def test_errors_and_false_alarms_are_as_stated() -> None:
    generator, repeats = np.random.default_rng(5), 150
    shares, scores, alarms, right = np.array(list(COUNTS.values())) / 100_000, [], 0, 0
    for _ in range(repeats):
        found = ORACLE.simulate(COUNTS, generator).decode(NAMES[:60])
        alarms += bool(found.significant[4:].any())
        scores.append((found.frequencies[:3] - shares[:3]) / found.stddev[:3])
        lower, upper, _ = found.interval(0.95)
        right += int(((lower <= shares[0]) & (shares[0] <= upper))[0])
    score = np.array(scores)
    # The three most frequent ones are always found, so nothing is selected.
    have_moments(score, 1.0, tells=0.86)
    square = within((score**2).mean(), np.sqrt(2 / repeats / 3))
    accepts_only(square, 1.0, of_two_thirds_of_the_deviation=9 / 4, of_half_more=4 / 9)
    covers(right, repeats, claimed=0.9999)
    accepts_only(at_most(alarms, repeats), 0.05, never=0.0)


def test_strings_that_are_no_candidates_do_no_harm() -> None:
    tail = {f"tail {i}": 100 for i in range(600)}
    estimate = ORACLE.simulate({**COUNTS, **tail}, 3)
    found = estimate.decode(NAMES)
    assert set(found.detected) <= set(COUNTS)
    assert found.detected[:2] == ["red", "green"]
    total = 160_000
    share = within(found.frequencies[0], found.stddev[0])
    accepts_only(share, 60_000 / total, without_the_tail=0.6)
    # More is named where only a share of the named has to be right.
    assert set(estimate.decode(NAMES, correction="fdr").detected) >= set(found.detected)


def test_nothing_is_found_where_nothing_is() -> None:
    estimate = ORACLE.simulate({f"tail {i}": 20 for i in range(3000)}, 4)
    found = estimate.decode(NAMES)
    assert found.detected == []
    assert found.frequencies.tolist() == [0.0] * len(NAMES)
    assert (found.p_values == 1.0).all()


def test_a_single_candidate_and_bytes_are_decoded() -> None:
    found = ORACLE.simulate({"red": 20_000}, 1).decode(["red"])
    assert found.detected == ["red"]
    accepts_only(within(found.frequencies[0], found.stddev[0]), 1.0, of_a_sixth_less=5 / 6)
    reports = ORACLE.randomize_batch([b"red"] * 4000, 1)
    aggregator = ORACLE.aggregator()
    aggregator.add_batch(reports)
    assert aggregator.estimate().decode(["red", b"red"]).detected == [b"red"]


def test_odd_candidates_are_refused() -> None:
    estimate = ORACLE.simulate({"red": 100}, 1)
    for candidates in ([], "red", ["a", "a"], 5):
        with pytest.raises(ParameterError, match="candidates must be"):
            estimate.decode(candidates)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="values must be strings or bytes"):
        estimate.decode([1, 2])  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="correction must be"):
        estimate.decode(["a"], correction="none")
    with pytest.raises(ParameterError, match="level must be"):
        estimate.decode(["a"], level=1.0)


def test_regressions_meet_their_conditions() -> None:
    generator = np.random.default_rng(1)
    dense = (generator.random((120, 40)) < 0.2).astype(float)
    free = np.ones(120)
    design = DesignMatrix(csr_matrix(dense), free)
    target = design.apart(dense @ np.r_[3.0, 2.0, np.zeros(38)] + generator.normal(size=120))
    apart = dense - dense.mean(axis=0)
    penalties = 2.0 * design.norms
    assert design.norms == pytest.approx(np.linalg.norm(apart, axis=0))
    found = lasso(design, target, penalties)
    slope = apart.T @ (apart @ found - target) + penalties
    assert (found >= 0).all()
    assert abs(slope[found > 0]).max() <= 1e-2 * penalties.max()
    assert slope[found == 0].min() >= -1e-2 * penalties.max()
    fit = nonnegative(design.gram(np.arange(40)), apart.T @ target)
    slope = apart.T @ (apart @ fit - target)
    assert abs(slope[fit > 0]).max() <= 1e-8
    assert slope[fit == 0].min() >= -1e-8


def test_hash_functions_that_agree_set_one_bit() -> None:
    # Of 8 bits three hash functions often choose one twice: a column of the design has it once.
    oracle = Rappor(bits=8, hashes=3, cohorts=64, permanent=0.25, instantaneous=None)
    found = oracle.simulate({"red": 300_000, "blue": 100_000}, 1).decode(["red", "green", "blue"])
    assert found.detected == ["red", "blue"]
    accepts_only(within(found.frequencies[0], found.stddev[0]), 0.75, a_fifteenth_less=0.7, more=0.8)


@pytest.mark.parametrize(
    ("candidates", "kind"),
    [([], "list"), (["a", "a"], "list"), ("ab", "str"), (5, "int")],
)
def test_what_is_no_list_of_candidates_is_refused(candidates: Any, kind: str) -> None:
    with pytest.raises(ParameterError, match=f"candidates must be one or more .* type {kind};"):
        ORACLE.simulate({"red": 100}, 1).decode(candidates)


def test_as_many_candidates_as_bits_leave_room_for_are_decoded() -> None:
    device = Rappor(bits=8, hashes=1, cohorts=1, permanent=0.25, instantaneous=(0.25, 0.75))
    names = [f"name {i}" for i in range(60)]
    of_bits = dict(zip(device.device.indices(names, [0] * 60).ravel().tolist(), names, strict=True))
    assert len(of_bits) == 8
    chosen = list(of_bits.values())[:7]
    found = device.simulate(dict.fromkeys(chosen, 10_000), 1).decode(chosen)
    # Seven strings and the free level explain all eight bits: no residual is left to widen errors by.
    assert sorted(found.detected) == sorted(chosen)
    assert (abs(found.frequencies - 1 / 7) <= 6.2 * found.stddev).all()


def test_detected_strings_are_drawn_with_their_intervals() -> None:
    estimate = Rappor(cohorts=8).simulate({"blue": 60_000, "red": 40_000}, rng=1)
    decoded = estimate.decode(["blue", "green", "red"])
    columns = decoded.to_dict(0.9)
    ax = decoded.plot(new_axes(), level=0.9)
    assert written(ax) == columns["candidate"]
    heights, ends = bars(ax)
    assert heights == columns["frequency"].tolist()
    np.testing.assert_allclose(ends, np.stack([columns["lower"], columns["upper"]], axis=1))
    assert decoded.plot(new_axes(), most=1).get_title().startswith("the first 1 of")
