"""Scores against scikit-learn's, and classifiers that record which rows they were given."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from sfumato.errors import MissingExtra, ParameterError
from sfumato.synthetic import Categorical, Ordered, TableDomain
from sfumato.synthetic.quality.distinguishability import distinguishability
from sfumato.synthetic.quality.prediction import (
    as_classifier,
    class_probabilities,
    prediction_scores,
    roc_auc,
    trained_and_tested,
)
from tests.run_time import run_time

if run_time(__name__):
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, f1_score, roc_auc_score


class Recorder:
    """Predicts the frequencies of the classes, and appends what it was given to a list that copies share."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.sizes: list[int] = []

    def __deepcopy__(self, memo: Any) -> Recorder:
        copied = Recorder()
        copied.calls, copied.sizes = self.calls, self.sizes
        return copied

    def fit(self, features: Any, classes: Any) -> None:
        self.classes_, counts = np.unique(classes, return_counts=True)
        self.shares, self.trained = counts / counts.sum(), {tuple(row) for row in features.tolist()}
        self.sizes.append(len(features))

    def predict_proba(self, features: Any) -> Any:
        self.calls.append((self.trained, {tuple(row) for row in features.tolist()}))
        return np.tile(self.shares, (len(features), 1))


def test_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    for size in (2, 4):
        truth = rng.integers(0, size, 300)
        raw = np.round(rng.random((300, size)) + 0.5 * np.eye(size)[truth], 1)
        probabilities = raw / raw.sum(axis=1, keepdims=True)
        guess = probabilities.argmax(axis=1)
        found = prediction_scores(truth, probabilities)
        assert found.accuracy == accuracy_score(truth, guess)
        if size == 2:
            assert found.auc == pytest.approx(roc_auc_score(truth, probabilities[:, 1]), abs=1e-12)
            assert found.f1 == pytest.approx(f1_score(truth, guess), abs=1e-12)
        else:
            assert found.auc == pytest.approx(
                roc_auc_score(truth, probabilities, multi_class="ovr"), abs=1e-12
            )
            assert found.f1 == pytest.approx(f1_score(truth, guess, average="macro"), abs=1e-12)
        assert 0.5 < found.auc < 1


def test_the_area_is_how_often_a_positive_row_is_ahead() -> None:
    rng = np.random.default_rng(1)
    scores, positive = rng.integers(0, 5, 60) / 5, rng.random(60) < 0.4
    pairs = [(a > b) + (a == b) / 2 for a in scores[positive] for b in scores[~positive]]
    assert roc_auc(positive, scores) == pytest.approx(np.mean(pairs), abs=1e-12)
    assert math.isnan(roc_auc(np.ones(3, bool), np.zeros(3)))


def test_scores_without_rows_or_with_one_class() -> None:
    none = np.zeros((0, 2), np.int64)
    some = np.array([[0, 1], [1, 1], [0, 0]])
    assert all(map(math.isnan, prediction_scores(none[:, 0], np.zeros((0, 2)))))
    for train, test in ((none, some), (some, none)):
        assert all(map(math.isnan, trained_and_tested(Recorder(), train, test, 1, 2)))
    alone = trained_and_tested(Recorder(), some[:2], some, 1, 2)
    assert (alone.accuracy, alone.auc, alone.f1) == (2 / 3, 0.5, 0.8)
    assert math.isnan(prediction_scores(np.ones(3, np.int64), np.full((3, 2), 0.5)).auc)


def test_the_target_is_predicted_from_the_other_columns_of_rows_held_out() -> None:
    rng = np.random.default_rng(2)
    train, test = (np.stack([x, 1 - x, x], axis=1) for x in (rng.integers(0, 2, 200), rng.integers(0, 2, 50)))
    train[:, 1] = rng.integers(0, 2, 200)
    recorder = Recorder()
    trained_and_tested(recorder, train, test + 0, 1, 2)
    ((trained, asked),) = recorder.calls
    assert trained == {(0, 0), (1, 1)}
    assert asked == {(0, 0), (1, 1)}
    perfect = trained_and_tested(LogisticRegression(), test, test, 1, 2)
    assert perfect == (1.0, 1.0, 1.0)
    assert 0.3 < trained_and_tested(LogisticRegression(), train, test, 1, 2).accuracy < 0.7


def test_a_class_that_was_not_trained_on_has_no_probability() -> None:
    features, classes = np.arange(6)[:, None], np.array([0, 2, 0, 2, 2, 2])
    found = class_probabilities(LogisticRegression(), features, classes, features[:3], 4)
    assert found.shape == (3, 4)
    assert not found[:, [1, 3]].any()
    assert found.sum(axis=1) == pytest.approx(1)


def test_no_row_is_judged_by_a_classifier_that_was_trained_on_it() -> None:
    rows, held_out = np.arange(0, 40)[:, None], np.arange(100, 130)[:, None]
    recorder = Recorder()
    found = distinguishability(recorder, rows, held_out, np.random.default_rng(0))
    asked = [asked for _, asked in recorder.calls]
    assert len(asked) == 3
    assert sum(map(len, asked)) == 60 == len(set.union(*asked))
    assert all(not trained & asked for trained, asked in recorder.calls)
    assert all(len(trained & {(n,) for n in range(40)}) == 20 for trained, _ in recorder.calls)
    assert found == (0.5, 0.0)


def test_rows_that_are_always_distinguished_and_rows_of_one_distribution() -> None:
    rng = np.random.default_rng(3)
    apart = distinguishability(
        LogisticRegression(C=1e6), rng.integers(0, 5, (300, 2)), rng.integers(9, 14, (300, 2)), rng
    )
    assert apart.auc == 1
    assert apart.pmse > 0.24
    alike = distinguishability(
        LogisticRegression(), rng.integers(0, 5, (600, 2)), rng.integers(0, 5, (600, 2)), rng
    )
    assert abs(alike.auc - 0.5) < 0.1
    assert alike.pmse < 0.01
    few = distinguishability(Recorder(), np.zeros((6, 1), int), np.zeros((9, 1), int), rng)
    assert few == (0.5, 0.0)
    assert all(
        map(math.isnan, distinguishability(Recorder(), np.zeros((5, 1), int), np.zeros((9, 1), int), rng))
    )


def test_the_classifier_is_scikit_learns_or_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = TableDomain(
        a=Categorical(["f", "m"]), b=Ordered.integers(0, 9), c=Categorical([f"{n}" for n in range(300)])
    )
    model = as_classifier(None, domain, [0, 1, 2], 7)
    assert model.categorical_features == [True, False, False]
    assert model.random_state == 7
    with pytest.raises(
        ParameterError, match="classifier must have fit and predict_proba, got a value of type str"
    ):
        as_classifier("trees", domain, [0], 7)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtra, match=r"sfumato\[scikit-learn\]"):
        as_classifier(None, domain, [0], 7)
    assert as_classifier(recorder := Recorder(), domain, [0], 7) is recorder
