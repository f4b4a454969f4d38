"""The ladder: its steps by a loop, its transcripts by walking them, and an attack that gains little."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest

from sfumato.adaptive import Ladder, ladder_bound
from sfumato.errors import ParameterError


def shown(means: list[float], step: float) -> list[float]:
    """Return what a board shows, on a test set of 1,000 rows whose losses have these means."""
    board = Ladder(np.zeros(1000), step=step)
    losses = [np.arange(1000) < 1000 * mean for mean in means]
    return [board.submit(partial(np.logical_or, loss)) for loss in losses]


def test_only_a_whole_step_moves_it() -> None:
    assert shown([0.52, 0.49, 0.43, 0.38, 0.4, 0.08, 1.0], 0.1) == pytest.approx(
        [0.5, 0.5, 0.5, 0.4, 0.4, 0.1, 0.1], abs=1e-9
    )
    assert repr(Ladder(np.zeros(3), step=0.25)) == "Ladder(step=0.25, 0 submissions)"


def test_what_is_shown_is_within_a_step_of_the_best() -> None:
    rng = np.random.default_rng(5)
    for step in (0.03, 0.2):
        means = rng.random(200).round(3).tolist()
        for at, best in enumerate(shown(means, step)):
            assert abs(best - min(means[: at + 1])) <= step + 1e-9


def test_transcripts_are_counted() -> None:
    """All sequences that a board of step 1/2 can show, from submissions with any mean."""
    step, rows = 0.5, 10_000
    for submissions in (1, 2, 4):
        sequences = {
            tuple(shown(list(means), step)[: submissions - 1])
            for means in itertools.product([0.0, 0.2, 0.3, 0.49, 0.6, 0.8, 1.0], repeat=submissions)
        }
        prefixes = {sequence[:length] for sequence in sequences for length in range(submissions)}
        bound = ladder_bound(rows=rows, submissions=submissions, step=step, beta=0.05)
        log_count = bound.parts["log of the queries that can be asked"]
        assert len(prefixes) <= math.exp(log_count)
        assert bound.error == pytest.approx(
            step + math.sqrt((log_count + math.log(40)) / (2 * rows)), rel=1e-4
        )


def test_random_submissions_climb_a_plain_board_and_not_the_ladder() -> None:
    n, tries = 400, 400
    rng = np.random.default_rng(3)
    labels, guesses = rng.random(n) < 0.5, rng.random((tries, n)) < 0.5
    losses = (guesses != labels).mean(axis=1)
    best = int(losses.argmin())
    assert losses[best] < 0.45  # what a board with all digits would show, of coins
    board = Ladder(labels, step=0.1)
    told = [board.submit(partial(np.not_equal, guess)) for guess in guesses]
    helpful = guesses[np.flatnonzero(np.diff(told, prepend=1.0))]
    majority = helpful.mean(axis=0) > 0.5
    fresh = rng.random(n) < 0.5
    assert abs((majority != fresh).mean() - 0.5) < 0.15
    assert told[-1] >= 0.4


def test_bad_parameters_are_refused() -> None:
    for call, message in (
        (lambda: Ladder([], step=0.1), "test_set"),
        (lambda: Ladder([1], step=0.0), "step"),
        (lambda: Ladder([1], step=0.7), "from 0.0001 to 0.5"),
        (lambda: Ladder([1], step=1e-5), "from 0.0001 to 0.5"),
        (lambda: ladder_bound(rows=10, submissions=0, step=0.1, beta=0.1), "submissions"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
