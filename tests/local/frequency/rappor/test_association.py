"""Two strings of each device: their joint shares, the errors of these, and a test of independence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import Rappor, ReportBatch, associate
from tests.chance import accepts_only, at_least, at_most
from tests.local.laws import within

ORACLE = Rappor(bits=32, cohorts=4, permanent=0.25, instantaneous=(0.25, 0.75))
FIRST, SECOND = np.array(["a", "b", "c"]), np.array(["u", "v"])
JOINT = np.array([[0.3, 0.1], [0.05, 0.25], [0.1, 0.2]])


def told(cells: Any, seed: int) -> tuple[ReportBatch, ReportBatch]:
    return (
        ORACLE.randomize_batch(FIRST[cells // 2], seed),
        ORACLE.randomize_batch(SECOND[cells % 2], seed + 1),
    )


def found(cells: Any, seed: int, **others: Any) -> Any:
    one, other = told(cells, seed)
    names = {"first_candidates": FIRST.tolist(), "second_candidates": SECOND.tolist()}
    return associate(ORACLE, one, ORACLE, other, **names, **others)


def test_joint_shares_and_their_errors() -> None:
    generator, repeats, n = np.random.default_rng(1), 60, 2000
    scores, ratios = [], []
    for repeat in range(repeats):
        cells = generator.choice(6, n, p=JOINT.ravel())
        seen = found(cells, 2 * repeat, others=False)
        assert seen.joint.sum() == pytest.approx(1.0)
        scores.append(((seen.joint - JOINT) / seen.stddev).ravel())
        ratios.append(seen.statistic)
    score = np.array(scores)
    # Six shares that sum to 1, as good as five: known to 8 %.
    means = within(score.mean(axis=0), 1.1 / np.sqrt(repeats))
    accepts_only(means, 0.0, an_error_off=1.0, an_error_less=-1.0)
    square = within((score**2).mean(), np.sqrt(2 / repeats / 5))
    accepts_only(square, 1.0, of_two_thirds_of_the_deviation=9 / 4, of_half_more=4 / 9)
    assert np.mean(ratios) > 20


def test_independent_strings_are_seldom_called_dependent() -> None:
    generator, repeats = np.random.default_rng(2), 60
    even = np.outer(JOINT.sum(axis=1), JOINT.sum(axis=0)).ravel()
    seen = [
        found(generator.choice(6, 2000, p=even), 1000 + 2 * i, others=False).p_value for i in range(repeats)
    ]
    few, half = (sum(value < level for value in seen) for level in (0.05, 0.5))
    accepts_only(lambda count: at_most(count, repeats)(0.05), few, judged_at_a_half=half)
    accepts_only(at_least(half, repeats), 0.5, nearly_all=0.97)


def test_many_other_strings_count_as_one() -> None:
    generator, n = np.random.default_rng(3), 12_000
    rare = np.array([f"rare {i}" for i in range(500)])
    other = generator.random(n) < 0.3
    cells = np.where(other, 0, generator.choice(4, n, p=[0.4, 0.1, 0.1, 0.4]))
    first = np.where(other, rare[generator.integers(500, size=n)], FIRST[cells // 2])
    second = SECOND[cells % 2]
    seen = associate(
        ORACLE,
        ORACLE.randomize_batch(first, 1),
        ORACLE,
        ORACLE.randomize_batch(second, 2),
        first_candidates=["a", "b"],
        second_candidates=["u", "v"],
    )
    assert seen.first == ("a", "b", None)
    assert seen.joint.shape == (3, 3)
    real = np.zeros((3, 3))
    np.add.at(real, (np.where(other, 2, cells // 2), cells % 2), 1 / n)
    assert abs(seen.joint - real).max() <= 0.06
    assert not seen.independent(0.999_999)
    one_report = ORACLE.one_report_loss.epsilon(0.0)
    assert seen.loss.epsilon(0.0) == pytest.approx(2 * one_report, rel=1e-9)


def test_refused_reports_take_their_pair_with_them() -> None:
    one, other = told(np.zeros(500, int), 1)
    records = one.records.copy()
    records[:40, -1] ^= 0xF0
    seen = associate(
        ORACLE,
        ReportBatch(records, one.digest, True),
        ORACLE,
        other,
        first_candidates=["a", "b"],
        second_candidates=["u", "v"],
        others=False,
    )
    assert (seen.pairs, seen.refused) == (460, 40)


def test_odd_input_is_refused() -> None:
    one, other = told(np.zeros(10, int), 1)
    strange = Rappor().randomize_batch(["a"] * 10, 1)

    def ask(**change: Any) -> None:
        given: dict[str, Any] = {
            "first": ORACLE,
            "first_reports": one,
            "first_candidates": ["a", "b"],
            "second": ORACLE,
            "second_reports": other,
            "second_candidates": ["u"],
        }
        associate(**{**given, **change})

    ask()
    for change, message in (
        ({"first_reports": strange}, "first_reports must be of the specification"),
        ({"second_reports": other.records}, "second_reports must be a ReportBatch"),
        ({"first_reports": ReportBatch(one.records[:5], one.digest, True)}, "second_reports must be as many"),
        ({"first_candidates": []}, "first_candidates must be"),
        ({"second_candidates": ["u", "u"]}, "second_candidates must be different"),
        ({"second_candidates": "u"}, "second_candidates must be"),
        ({"others": False}, "others must be True"),
        ({"first_candidates": [str(i) for i in range(1000)]}, "candidates must make at most"),
        (
            {"first_reports": ReportBatch(one.records[:, ::-1].copy(), one.digest, True)},
            "first_reports must have",
        ),
    ):
        with pytest.raises(ParameterError, match=message):
            ask(**change)


@pytest.mark.parametrize("name", ["first", "second"])
def test_who_made_the_reports_is_told(name: str) -> None:
    oracle: Any = Rappor(bits=16, cohorts=2)
    made = {"first": oracle, "second": oracle} | {name: "x"}
    reports = oracle.randomize_batch(["a", "b"], 1)
    both = made["first"], reports, made["second"], reports
    with pytest.raises(ParameterError, match=f"{name} must be a Rappor, got a value of type str; pass what"):
        associate(*both, first_candidates=["a"], second_candidates=["b"])
