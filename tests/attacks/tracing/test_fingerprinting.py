"""Tardos's code accuses colluders and no one else; the epsilon of the experiment is never too large."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato import attacks
from sfumato.errors import ParameterError
from sfumato.mechanisms import Laplace
from tests.cases import cases

CODE = attacks.TardosCode(users=3, false_accusation=0.01)

STRATEGIES: dict[str, Any] = {
    "majority": lambda rows, rng: rows.mean(axis=0) > 0.5,
    "all ones": lambda rows, rng: rows.any(axis=0),
    "all zeros": lambda rows, rng: rows.all(axis=0),
    "minority": lambda rows, rng: np.where(np.isin(rows.sum(axis=0), (0, 3)), rows[0], rows.sum(axis=0) == 1),
    "any of them": lambda rows, rng: rows[rng.integers(0, 3, rows.shape[1]), np.arange(rows.shape[1])],
}


@cases("strategy", STRATEGIES)
def test_colluders_are_accused_whatever_they_do_and_strangers_are_not(strategy: str) -> None:
    """Of 60 words; a stranger is accused with a chance below .01, so of 60 more than 8 with below 1e-8."""
    generator = np.random.default_rng(1)
    traced = innocent = 0
    for _ in range(60):
        book = CODE.draw(generator)
        word = STRATEGIES[strategy](book.rows, generator)
        traced += bool(CODE.accused(book, word).any())
        fresh = attacks.Codebook(book.biases, generator.random((1, CODE.columns)) < book.biases)
        innocent += bool(CODE.accused(fresh, word)[0])
    assert CODE.missed == pytest.approx(0.01**0.75)
    assert traced >= 55
    assert innocent <= 8


def test_a_stranger_scores_as_in_the_proof() -> None:
    """Mean zero, and variance the number of ones: each term has variance one."""
    generator = np.random.default_rng(2)
    book = CODE.draw(generator)
    word = generator.random(CODE.columns) < 0.5
    rows = generator.random((2000, CODE.columns)) < book.biases
    odds = np.sqrt((1 - book.biases) / book.biases)
    scores = np.where(rows, odds, -1 / odds) @ word
    assert abs(scores.mean()) < 6 * np.sqrt(word.sum() / 2000)
    assert scores.var() == pytest.approx(word.sum(), rel=0.25)
    k = 5  # ln 100, rounded up
    assert (CODE.accused(attacks.Codebook(book.biases, rows), word) == (scores > 20 * 3 * k)).all()
    assert CODE.columns == 100 * 9 * k


def test_accuracy_beyond_the_threshold_implies_tracing_and_an_epsilon_that_the_mechanism_has() -> None:
    """Laplace noise on the counts of 3 users: what is proved stays below the mechanism's own epsilon."""
    generator = np.random.default_rng(3)
    proved = []
    for scale in (0.05, 0.5, 2000.0):
        mechanism = Laplace(sensitivity=1, l0=CODE.columns, scale=scale)

        def answer(rows: Any, mechanism: Laplace = mechanism) -> Any:
            return mechanism.release(rows.sum(axis=0), rng=generator).value / 3

        report = attacks.fingerprinting_experiment(answer, CODE, runs=60, rng=4)
        assert report.epsilon_lower < 2 * mechanism.privacy_loss.epsilon(0.0)
        assert report.strangers.lower <= CODE.false_accusation
        proved.append(report)
    accurate, rough, private = proved
    assert accurate.accurate.lower > 0.9
    assert accurate.traced.lower > 0.9
    assert accurate.epsilon_lower > 3
    assert rough.accurate.upper < 0.1  # out of the theorem's reach, and traced all the same
    assert private.traced.upper < 0.2
    assert private.epsilon_lower == 0
    assert "some user is traced" in str(private)


def test_the_epsilon_is_that_of_the_chance_of_one_user_with_six_ends_of_intervals() -> None:
    """All of 20 runs are traced: Clopper and Pearson's bound is risk^(1/20)."""
    report = attacks.fingerprinting_experiment(
        lambda rows: rows.mean(axis=0), CODE, runs=20, delta=0.05, confidence=0.94
    )
    assert report.traced.upper == 1
    assert report.traced.lower == pytest.approx(0.01 ** (1 / 20), abs=1e-5)
    expected = np.log((0.01 ** (1 / 20) / 3 - 0.05) / 0.01)
    assert expected - 1e-4 < report.epsilon_lower < expected
    # Where strangers are accused as often as users, nothing is proved.
    careless = attacks.TardosCode(users=2, false_accusation=0.9)
    assert attacks.fingerprinting_experiment(lambda rows: rows[0], careless, runs=20).epsilon_lower == 0


def test_bad_input_is_refused() -> None:
    book = CODE.draw(1)
    for make in (
        lambda: attacks.TardosCode(users=0),
        lambda: attacks.TardosCode(users=2, coalition=0),
        lambda: attacks.TardosCode(users=2, false_accusation=1.0),
        lambda: CODE.accused(book, book.rows[0, :5]),
        lambda: CODE.accused(book, book.rows[0].astype(int)),
        lambda: attacks.fingerprinting_experiment(lambda rows: rows[0, :3], CODE, runs=1),
        lambda: attacks.fingerprinting_experiment(lambda rows: rows[0], CODE, runs=0),
    ):
        with pytest.raises(ParameterError):
            make()
