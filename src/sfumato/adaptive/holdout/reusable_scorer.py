"""A reusable holdout as the validation set of scikit-learn's searches."""

from __future__ import annotations

import hashlib
import pickle
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.adaptive.holdout.reusable_holdout import ReusableHoldout

__all__ = ["ReusableScorer", "TrainOnAll"]


@final
class TrainOnAll:
    """A split for ``cv=`` in which all rows train: validation is elsewhere, in a `ReusableScorer`.

    Examples
    --------
    >>> [(train.tolist(), test.tolist()) for train, test in TrainOnAll().split([[1], [2]])]
    [([0, 1], [0, 1])]
    """

    def split(
        self,
        X: Any,  # noqa: N803 - scikit-learn's name
        y: Any = None,
        groups: Any = None,
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield all rows to train on, and the same again for the test that a scorer leaves unread.

        Parameters
        ----------
        X, y, groups
            As scikit-learn has them.

        Yields
        ------
        tuple of two int64 arrays
        """
        del y, groups
        rows = np.arange(X.shape[0] if hasattr(X, "shape") else len(X))
        yield rows, rows

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: N803
        """Return 1.

        Parameters
        ----------
        X, y, groups
            As scikit-learn has them.

        Returns
        -------
        int
        """
        del X, y, groups
        return 1


@final
class ReusableScorer:
    """Scores of fitted models on a reusable holdout, for ``scoring=`` in scikit-learn's searches.

    The holdout never trains: give the search the training rows alone, and `TrainOnAll` as its split. Copies
    share the holdout and its budget, and other processes are refused, so pass ``n_jobs=1``.

    Parameters
    ----------
    holdout : ReusableHoldout
        Its rows are tuples of inputs and labels; its ``train`` is what the search is fitted to.
    score : callable, optional
        From a model, inputs and labels to one value in [0, 1] for each row, of that row alone; whether the
        prediction is the label, unless given.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.adaptive import ReusableHoldout
    >>> class Signs:
    ...     def predict(self, inputs):
    ...         return inputs[:, 0] > 0
    >>> inputs = np.random.default_rng(1).normal(size=(4000, 2))
    >>> rows = (inputs, inputs[:, 0] > 0)
    >>> scorer = ReusableScorer(ReusableHoldout(rows, rows, rng=1))
    >>> scorer(Signs(), inputs, rows[1])
    1.0
    """

    def __init__(
        self, holdout: ReusableHoldout, *, score: Callable[[Any, Any, Any], Any] | None = None
    ) -> None:
        _check.instance("holdout", holdout, ReusableHoldout, "pass ReusableHoldout((X, y), (X2, y2))")
        if score is not None and not callable(score):
            _check.refuse_type("score", "be callable", score, "leave it out for accuracy")
        self.holdout = holdout
        self._score: Final = score or _is_right
        self._last: tuple[weakref.ref[Any], bytes, float] | None = None

    def __repr__(self) -> str:
        return f"ReusableScorer({self.holdout!r})"

    def __deepcopy__(self, memo: object) -> ReusableScorer:
        """Return itself: copies share the budget."""
        return self

    def __call__(self, model: Any, inputs: Any = None, labels: Any = None) -> float:
        """Return the holdout's answer for a fitted model.

        Parameters
        ----------
        model : object with ``predict``
        inputs, labels
            Unread: the holdout has its own rows.

        Returns
        -------
        float
            The same again for the same model, at no cost, as long as its pickle shows that it was not fitted
            again; one that cannot be pickled is asked of anew.

        Raises
        ------
        RunExhausted
            If the holdout is used up.
        """
        del inputs, labels
        if self._last is not None and self._last[0]() is model and self._last[1] == _state(model):
            return self._last[2]
        answer = self.holdout.ask(lambda rows: self._score(model, *rows)).value
        state = _state(model)
        self._last = None if state is None else (weakref.ref(model), state, answer)
        return answer


class _HashingFile:
    """A file that a pickle is written to, for its hash alone."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.hash.update(data)
        return len(data)


def _state(model: Any) -> bytes | None:
    """Return a hash of all that a model holds, or None where it cannot be pickled."""
    file = _HashingFile()
    try:
        pickle.Pickler(file).dump(model)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    return file.hash.digest()


def _is_right(model: Any, inputs: Any, labels: Any) -> NDArray[np.bool_]:
    return np.asarray(model.predict(inputs) == labels)
