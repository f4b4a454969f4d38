"""Synthetic tables by ``fit`` and ``sample``, as users of scikit-learn write it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state

from sfumato import _check
from sfumato.frames.arrow import as_arrow
from sfumato.ledger.unpaid_fits import LedgerLeftOut, count_fit
from sfumato.numerics.randomness.source import RandomSource, random_source
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.generators.conditions import Condition
from sfumato.synthetic.generators.generator import Generator
from sfumato.synthetic.generators.generator_choice import generator_named
from sfumato.synthetic.marginals.workload import Marginals

__all__ = ["TableSynthesizer"]

_FRAMES: Final = ("pandas", "polars")
_KINDS: Final = "biufUM"


@dataclass(eq=False, repr=False)
class TableSynthesizer(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A generator of synthetic rows with ``fit`` and ``sample``.

    Parameters
    ----------
    domain : TableDomain
        The columns and their cells, declared or bought; never read off the data. A fit without one is
        refused.
    epsilon, delta : float
        The guarantee of a fit, for one row that is added or removed; delta must be positive.
    method : str
        ``"aim"``, ``"mst"`` or ``"independent"``; ``"auto"`` takes the first that can take tables of such
        sizes.
    workload : Marginals, optional
        The tables that should be right, which `AIM` regards: all pairs of columns unless given.
    max_rows_contributed : int
        The most rows that one person has in the table; noise grows in proportion.
    ledger : Ledger or LedgerView, optional
        Is charged before the rows are read, at every fit; clones share it. Without one the second fit of an
        estimator or its clones warns (`sfumato.learning.UnpaidFits`).
    random_state : int, numpy RandomState or None
        For simulation only: such a fit protects nobody, and no ledger accepts it.

    Attributes
    ----------
    model_ : SyntheticModel
        The release: publish it, and ask it for marginals.
    privacy_loss_ : PrivacyLoss
        What the fit cost.
    receipt_ : Receipt or None
        Proof of the charge, where there is a ledger.
    simulated_ : bool
        Whether ``random_state`` was given.
    feature_names_in_, n_features_in_
        The domain's columns, and how many.

    Notes
    -----
    Guarantee: that of the generator: see `AIM`, `MST` and `IndependentMarginals`. Pickles and copies leave
    the ledger out, and do not fit before one is set, or None.

    Examples
    --------
    >>> import pandas as pd
    >>> from sfumato.synthetic import TableDomain
    >>> domain = TableDomain(sex=["f", "m"], smokes=["no", "yes"])
    >>> people = pd.DataFrame({"sex": ["f", "m"] * 500, "smokes": ["no", "yes"] * 500}, dtype="string")
    >>> synthesizer = TableSynthesizer(domain, epsilon=2.0, delta=1e-6, random_state=0).fit(people)
    >>> synthesizer.sample(3, random_state=1).shape, list(synthesizer.sample(1).columns)
    ((3, 2), ['sex', 'smokes'])
    """

    domain: Any = None
    epsilon: float = 1.0
    delta: float = 1e-9
    _: KW_ONLY
    method: str = "auto"
    workload: Any = None
    max_rows_contributed: int = 1
    ledger: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Charge the ledger, measure the table and find a model of it.

        Parameters
        ----------
        X : frame, or array of shape (rows, columns)
            Of pandas, Polars, Arrow or another library, with the domain's columns; an array, not of objects,
            has them in its order. Private.
        y : object
            Is not used: a target is a column of the domain like others.

        Returns
        -------
        TableSynthesizer
            Itself.

        Raises
        ------
        ParameterError
            If no domain is declared, a parameter is out of range, or a column is not there or of another
            type; nothing is charged.
        BudgetExceeded
            If the fit does not fit into the ledger's budget; no row is read.
        """
        generator = self._generator()
        table = _checked(self.domain, X)
        source = self._charged(generator)
        self.model_ = generator.release(table, source)
        self.feature_names_in_ = np.array(list(self.domain), object)
        self.n_features_in_ = len(self.domain)
        self._frame = _library(X)
        return self

    def sample(
        self,
        n_samples: int | None = None,
        *,
        given: Mapping[str, Condition] | None = None,
        within_bins: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> Any:
        """Draw synthetic rows from the model, as many as wanted and at no further cost.

        Parameters
        ----------
        n_samples : int, optional
            The noisy number of rows unless given.
        given : mapping of str to label or list of labels, optional
            What a column is, or may be.
        within_bins : bool
            Whether an ordered column's values are drawn uniformly within its bins; else they are the bins'
            labels.
        random_state : int or numpy Generator, optional
            It protects nobody: the model is the release.

        Returns
        -------
        frame
            Of pandas or Polars where the fitted one was; an array where that was one; else an Arrow table.
        """
        check_is_fitted(self, "model_")
        rows = round(self.model_.total) if n_samples is None else n_samples
        found = self.model_.sample(rows, given, rng=random_state, within_bins=within_bins)
        if self._frame == "numpy":
            columns = [found[name].to_numpy() for name in found.column_names]
            kinds = {column.dtype for column in columns}
            return np.column_stack([each if len(kinds) == 1 else each.astype(object) for each in columns])
        if self._frame == "polars":
            return sys.modules["polars"].from_arrow(found)
        return found.to_pandas() if self._frame == "pandas" else found

    def _generator(self) -> Generator:
        """Return the generator of the parameters."""
        remedy = "declare domain=TableDomain(...), as one that is read off the data tells of single rows"
        _check.instance("domain", self.domain, TableDomain, remedy)
        if self.workload is not None:
            _check.instance("workload", self.workload, Marginals, "write Marginals.every(2), say")
        return generator_named(self.method, self.domain, self.workload).calibrated(
            self.domain,
            self.workload,
            epsilon=self.epsilon,
            delta=self.delta,
            max_rows_contributed=self.max_rows_contributed,
        )

    def _charged(self, generator: Generator) -> RandomSource:
        """Charge the ledger, and return where randomness comes from."""
        if isinstance(self.ledger, LedgerLeftOut):
            self.ledger.refuse()
        _check.ledger(self.ledger)
        given, loss = self.random_state, generator.privacy_loss
        if given is not None and not isinstance(given, int | np.integer):
            given = int(check_random_state(given).randint(2**31 - 1))
        source = random_source(given if given is None else int(given))
        self.receipt_ = None
        if self.ledger is not None:
            described = f"synthetic table: {', '.join(self.domain)}"
            self.receipt_ = self.ledger.charge(
                loss, delta=self.delta, description=described, simulated=source.simulated
            )
        elif not source.simulated:
            count_fit(self._counted(), stacklevel=4)
        self.privacy_loss_, self.simulated_ = loss, source.simulated
        return source

    def _counted(self) -> list[int]:
        """Return how many fits without a ledger there were, shared with all clones."""
        fits: list[int] = self.__dict__.setdefault("_fits", [0])
        return fits

    def __sklearn_clone__(self) -> Self:
        made = type(self)(**self.get_params())
        made.__dict__["_fits"] = self._counted()
        return made

    def __getstate__(self) -> Any:
        return super().__getstate__() | {"ledger": None if self.ledger is None else LedgerLeftOut()}


def _checked(domain: TableDomain, X: Any) -> pa.Table:
    """Return a table whose columns are the domain's, by their names and types alone."""
    if isinstance(X, np.ndarray):
        if X.ndim != 2 or X.shape[1] != len(domain):
            remedy = "pass a frame, or the columns in the domain's order"
            _check.refuse_type("X", f"be of {len(domain)} columns, as the domain is", X, remedy)
        if X.dtype.kind not in _KINDS:
            rule, remedy = "be of numbers, truth values, texts or dates, by its dtype", "pass a frame"
            _check.refuse_type("X", rule, X, remedy)  # what objects are in Arrow, one odd value decides
        X = pa.table(dict(zip(domain, map(_column, X.T), strict=True)))
    table = as_arrow("X", X)
    for name, attribute in domain.items():
        if table.schema.names.count(name) != 1:
            found = f"{name!r} is there {table.schema.names.count(name)} times"
            remedy = "rename its columns, or declare others"
            _check.refuse_state("X", "have each declared column once", found, remedy)
        attribute.require(name, table.schema.field(name).type)
    return table


def _column(values: NDArray[Any]) -> pa.Array:
    """Return a column of an array; half of a surrogate pair, which is no text, is replaced."""
    try:
        return pa.array(values)
    except UnicodeError:
        return pa.array([text.encode(errors="replace").decode() for text in values.tolist()], pa.string())


def _library(X: Any) -> str:
    """Return which library's frame it is, of those that are loaded."""
    if isinstance(X, np.ndarray):
        return "numpy"
    return next((name for name in _FRAMES if _is_frame(name, X)), "pyarrow")


def _is_frame(name: str, X: Any) -> bool:
    module = sys.modules.get(name)
    return module is not None and isinstance(X, module.DataFrame)
