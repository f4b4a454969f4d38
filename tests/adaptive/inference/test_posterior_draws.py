"""Summaries of draws: intervals, functions of them, and how many independent ones they are worth."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.adaptive import PosteriorDraws
from sfumato.errors import ParameterError


def test_summaries_of_known_draws() -> None:
    values = np.stack([np.arange(101.0), np.full(101, 3.0)], axis=1)
    draws = PosteriorDraws(values=values, names=("a", "b"))
    assert draws.mean.tolist() == [50.0, 3.0]
    assert draws.stddev == pytest.approx([np.sqrt(101 * 102 / 12), 0.0])
    lower, upper, _ = draws.credible_interval(0.8)
    assert lower == pytest.approx([10.0, 3.0])
    assert upper == pytest.approx([90.0, 3.0])
    difference = draws.map(lambda row: row[0] - row[1], ("difference",))
    assert (difference.names, difference.mean.tolist()) == (("difference",), [47.0])
    assert draws.effective_draws[1] == 101
    with pytest.raises(ValueError, match="read-only"):
        draws.values[0, 0] = 1.0


def test_effective_draws_of_independent_and_of_dependent_ones() -> None:
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((20_000, 2))
    walk = np.zeros(20_000)
    for i in range(1, 20_000):
        walk[i] = 0.8 * walk[i - 1] + noise[i, 1]
    free, bound = PosteriorDraws(
        values=np.stack([noise[:, 0], walk], axis=1), names=("x", "y")
    ).effective_draws
    assert free == pytest.approx(20_000, rel=0.1)
    # Correlations of 0.8, 0.64 and so on add up to (1 + 0.8) / (1 - 0.8) = 9.
    assert bound == pytest.approx(20_000 / 9, rel=0.2)


def test_other_shapes_are_refused() -> None:
    for values, names in ((np.zeros(3), ("a",)), (np.zeros((3, 2)), ("a",)), (np.zeros((1, 1)), ("a",))):
        with pytest.raises(ParameterError, match="one column for each name"):
            PosteriorDraws(values=values, names=names)
    with pytest.raises(ParameterError, match="level"):
        PosteriorDraws(values=np.zeros((2, 1)), names=("a",)).credible_interval(1.0)
