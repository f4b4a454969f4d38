"""What a classifier that was trained on synthetic rows is worth on real rows that nobody trained on."""

from __future__ import annotations

import copy
import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import MissingExtra
from sfumato.synthetic.domain.attributes import Categorical, Codes
from sfumato.synthetic.domain.domain import TableDomain

__all__ = [
    "PredictionScores",
    "as_classifier",
    "class_probabilities",
    "prediction_scores",
    "roc_auc",
    "some_rows",
    "trained_and_tested",
]

_CATEGORIES: Final = 255  # the most that scikit-learn's boosted trees take as categories
_REMEDY: Final = "pass a classifier of scikit-learn, or leave it out"


class PredictionScores(NamedTuple):
    """How well a column is predicted in rows that were held out.

    Attributes
    ----------
    accuracy : float
    auc : float
        Area under the ROC curve; of several classes the mean over one against the rest. NaN where the
        held-out rows are of one class.
    f1 : float
        Of the second of two classes; of several the mean over those that are in the held-out rows.

    Examples
    --------
    >>> PredictionScores(accuracy=0.85, auc=0.9, f1=0.65).auc
    0.9
    """

    accuracy: float
    auc: float
    f1: float


def as_classifier(given: Any, domain: TableDomain, features: list[int], seed: int) -> Any:
    """Return what is to be trained: the classifier given, or scikit-learn's gradient boosted trees.

    Parameters
    ----------
    given : classifier or None
    domain : TableDomain
    features : list of int
        The columns that it is given.
    seed : int

    Raises
    ------
    MissingExtra
        If none is given and scikit-learn is absent.
    """
    if given is not None:
        if not (callable(getattr(given, "fit", None)) and callable(getattr(given, "predict_proba", None))):
            _check.refuse_type("classifier", "have fit and predict_proba", given, _REMEDY)
        return given
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - an optional library
    except ImportError as missing:
        raise MissingExtra(
            "classifiers need scikit-learn; pip install 'sfumato[scikit-learn]', or pass classifier="
        ) from missing
    columns = [list(domain.values())[place] for place in features]
    categories = [isinstance(each, Categorical) and each.size <= _CATEGORIES for each in columns]
    return HistGradientBoostingClassifier(
        categorical_features=categories, early_stopping=False, random_state=seed
    )


def some_rows(codes: Codes, most: int, generator: np.random.Generator) -> Codes:
    """Return at most so many rows, drawn without replacement."""
    return codes if len(codes) <= most else codes[generator.permutation(len(codes))[:most]]


def class_probabilities(
    classifier: Any, features: Codes, classes: NDArray[np.int64], asked: Codes, size: int
) -> NDArray[np.float64]:
    """Train a copy of a classifier, and return its probabilities of each class.

    Parameters
    ----------
    classifier : classifier
        It is not changed.
    features : int64 array of shape (rows, columns)
    classes : int64 array of shape (rows,)
        Of these rows, from 0 to ``size`` - 1.
    asked : int64 array of shape (others, columns)
    size : int

    Returns
    -------
    float64 array of shape (others, size)
        0 for a class that was not trained on.
    """
    found, seen = np.zeros((len(asked), size)), np.unique(classes)
    if len(seen) == 1 or not features.shape[1]:
        found[:] = np.bincount(classes, minlength=size) / len(classes)
        return found
    if len(asked):
        model = copy.deepcopy(classifier)
        with _one_thread():
            model.fit(features, classes)
            found[:, np.asarray(model.classes_, np.int64)] = model.predict_proba(asked)
    return found


def _one_thread() -> AbstractContextManager[object]:
    """Limit OpenMP to one thread: several wait for each other by spinning, for longer than such fits take."""
    try:
        import threadpoolctl  # type: ignore[import-untyped]  # noqa: PLC0415 - an optional library
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpoolctl.threadpool_limits(1, user_api="openmp")
    return limits


def roc_auc(positive: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Return the area under the ROC curve: how often a positive row has the higher score, ties as a half.

    Parameters
    ----------
    positive : bool array of shape (n,)
    scores : float64 array of shape (n,)

    Returns
    -------
    float
        NaN if all rows are positive, or none.

    Examples
    --------
    >>> roc_auc(np.array([False, True, True]), np.array([0.1, 0.1, 0.8]))
    0.75
    """
    above, below = int(positive.sum()), int((~positive).sum())
    if not (above and below):
        return math.nan
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return float((ranks[positive].sum() - above * (above + 1) / 2) / (above * below))


def prediction_scores(truth: NDArray[np.int64], probabilities: NDArray[np.float64]) -> PredictionScores:
    """Return the scores of predicted probabilities; of equal ones the first class is predicted.

    Parameters
    ----------
    truth : int64 array of shape (n,)
    probabilities : float64 array of shape (n, classes)

    Returns
    -------
    PredictionScores
        NaN if there are no rows.
    """
    if not len(truth):
        return PredictionScores(math.nan, math.nan, math.nan)
    size, guess = probabilities.shape[1], probabilities.argmax(axis=1)
    judged = [1] if size == 2 else np.unique(truth).tolist()
    areas = [roc_auc(truth == label, probabilities[:, label]) for label in judged]
    defined = [area for area in areas if not math.isnan(area)]
    f1 = []
    for label in judged:
        both = int(((truth == label) & (guess == label)).sum())
        either = int((truth == label).sum() + (guess == label).sum())
        f1.append(2 * both / either if either else 0.0)
    return PredictionScores(
        accuracy=float((truth == guess).mean()),
        auc=math.fsum(defined) / len(defined) if defined else math.nan,
        f1=math.fsum(f1) / len(f1),
    )


def trained_and_tested(
    classifier: Any, train: Codes, test: Codes, target: int, size: int
) -> PredictionScores:
    """Train on some rows, and return the scores of the target's prediction on others.

    Parameters
    ----------
    classifier : classifier
    train, test : int64 array of shape (rows, columns)
    target : int
        The column that is predicted from all others.
    size : int
        Its cells.

    Returns
    -------
    PredictionScores
        NaN if there are no rows to train on, or none to test.
    """
    if not (len(train) and len(test)):
        return PredictionScores(math.nan, math.nan, math.nan)
    features = [np.delete(rows, target, axis=1) for rows in (train, test)]
    found = class_probabilities(classifier, features[0], train[:, target], features[1], size)
    return prediction_scores(test[:, target], found)
