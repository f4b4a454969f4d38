"""The reusable holdout in scikit-learn's searches: it never trains, and copies share it."""

from __future__ import annotations

import copy
from pickle import PicklingError
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.adaptive import ReusableHoldout, ReusableScorer, Thresholdout, TrainOnAll
from sfumato.errors import ParameterError
from tests.run_time import run_time

if run_time(__name__):
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV


def halves(rows: int = 2000) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2 * rows, 5))
    y = (x[:, 0] + rng.normal(size=2 * rows) > 0).astype(int)
    return (x[:rows], y[:rows]), (x[rows:], y[rows:])


class Model:
    level = 0.25


def test_a_search_is_scored_by_the_holdout_and_trained_without_it() -> None:
    train, held = halves()
    plan = Thresholdout(rows=2000, noise=0.002, overfits=5, queries=20)
    scorer = ReusableScorer(ReusableHoldout(train, held, plan, rng=1))
    grid = {"C": [1e-4, 0.1, 1.0]}
    search = GridSearchCV(
        LogisticRegression(), grid, scoring=scorer, cv=TrainOnAll(), return_train_score=True
    )
    clone(search).fit(*train)  # a clone has the same budget
    assert scorer.holdout.asked == 3  # scoring the training set again costs nothing
    search.fit(*train)
    assert scorer.holdout.asked == 6
    assert search.n_features_in_ == 5
    right = float((search.best_estimator_.predict(train[0]) == train[1]).mean())
    assert search.best_score_ == pytest.approx(right, abs=1e-6)
    direct = LogisticRegression(**search.best_params_).fit(*train)
    assert np.allclose(search.best_estimator_.coef_, direct.coef_)
    parallel = GridSearchCV(LogisticRegression(), grid, scoring=scorer, cv=TrainOnAll(), n_jobs=2)
    with pytest.raises(PicklingError) as caught:
        parallel.fit(*train)
    assert "pass n_jobs=1" in str(caught.value.__cause__)
    assert scorer.holdout.asked == 6


def test_scores_are_the_callers_and_copies_share_the_budget() -> None:
    train, held = halves(500)
    plan = Thresholdout(rows=500, noise=0.002, overfits=5, queries=20)
    scorer = ReusableScorer(
        ReusableHoldout(train, held, plan, rng=1), score=lambda model, x, y: np.full(len(y), model.level)
    )
    assert copy.deepcopy(scorer) is scorer

    model = Model()
    assert scorer(model) == scorer(model) == 0.25
    assert scorer.holdout.asked == 1
    assert scorer(Model()) == 0.25
    assert scorer.holdout.asked == 2
    assert scorer(model) == 0.25
    model.level = 0.75  # fitted again
    assert scorer(model) == scorer(model) == 0.75
    assert scorer.holdout.asked == 4

    class Local(Model):
        pass

    local = Local()
    assert scorer(local) == scorer(local) == 0.25
    assert scorer.holdout.asked == 6
    assert "14" in repr(scorer)
    assert "19" not in repr(scorer)
    with pytest.raises(ParameterError, match="ReusableHoldout"):
        ReusableScorer(train)
    with pytest.raises(ParameterError, match="callable"):
        ReusableScorer(scorer.holdout, score=3)  # type: ignore[arg-type]
    assert TrainOnAll().get_n_splits() == 1
    for rows in ([[1], [2], [3]], np.zeros((3, 7)), pa.table({"x": [1, 2, 3]})):
        ((fitted, tested),) = TrainOnAll().split(rows)
        assert fitted.tolist() == tested.tolist() == [0, 1, 2]
