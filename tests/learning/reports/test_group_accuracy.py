"""Accuracy by group: priced as what it is, charged first, with intervals that cover."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from sfumato import Neighboring
from sfumato.errors import BudgetExceeded, ParameterError
from sfumato.learning import group_accuracies
from sfumato.learning.reports.group_accuracy import _gap, _reach, _share
from sfumato.ledger import Budget, Dataset, Ledger
from tests.cases import cases
from tests.chance import accepts_only, frequencies, rate

GROUPS = np.array(["a"] * 300 + ["b"] * 60 + ["other"] * 20)
RIGHT = np.concatenate([np.arange(300) % 10 < 9, np.arange(60) % 2 == 0, np.ones(20, dtype=bool)])


def told(**changed: Any) -> Any:
    given: dict[str, Any] = {
        "right": RIGHT,
        "groups": GROUPS,
        "public_groups": ["a", "b", "none"],
        "epsilon": 1.0,
        "rng": 1,
    }
    return group_accuracies(**(given | changed))


def test_much_epsilon_tells_the_truth() -> None:
    found = told(epsilon=60.0)
    assert (found.groups["a"].right, found.groups["a"].wrong) == (270, 30)
    assert (found.groups["b"].right, found.groups["b"].wrong) == (30, 30)
    assert found.groups["b"].accuracy.lower <= 0.5 <= found.groups["b"].accuracy.upper
    assert found.groups["none"].accuracy == (0.0, 1.0, True)  # nobody is in it, and nobody can know


def test_the_loss_is_epsilon_and_noise_is_in_every_cell() -> None:
    found = told(epsilon=0.5)
    assert found.loss.epsilon(0.0) == pytest.approx(0.5, rel=1e-6)
    draws = np.array([[told(rng=k).groups[g][:2] for g in ("a", "b", "none")] for k in range(400)])
    noise = draws - np.array([[270, 30], [30, 30], [0, 0]])
    ratio = math.exp(-1)
    # All cells of all reports are independent draws of one law.
    k = np.arange(-60, 61)

    def law(ratio: float, at: int = 0) -> dict[int, float]:
        return dict(
            zip(k.tolist(), ((1 - ratio) / (1 + ratio) * ratio ** np.abs(k - at)).tolist(), strict=True)
        )

    accepts_only(
        frequencies(Counter(noise.ravel().tolist())),
        law(ratio),
        wider=law(ratio ** (1 / 1.25)),
        narrower=law(ratio**1.4),
        for_half_the_epsilon=law(math.exp(-0.5)),
        shifted=law(ratio, 1),
    )
    cells = noise.reshape(400, -1)
    shared = (cells[:, :1] == cells[:, 1:]).ravel()
    alike = (1 - ratio) ** 2 / (1 + ratio) ** 2 * (1 + ratio**2) / (1 - ratio**2)
    for column in shared.reshape(400, -1).T:
        accepts_only(
            rate(int(column.sum()), 400), alike, one_draw_for_all=1.0, half_are_shared=(1 + alike) / 2
        )


def test_the_reach_is_the_tail_of_the_law() -> None:
    for scale, risk in ((1.0, 0.01), (20.0, 1e-4), (0.01, 0.1)):
        ratio = math.exp(-1 / scale)
        beyond = [2 * ratio ** (t + 1) / (1 + ratio) for t in range(400)]
        assert all(x > y or y == 0 for x, y in pairwise(beyond))
        reach = _reach(scale, risk)
        assert beyond[reach] <= risk
        assert reach < 2 or beyond[reach - 2] > risk


def test_intervals_cover_all_together() -> None:
    """Where the noise of all four cells is within the reach at once, the truth is in every interval."""
    scale, reach = 5.0, _reach(5.0, 0.3 / 4)
    found = told(confidence=0.7, epsilon=1 / scale, public_groups=["a", "b"])
    assert [g.accuracy for g in found.groups.values()] == [
        _share(g.right, g.wrong, reach) for g in found.groups.values()
    ]
    noise = range(-reach, reach + 1)
    groups = [{_share(r + a, w + b, reach) for a in noise for b in noise} for r, w in ((270, 30), (30, 30))]
    for truth, shares in zip((0.9, 0.5), groups, strict=True):
        assert all(share.lower <= truth <= share.upper for share in shares)
    ends = [[max(shares, key=lambda s: sign * (s.lower + s.upper)) for sign in (1, -1)] for shares in groups]
    for gap in (_gap(pair) for pair in product(*ends)):
        assert gap.lower <= 0.4 <= gap.upper
    # Without its share of the risk for each cell, or at half the scale, it would be too short.
    ratio = math.exp(-1 / scale)
    covered = [
        (1 - 2 * ratio ** (each + 1) / (1 + ratio)) ** 4
        for each in (reach, _reach(scale, 0.3), _reach(scale / 2, 0.3 / 4))
    ]
    assert covered[0] > 0.7 > max(covered[1:])


def test_the_gap_is_found() -> None:
    found = told(right=np.tile(RIGHT, 50), groups=np.tile(GROUPS, 50), public_groups=["a", "b"])
    assert 0.35 < found.gap.lower <= 0.4 <= found.gap.upper < 0.45
    assert "b: accuracy 0.4" in str(found)


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open(
        None,
        budget=Budget.approximate(epsilon=1.0, delta=1e-5),
        privacy_unit="patient",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="patients(x DOUBLE)", fingerprint=lambda key: "0" * 64),
    ) as opened:
        yield opened


def test_it_is_charged_before_the_data_is_looked_at(ledger: Ledger) -> None:
    found = told(ledger=ledger, epsilon=0.6, rng=None)
    assert found.receipt is not None
    assert not found.simulated
    with pytest.raises(BudgetExceeded):
        told(ledger=ledger, epsilon=0.6, rng=None)
    with pytest.raises(ParameterError):
        told(ledger=ledger, epsilon=0.1, rng=None, groups=GROUPS[:-1])
    (entry,) = ledger.entries()
    assert entry.loss == found.loss


@cases(
    ("changed", "says"),
    [
        ({"right": RIGHT.astype(int)}, "right must be a bool array"),
        ({"groups": GROUPS[:-1]}, "groups must have one entry for each example"),
        ({"public_groups": []}, "public_groups must be distinct"),
        ({"public_groups": ["a", "a"]}, "public_groups must be distinct"),
        ({"public_groups": [("a", "b")]}, "public_groups must be single values"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"confidence": 1.0}, "confidence must be strictly"),
    ],
)
def test_bad_input_is_told(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        told(**changed)


@cases(("right", "wrong", "off"), [(9, 4, 3), (2, 5, 3), (5, 2, 3), (-4, 6, 3), (1, 1, 0)])
def test_an_accuracy_s_interval_is_that_of_all_counts_so_near(right: int, wrong: int, off: int) -> None:
    near = [
        x / (x + y)
        for x in range(max(0, right - off), max(0, right + off) + 1)
        for y in range(max(0, wrong - off), max(0, wrong + off) + 1)
        if x + y
    ]
    found = _share(right, wrong, off)
    assert found.lower <= min(near)
    assert found.upper >= max(near)
    assert found.lower == pytest.approx(min(near))
    assert found.upper == pytest.approx(max(near))


def test_all_cells_share_the_risk() -> None:
    found = told(epsilon=0.5, confidence=0.9)
    ratio = math.exp(-0.5)
    off = next(t for t in range(100) if 2 * ratio ** (t + 1) / (1 + ratio) <= 0.1 / 6)
    row = found.groups["a"]
    least = (row.right - off) / (row.right + row.wrong)
    assert row.accuracy.lower == pytest.approx(least, abs=0.005)
    assert row.accuracy.lower <= least


def test_one_odd_entry_of_a_list_moves_no_other_example() -> None:
    groups: list[Any] = [1, 2] * 50
    one, other = (
        group_accuracies(np.full(100, True), given, public_groups=[1, 2], epsilon=1.0, rng=1)
        for given in ([*groups[:-1], "x"], [*groups[:-1], 3])
    )
    assert one.groups == other.groups
    assert one.groups[1].right > 20


def test_a_ledgers_path_is_no_ledger() -> None:
    with pytest.raises(ParameterError, match="ledger must be an open ledger"):
        group_accuracies(np.ones(2, bool), ["a", "b"], public_groups=["a"], epsilon=1.0, ledger="x")  # type: ignore[arg-type]
