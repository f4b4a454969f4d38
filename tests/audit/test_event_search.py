"""Of many pairs a part of the runs finds the few that are run in full; other runs count."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from sfumato.audit import audit, score_pairs
from sfumato.mechanisms import Exponential, NoisyMax
from tests.cases import cases
from tests.chance import accepts_only, unrefuted


def test_the_worst_of_many_pairs_is_found_with_few_runs_of_the_others() -> None:
    noise = np.random.default_rng(1)
    runs: Counter[float] = Counter()

    def mechanism(datum: float, size: int) -> Any:
        runs[datum] += size
        return datum + noise.laplace(size=size)

    pairs = [(0.0, 0.1 * k) for k in (1, 2, 3, 9, 4, 5, 6, 7, -1, -2)]
    found = audit(mechanism, epsilon=0.5, pairs=pairs, trials=16_000)
    assert found.violated
    assert {found.pair.first, found.pair.second} == {0.0, 0.9}
    assert runs[0.9] > 16_000 * 0.9
    assert runs[0.1] <= 2000


SELECTIONS: dict[str, tuple[Any, dict[str, Any], float]] = {
    "exponential": (Exponential, {}, 0.62),
    "noisy max": (NoisyMax, {}, 0.7),
    "exponential, monotone": (Exponential, {"monotone": True}, 0.62),
}


@cases("name", list(SELECTIONS))
def test_selections_are_tried_where_a_candidate_trails_by_the_noise(name: str) -> None:
    """Of pairs with equal scores alone, .51 of the exponential mechanism's epsilon was certified."""
    kind, given, part = SELECTIONS[name]
    mechanism = kind.calibrated(sensitivity=1, epsilon=1.0, **given)
    found = audit(mechanism, epsilon=1.0, trials=40_000, rng=1)
    accepts_only(unrefuted(found.epsilon_lower), 1.0, part=part)


def test_a_choice_by_place_is_found_at_the_last_candidate_too() -> None:
    """A tie goes to the last candidate for sure: only where it alone rises does that show."""
    noise = np.random.default_rng(1)

    def careless(scores: Any, size: int) -> Any:
        noisy = scores + noise.laplace(0.0, 2.0, (size, len(scores)))
        return np.where((scores[-1] > scores[:-1]).all(), len(scores) - 1, noisy.argmax(axis=1))

    assert audit(careless, epsilon=1.0, pairs=score_pairs(3, 1), trials=20_000).violated
