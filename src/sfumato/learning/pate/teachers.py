"""Models trained on disjoint parts of the private data, and their votes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.learning.pate.partition import column, parts_of
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["Predictor", "Teachers"]

_ROWS = 8


class Predictor(Protocol):
    """Any classifier with scikit-learn's two verbs."""

    def fit(self, X: Any, y: Any, /) -> Any:  # noqa: N803
        """Learn from rows and their labels."""

    def predict(self, X: Any, /) -> Any:  # noqa: N803
        """Return a label for each row."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Teachers:
    """Classifiers that each saw another part of the private data; made by `fit`.

    Nothing of them may be shown: neither the models, nor their votes, nor how many agree. An aggregator says
    labels from their votes privately.

    Notes
    -----
    One unit's rows are in one part (`parts_of`), so under add/remove and zero-out one unit changes at most
    one teacher, and under replace-one two. Each teacher casts one vote per example. Fixed rules keep that
    true, and keep the data out of errors: a teacher whose part has one class votes for that; it votes for the
    first class where its part is empty, where its fit or prediction fails, and where it predicts something
    else than a class; rows whose label is no class, or whose unit is missing, are dropped.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> teachers = Teachers.fit(
    ...     lambda number: LogisticRegression(), X, X[:, 0] > 0, units=np.arange(2000), count=20,
    ...     classes=[False, True], rng=1,
    ... )
    >>> teachers.votes(np.array([[3.0, 0.0], [-3.0, 0.0]])).tolist()
    [[0, 20], [20, 0]]
    """

    classes: tuple[Any, ...]
    _models: tuple[Predictor | None, ...] = field(repr=False)

    @classmethod
    def fit(
        cls,
        make: Callable[[int], Predictor],
        X: Any,  # noqa: N803
        y: Any,
        *,
        units: Any,
        count: int,
        classes: Sequence[Any],
        rng: Rng = None,
    ) -> Teachers:
        """Train the teachers.

        Parameters
        ----------
        make : callable
            From a teacher's number to an untrained classifier. Its randomness must not depend on the data,
            nor on other teachers.
        X : array of shape (n, ...)
            Private.
        y : array of shape (n,)
            Private labels.
        units : array of shape (n,)
            The unit of each row; see `parts_of`.
        count : int
            How many teachers.
        classes : sequence
            The labels there are; public, in an order that is fixed beforehand.
        rng : None, int, numpy Generator or RandomSource
            Draws the key that assigns units to teachers.

        Returns
        -------
        Teachers

        Raises
        ------
        ParameterError
            If shapes do not fit.
        Exception
            Whatever a classifier of ``make`` raises for made-up rows of this shape, which are tried first.
            On real rows a failure is a vote for the first class.
        """
        if isinstance(X, list | tuple):
            _check.refuse_type("X", "be an array", X, "pass an array, whose type no row decides")
        X, y, units, known = np.asarray(X), column(y), column(units), _classes(classes)  # noqa: N806
        if X.ndim < 2 or y.shape != X.shape[:1] or units.shape != y.shape:
            _check.refuse_state(
                "X, y and units",
                "have one label and one unit for each row",
                f"their shapes are {X.shape}, {y.shape} and {units.shape}",
                "pass arrays of one length",
            )
        count = _check.integer("count", count, minimum=1)
        _try_out(make, X, np.asarray(classes))
        names, labels = np.asarray(classes), _class_indices(y, known)
        named = np.array([not _missing(unit) for unit in units.tolist()], np.bool_)
        parts = np.full(len(y), -1, np.int64)
        parts[named] = parts_of(units[named], count, random_source(rng))
        models = []
        for number in range(count):
            rows = np.flatnonzero((parts == number) & (labels >= 0))
            models.append(_trained(make, number, X[rows], names[labels[rows]], labels[rows]))
        return cls(known, tuple(models))

    @property
    def count(self) -> int:
        """How many teachers; public."""
        return len(self._models)

    def votes(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """Return how many teachers vote for each class: private.

        Parameters
        ----------
        X : array of shape (n, ...)
            Public examples.

        Returns
        -------
        int64 array of shape (n, classes)
        """
        X = np.asarray(X)  # noqa: N806
        votes = np.zeros((len(X), len(self.classes)), np.int64)
        for model in self._models:
            votes[np.arange(len(X)), self._opinion(model, X)] += 1
        return votes

    def _opinion(self, model: Predictor | None, X: NDArray[Any]) -> NDArray[np.int64]:  # noqa: N803
        nothing = np.zeros(len(X), np.int64)
        if model is None or not len(X):
            return nothing
        try:
            with warnings.catch_warnings(action="ignore"):
                indices = _class_indices(np.asarray(model.predict(X)), self.classes)
        except Exception:
            return nothing
        return np.maximum(indices, 0) if indices.shape == nothing.shape else nothing


def _classes(given: Sequence[Any]) -> tuple[Any, ...]:
    known = tuple(np.asarray(given).tolist()) if not isinstance(given, str | bytes) else ()
    if len(known) < 2 or len(set(known)) < len(known):
        _check.refuse("classes", "be at least two different labels", given, "list all labels, each once")
    return known


def _class_indices(labels: NDArray[Any], classes: tuple[Any, ...]) -> NDArray[np.int64]:
    """Return the index of each label among the classes, or -1."""
    known = {label: index for index, label in enumerate(classes)}

    def index(label: Any) -> int:
        return known.get(label, -1) if isinstance(label, Hashable) else -1

    return np.array([index(label) for label in labels.tolist()], np.int64)


def _missing(unit: Any) -> bool:
    """Whether a unit is NULL, in any of the ways in which one is."""
    try:
        return unit is None or not bool(unit == unit)  # noqa: PLR0124 - NaN is not
    except (TypeError, ValueError):
        return True


def _try_out(make: Callable[[int], Predictor], X: NDArray[Any], classes: NDArray[Any]) -> None:  # noqa: N803
    """Raise what a classifier raises for made-up rows; the real ones are not looked at."""
    rows = max(_ROWS, 2 * len(classes))
    made = np.random.default_rng(0).standard_normal((rows, *X.shape[1:]))
    made = made.astype(X.dtype) if X.dtype.kind in "fiub" else np.zeros((rows, *X.shape[1:]), X.dtype)
    model = make(0)
    model.fit(made, np.resize(classes, rows))
    predicted = np.asarray(model.predict(made))
    if predicted.shape != (rows,):
        remedy = "pass a function that returns a scikit-learn classifier"
        rule = "return a classifier that predicts one label for each row"
        _check.refuse_state("make", rule, f"it returned labels of shape {predicted.shape}", remedy)


def _trained(
    make: Callable[[int], Predictor],
    number: int,
    X: NDArray[Any],  # noqa: N803
    y: NDArray[Any],
    indices: NDArray[np.int64],
) -> Predictor | None:
    """Return a trained teacher, or None for one that always votes for the first class."""
    if not len(y) or (indices == indices[0]).all():
        return None if not len(y) else _Constant(y[0])
    try:
        model = make(number)
        with warnings.catch_warnings(action="ignore"):  # a warning would reveal something of this part
            model.fit(X, y)
    except Exception:
        return None
    return model


@final
class _Constant:
    """Predicts the one class of its part."""

    def __init__(self, label: Any) -> None:
        self._label = label

    def fit(self, X: Any, y: Any, /) -> _Constant:  # noqa: N803
        """Learn nothing."""
        return self

    def predict(self, X: Any, /) -> NDArray[Any]:  # noqa: N803
        """Return the one class for each row."""
        return np.full(len(X), self._label)
