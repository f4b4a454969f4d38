"""scikit-learn's own checks, with every one that is not met and the reason."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato.learning.estimators.boosted_trees import GradientBoostingClassifier, GradientBoostingRegressor
from sfumato.learning.estimators.gaussian_nb import GaussianNB
from sfumato.learning.estimators.kmeans import KMeans
from sfumato.learning.estimators.linear_regression import LinearRegression
from sfumato.learning.estimators.logistic_regression import LogisticRegression
from sfumato.learning.estimators.pca import PCA
from sfumato.learning.estimators.standard_scaler import StandardScaler

# The checks' data have some dozens of rows: only little noise leaves the scores that they ask for.
LITTLE: dict[str, Any] = {"epsilon": 1e7, "delta": 1e-3, "random_state": 0}
ESTIMATORS = [
    LogisticRegression(**LITTLE, bounds=(-4, 4), clip_norm=20.0, steps=150, learning_rate=4.0),
    LogisticRegression(**LITTLE, bounds=(-4, 4), classes=None, solver="objective", data_norm=3.0),
    LinearRegression(**LITTLE, bounds=(-10, 10), y_bounds=(-500, 500)),
    GaussianNB(**LITTLE, bounds=(-10, 10)),
    KMeans(3, **LITTLE, bounds=(-4, 4), steps=12),
    PCA(**LITTLE, bounds=(-10, 10)),
    StandardScaler(**LITTLE),
    GradientBoostingClassifier(**LITTLE, bounds=(-3, 3), n_estimators=150),
    GradientBoostingRegressor(**LITTLE, bounds=(-3, 3), y_bounds=(-300, 300), n_estimators=150),
]

EMPTY = "no rows are data too: they give a private model, and an error would tell that there are none"
OBJECT = "what is no number counts as NaN, and an error would tell of it"
NAN = "a NaN or infinite answer is counted by a fixed rule, and an error would tell of it"


def not_met(estimator: Any) -> dict[str, str]:
    """The checks that contradict what an error may tell."""
    found = {"check_estimators_empty_data_messages": EMPTY, "check_dtype_object": OBJECT}
    if get_tags(estimator).target_tags.required:
        found["check_supervised_y_no_nan"] = NAN
    return found


@pytest.mark.filterwarnings("ignore")  # undeclared classes, and what the checks themselves warn of
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=not_met)  # type: ignore[untyped-decorator]
def test_check(estimator: Any, check: Any) -> None:
    check(estimator)
