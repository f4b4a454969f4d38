"""A public table, or a released model, that a private model begins with."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import canonical
from sfumato.synthetic.domain.attributes import Codes
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.graphical_model.base_measure import BaseMeasure
from sfumato.synthetic.graphical_model.calibration import Array
from sfumato.synthetic.graphical_model.dual_fit import FittedModel, fit
from sfumato.synthetic.graphical_model.junction_tree import tree_cells
from sfumato.synthetic.graphical_model.measurements import Measurements, NoisyTable
from sfumato.synthetic.graphical_model.model_marginals import ModelMarginals
from sfumato.synthetic.marginals.contingency import contingency_table
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["PublicPrior"]

_AT_ONCE: Final = 3
_ADDED: Final = 0.5  # to each count of the public table: what is not there is rare, not impossible
_MOST_ADDED: Final = 0.01
_PAIR: Final = 1 << 22
_LARGEST: Final = 2.0**500  # sums of log-weights stay finite
_MEAN_ABSOLUTE: Final = math.sqrt(2 / math.pi)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PublicPrior:
    """A distribution that a private model is relative to: of a public table, or of a model that was released.

    Parameters
    ----------
    domain : TableDomain
    log_weights : mapping of tuple of int to array
        By numbers of columns, rising; within 2**500, over the cells of the domain.

    Raises
    ------
    ParameterError
        If a table of weights does not fit the domain.

    Notes
    -----
    It must be public, or have been paid for: nothing protects the rows that it is made of. A survey of the
    same questions, another region, an earlier year, or a model that was released before will do; a part of
    the private rows will not.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.synthetic import AIM
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"])
    >>> census = pa.table({"age": ["young"] * 500 + ["old"] * 500, "sex": ["f"] * 480 + ["m"] * 520})
    >>> prior = PublicPrior.from_table(domain, census)
    >>> people = pa.table({"age": ["young"] * 500 + ["old"] * 500, "sex": ["f"] * 490 + ["m"] * 510})
    >>> generator = AIM.calibrated(domain, epsilon=0.2, delta=1e-6, prior=prior)
    >>> (prior.marginal("age", "sex") * 100).round().tolist()
    [[48.0, 2.0], [0.0, 50.0]]
    >>> model = generator.release(people, rng=1)
    >>> (model.marginal("age", "sex") / model.total).round(1).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    domain: TableDomain
    log_weights: Mapping[Clique, Array]

    def __post_init__(self) -> None:
        _check.instance("domain", self.domain, TableDomain, "declare one with sfumato.synthetic.TableDomain")
        sizes = self.domain.sizes
        for scope, weights in self.log_weights.items():
            known = list(scope) == sorted(set(scope)) and set(scope) <= set(range(len(sizes)))
            fits = known and weights.shape == tuple(sizes[i] for i in scope)
            if not fits or not (np.abs(weights) <= _LARGEST).all():
                rule = "be finite, for all cells of columns of the domain, and within 2**500"
                _check.refuse_state("log_weights", rule, "some are not", "use from_table")

    @classmethod
    def from_table(cls, domain: TableDomain, table: Any, *, max_cells: int = 10_000) -> Self:
        """Return the model of a public table: of its columns, and of the pairs that matter most.

        Parameters
        ----------
        domain : TableDomain
            That of the private table. Rows that have no cell in it are left out.
        table : frame
            Public: of Arrow, pandas, Polars or another library.
        max_cells : int
            The most cells of the model beside those of columns, as for `AIM`; more of them make all fits to
            private tables slower.

        Returns
        -------
        PublicPrior

        Raises
        ------
        ParameterError
            If no row has a cell, or zeros of the domain leave too large tables.
        """
        _check.instance("domain", domain, TableDomain, "declare one with sfumato.synthetic.TableDomain")
        most = _check.integer("max_cells", max_cells, minimum=1)
        codes = domain.encode(table)
        if not len(codes):
            found = "none of them is"
            _check.refuse_state("table", "have rows in the domain", found, "take another public table")
        return cls(domain, _public_fit(domain, codes, most).thetas)

    def marginal(self, *columns: str) -> Array:
        """Return the probabilities of some columns' cells.

        Parameters
        ----------
        *columns : str
            In the order of the axes.

        Returns
        -------
        float64 array
        """
        wanted = tuple(map(self.domain.index, columns))
        return ModelMarginals(self.base(self.domain).calibrated())(wanted)

    def base(self, domain: TableDomain) -> BaseMeasure:
        """Return it as the measure that a model is relative to, with the structural zeros of a domain.

        Parameters
        ----------
        domain : TableDomain
            Of the same columns and cells.

        Returns
        -------
        BaseMeasure
        """
        zeros = BaseMeasure.from_zeros(domain.sizes, domain.structural_zeros)
        return zeros.times(BaseMeasure(domain.sizes, self.log_weights))

    @property
    def digest(self) -> str:
        """The SHA-256 of its columns, cells and weights, which documents of models record."""
        columns = [{"name": name, **each.described()} for name, each in self.domain.items()]
        content = canonical({"columns": columns, "tables": self.described()})
        return hashlib.sha256(content.encode()).hexdigest()

    def described(self) -> list[dict[str, object]]:
        """Return its tables as a document has them.

        Returns
        -------
        list of dict
        """
        names = list(self.domain)
        return [
            {"columns": [names[column] for column in scope], "log_weights": weights.ravel().tolist()}
            for scope, weights in self.log_weights.items()
        ]


def _public_fit(domain: TableDomain, codes: Codes, max_cells: int) -> FittedModel:
    """Return the model of public rows: pairs that it predicts worst are added, three at a time."""
    sizes, total, zeros = domain.sizes, float(len(codes)), domain.structural_zeros
    base = BaseMeasure.from_zeros(sizes, zeros) if zeros else None
    scopes = () if base is None else tuple(base.factors)
    tables: dict[Clique, NoisyTable] = {
        (column,): _smoothed(codes, sizes, (column,)) for column in range(len(sizes))
    }
    counts: dict[Clique, NDArray[np.int64]] = {
        pair: contingency_table(codes, sizes, pair)
        for pair in combinations(range(len(sizes)), 2)
        if sizes[pair[0]] * sizes[pair[1]] <= min(_PAIR, max_cells)
    }
    limit = max_cells + tree_cells(sizes, (*tables, *scopes))
    fitted = fit(Measurements(sizes, tables, total, base))
    while len(tables) < 3 * len(sizes):
        chosen = _worst(counts, fitted, tables)
        added = 0
        for pair in chosen:
            if tree_cells(sizes, (*tables, *scopes, pair)) <= limit:
                tables[pair] = _smoothed(codes, sizes, pair)
                added += 1
                if added == _AT_ONCE:
                    break
        if not added:
            break
        fitted = fit(Measurements(sizes, tables, total, base), fitted.thetas, iterations=60, tolerance=0.03)
    return fit(Measurements(sizes, tables, total, base), fitted.thetas)


def _smoothed(codes: Codes, sizes: Sequence[int], clique: Clique) -> NoisyTable:
    """Return the counts of public rows with a little added to each, as exact as counts are."""
    counts = contingency_table(codes, sizes, clique).astype(np.float64)
    more = counts + min(_ADDED, _MOST_ADDED * len(codes) / counts.size)
    return NoisyTable(more * (len(codes) / more.sum()), 1.0)


def _worst(
    counts: Mapping[Clique, NDArray[np.int64]], fitted: FittedModel, tables: Mapping[Clique, NoisyTable]
) -> list[Clique]:
    """Return the pairs that are predicted worse than chance explains, the worst first."""
    marginals, scores = ModelMarginals(fitted.model), dict[Clique, float]()
    for pair, found in counts.items():
        if pair not in tables:
            gap = float(np.abs(found - fitted.total * marginals(pair)).sum())
            scores[pair] = gap - _MEAN_ABSOLUTE * float(np.sqrt(found).sum())
    return sorted((pair for pair, score in scores.items() if score > 0), key=lambda pair: -scores[pair])
