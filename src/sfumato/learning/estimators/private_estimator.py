"""What the private estimators share: bounds, classes, randomness, and the charge before the data is read."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from sfumato import _check
from sfumato.errors import UnboundedSensitivity
from sfumato.learning.estimators.table_entries import is_label, number, numbers_of, refuse_complex
from sfumato.learning.estimators.vector_sums import SumSpecification, VectorSum, planned
from sfumato.ledger.unpaid_fits import LedgerLeftOut, count_fit
from sfumato.numerics.randomness.source import RandomSource, random_source
from sfumato.privacy.loss import PrivacyLoss

__all__ = [
    "PrivateClassifier",
    "PrivateEstimator",
    "UndeclaredClasses",
    "box",
    "encoded",
    "plain_draws",
    "scaled",
]

_Array = NDArray[np.float64]


class UndeclaredClasses(UserWarning):
    """The classes were read off the data, unprotected.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", UndeclaredClasses)  # refuse to read classes off the data
    >>> issubclass(UndeclaredClasses, UserWarning)
    True
    """


@dataclass(eq=False, repr=False)
class PrivateEstimator(BaseEstimator):
    """A model whose ``fit`` is private for rows that are added or removed.

    Subclasses are dataclasses: their fields are the parameters, as scikit-learn wants them, and those that
    all have stand here. After ``fit``

    Attributes
    ----------
    privacy_loss_ : PrivacyLoss
        What the fit cost: it depends on parameters only, and is at most (epsilon, delta).
    receipt_ : Receipt or None
        Proof of the charge, where there is a ledger.
    simulated_ : bool
        Whether ``random_state`` was given: then nothing is protected.
    float_safe_ : bool
        Whether the guarantee is of what floats hold, and not only of real numbers.

    Notes
    -----
    One fixed rule covers odd values: NaN counts as the middle of its bounds, infinities as their ends, and
    no value raises an error; so do no rows at all. Clones share the ledger, and every fit is charged to it,
    those of a cross-validation too; without a ledger the second fit warns (`UnpaidFits`). Pickles and copies
    leave the ledger out, and do not fit before one is set, or None.

    Examples
    --------
    >>> from sfumato.learning import PCA
    >>> issubclass(PCA, PrivateEstimator), PCA(n_components=2, epsilon=0.5).get_params()["epsilon"]
    (True, 0.5)
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    _: KW_ONLY
    bounds: Any = None
    ledger: Any = None
    random_state: Any = None

    _charged_as: ClassVar[str] = "private estimator"
    """The description of a fit's charge, which ledgers store."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def __sklearn_clone__(self) -> Self:
        parameters = self.get_params(deep=False)
        shared = parameters.pop("ledger")
        made = type(self)(
            **{name: clone(value, safe=False) for name, value in parameters.items()}, ledger=shared
        )
        made.__dict__["_fits"] = self._counted()
        return made

    def __getstate__(self) -> Any:
        return super().__getstate__() | {"ledger": None if self.ledger is None else LedgerLeftOut()}

    def _counted(self) -> list[int]:
        """Return how many fits without a ledger there were, shared with all clones."""
        fits: list[int] = self.__dict__.setdefault("_fits", [0])
        return fits

    def _pay(self, parts: Sequence[SumSpecification]) -> tuple[list[VectorSum], RandomSource]:
        """Settle the noise, charge the ledger, and return the sums: the data is read after this only."""
        sums, loss = planned(parts, epsilon=self.epsilon, delta=self.delta)
        return sums, self._charged(loss)

    def _charged(self, loss: PrivacyLoss, *, float_safe: bool = True) -> RandomSource:
        """Charge the ledger, and return where randomness comes from."""
        if isinstance(self.ledger, LedgerLeftOut):
            self.ledger.refuse()
        _check.ledger(self.ledger)
        given = self.random_state
        if given is None or isinstance(given, int | np.integer):
            source = random_source(given if given is None else int(given))
        else:
            source = random_source(int(check_random_state(given).randint(2**31 - 1)))
        self.receipt_ = None
        if self.ledger is not None:
            self.receipt_ = self.ledger.charge(
                loss, delta=self.delta, description=self._charged_as, simulated=source.simulated
            )
        elif not source.simulated:
            count_fit(self._counted())
        self.privacy_loss_ = loss
        self.simulated_ = source.simulated
        self.float_safe_ = float_safe
        return source

    def _table(self, X: Any, *, reset: bool) -> _Array:
        """Return the data as float64, whatever values it holds."""
        options: dict[str, Any] = {"ensure_min_samples": 0} if reset else {}
        found = validate_data(
            self, numbers_of(X), dtype=np.float64, ensure_all_finite=False, reset=reset, **options
        )
        return np.asarray(found)

    def _labelled(self, X: Any, y: Any, *, numeric: bool) -> tuple[_Array, NDArray[Any], NDArray[np.bool_]]:
        """Return the data, the answers, and which of these are neither NaN nor infinite."""
        if isinstance(y, list | tuple) and (numeric or getattr(self, "classes", None) is not None):
            y = _entries(y)
        given = np.asarray(y)
        refuse_complex("y", [given.dtype])
        if numeric and y is not None and given.ndim == 1 and given.dtype.kind == "O":
            y = given = np.array([number(one) for one in given.tolist()], np.float64)
        finite = np.ones(given.shape[:1], np.bool_)
        if y is not None and given.ndim == 1 and given.dtype.kind == "f":
            finite = np.isfinite(given)
            y = np.where(finite, given, 0.0)  # scikit-learn would raise an error that shows them
        elif y is not None and given.ndim == 1 and given.dtype.kind == "O":
            finite = np.array([is_label(one) for one in given.tolist()], np.bool_)
            y = given.copy()
            y[~finite] = given[finite][0] if finite.any() else 0
        options: dict[str, Any] = {"ensure_all_finite": False, "ensure_min_samples": 0, "y_numeric": numeric}
        X = numbers_of(X)
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=False, reset=True, **options)
        if numeric and not finite.all():
            y = np.where(finite, y, given)
        return X, y, finite if len(finite) == len(y) else np.ones(len(y), np.bool_)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """A private estimator of classes: the likeliest is the one with the highest score."""

    classes: Any = None

    @abstractmethod
    def _scores(self, X: Any) -> _Array:
        """Return the log of each class's probability for each row, up to a constant of the row."""

    def predict_proba(self, X: Any) -> _Array:
        """Return the probability of each class.

        Parameters
        ----------
        X : array of shape (n, n_features)

        Returns
        -------
        array of shape (n, n_classes)
        """
        return np.asarray(softmax(self._scores(X), axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row.

        Parameters
        ----------
        X : array of shape (n, n_features)

        Returns
        -------
        array of shape (n,)
        """
        likeliest = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])

    def _classes(self, y: Any) -> NDArray[Any]:
        """Return the classes that were declared, or those in the data."""
        if self.classes is not None:
            return np.asarray(self.classes)
        check_classification_targets(y)
        warnings.warn(
            "classes must be declared, got None; pass classes= from public knowledge, as those found in the "
            "data are published unprotected",
            UndeclaredClasses,
            stacklevel=3,
        )
        return np.unique(y)


def _entries(values: Sequence[Any]) -> Any:
    """Return a list's entries as they are: as one array, a text among numbers would make all texts."""
    if any(np.ndim(one) for one in values if not isinstance(one, str | bytes)):
        return values
    found = np.empty(len(values), object)
    for index, one in enumerate(values):
        found[index] = one
    return found


def encoded(y: NDArray[Any], classes: NDArray[Any], finite: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the place of each label among the classes; -1 for what is none of them, or not finite."""
    known = {label: index for index, label in enumerate(classes.tolist())}
    return np.where(finite, np.array([known.get(label, -1) for label in y.tolist()], np.int64), -1)


def plain_draws(source: RandomSource) -> np.random.Generator:
    """Return a generator for choices that protect nobody, such as where to split or to start."""
    return np.random.default_rng(int(source.words(1)[0]) >> 1)


def box(name: str, bounds: Any, size: int) -> tuple[_Array, _Array]:
    """Return lower and upper bounds of each of so many columns.

    Parameters
    ----------
    name : str
        What an error calls them.
    bounds : pair
        Of numbers, or of sequences with a number for each column.
    size : int

    Raises
    ------
    UnboundedSensitivity
        If there are none: bounds that are read off the data are private themselves.
    """
    remedy = "pass (lower, upper) from public knowledge: numbers, or an array of each with an entry a column"
    if bounds is None:
        _check.refuse(name, "be given", None, remedy, error=UnboundedSensitivity)
    if not isinstance(bounds, tuple | list | np.ndarray) or len(bounds) != 2:
        _check.refuse(name, "be a pair", bounds, remedy)
    try:
        lower, upper = (np.broadcast_to(np.asarray(end, np.float64), (size,)) for end in bounds)
    except (ValueError, TypeError):
        _check.refuse(name, f"have {size} entries each, or one", bounds, remedy)
    if not (np.isfinite(lower) & np.isfinite(upper) & (lower < upper)).all():
        _check.refuse(name, "be finite, with lower < upper", bounds, remedy)
    return lower, upper


def scaled(X: _Array, bounds: tuple[_Array, _Array]) -> _Array:
    """Return each number's position in its bounds, from -1 to 1; NaN is in the middle."""
    lower, upper = bounds
    middle, half = lower / 2 + upper / 2, upper / 2 - lower / 2
    with np.errstate(all="ignore"):
        return np.clip(np.nan_to_num((X - middle) / half, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
