"""Scoreboard-RH: scores by hand, users who are found, and users who are not there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.attack_linkage import ECCENTRICITY, known_ratings, rating_matrix, without
from sfumato.attacks import KnownRatings, RatingMatrix, ScoreboardLinkage
from sfumato.errors import ParameterError
from sfumato.privacy import PureDP
from tests.cases import cases

KNOWN = KnownRatings(np.array([0]), np.array([1.0]), np.array([1.0]))


def test_scores_are_the_papers() -> None:
    rng = np.random.default_rng(2)
    users, items = rng.integers(0, 30, 200), rng.integers(0, 8, 200)
    values, days = rng.integers(1, 6, 200), rng.integers(0, 90, 200)
    matrix = RatingMatrix.of(users=users, items=items, values=values, days=days)
    known = KnownRatings(np.array([0, 3, 5]), np.array([4.0, 2.0, 5.0]), np.array([10.0, 40.0, 70.0]))
    scores = np.zeros(matrix.count)
    for item, value, day in zip(*known, strict=True):
        part = slice(matrix.starts[int(item)], matrix.starts[int(item) + 1])
        raters = matrix.users[part]
        assert len(set(raters.tolist())) == len(raters)
        for user, rated, when in zip(raters, matrix.values[part], matrix.days[part], strict=True):
            similar = math.exp(-abs(rated - value) / 1.5) + math.exp(-abs(when - day) / 30)
            scores[user] += similar / math.log(len(raters))
    found = ScoreboardLinkage(targets=[known]).run(matrix)
    best, second = np.sort(scores)[::-1][:2]
    assert found.targets.guesses[0] == scores.argmax()
    assert found.targets.scores[0] == pytest.approx((best - second) / scores.std(), rel=1e-5)


def test_users_are_found_by_eight_ratings_and_absent_ones_are_not() -> None:
    rng = np.random.default_rng(1)
    # the density of 100 million ratings of 480,000 users and 17,770 items, with less of both
    matrix = rating_matrix(16_000, 1_777, 333_000, rng)
    known, users = known_ratings(matrix, 200, rng)
    found = ScoreboardLinkage(targets=known[:100], eccentricity=ECCENTRICITY).run(
        without(matrix, users[100:]), truth=users[:100], controls=known[100:]
    )
    assert found.targets.hits is not None
    assert found.controls is not None
    assert found.targets.hits > 0.9 * 100
    assert found.targets.hits > 0.95 * found.targets.claims
    assert found.controls.claims < 0.05 * 100


def test_the_only_user_is_found() -> None:
    matrix = RatingMatrix.of(users=[0, 0], items=[0, 1], values=[1, 5], days=[1, 9])
    assert ScoreboardLinkage(targets=[KNOWN]).run(matrix).targets.guesses.tolist() == [0]


def test_controls_who_have_no_row_bound_no_links() -> None:
    # A user is found in a release of no loss, and a control is never right: no bound may say otherwise.
    matrix = RatingMatrix.of(users=[0, 0, 1], items=[0, 1, 1], values=[1, 5, 5], days=[1, 9, 9])
    found = ScoreboardLinkage(targets=[KNOWN]).run(
        matrix, truth=[0], controls=[KNOWN] * 50, exchangeable=True, loss=PureDP(0.0)
    )
    assert found.targets.hits == 1
    assert found.bounds == ()
    assert "a control has no row" in str(found)


@cases(
    "make, found",
    [
        (lambda: ScoreboardLinkage(targets=[]), "targets must be at least one"),
        (lambda: ScoreboardLinkage(targets=[1], eccentricity=-1), "eccentricity must be"),  # type: ignore[list-item]
        (lambda: run([9]), "known items must be at least one, and of the release"),
        (lambda: run([]), "known items must be at least one, and of the release"),
        (lambda: ScoreboardLinkage(targets=[KNOWN]).run(3), "release must be a RatingMatrix"),
        (lambda: RatingMatrix.of(users=[0.5], items=[1], values=[1], days=[1]), "whole numbers from 0"),
        (lambda: RatingMatrix.of(users=[-1], items=[1], values=[1], days=[1]), "numbered from 0"),
    ],
    ids=[str(place) for place in range(7)],
)
def test_bad_input_is_refused(make: Callable[[], object], found: str) -> None:
    with pytest.raises(ParameterError, match=found):
        make()


def run(items: list[int]) -> Any:
    matrix = RatingMatrix.of(users=[0, 1], items=[0, 1], values=[3, 4], days=[1, 2])
    size = len(items)
    known = KnownRatings(np.array(items, dtype=np.int64), np.ones(size), np.ones(size))
    return ScoreboardLinkage(targets=[known]).run(matrix)
