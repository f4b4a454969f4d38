"""A released model of a table: marginals, rows, and a document."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.base.release_table import as_pandas, as_polars
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.generators import model_document
from sfumato.synthetic.generators.cell_groups import CellGroups
from sfumato.synthetic.generators.conditions import Condition, allowed_cells
from sfumato.synthetic.generators.public_prior import PublicPrior
from sfumato.synthetic.graphical_model.calibration import Array
from sfumato.synthetic.graphical_model.dual_fit import FittedModel, conditioned
from sfumato.synthetic.graphical_model.model_marginals import ModelMarginals
from sfumato.synthetic.graphical_model.row_sampling import sampled_rows
from sfumato.synthetic.marginals.cell_rows import CountedTable, cell_rows
from sfumato.synthetic.marginals.workload import Clique, maximal
from sfumato.synthetic.posterior.posterior_tables import PosteriorTables, posterior_tables

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["SyntheticModel"]

_SMALLEST: Final = math.log(1e-300)
_CELLS: Final = 1 << 26
_COLUMNS: Final = 32  # the most axes of an array that every numpy has

Seed: TypeAlias = int | np.random.Generator | None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SyntheticModel(Release):
    """A released model of a table, from which any number of rows and any marginal follow at no further cost.

    Parameters
    ----------
    value : FittedModel
        The distribution, of groups of cells.
    domain : TableDomain
    groups : CellGroups
        Which cells the model does not tell apart, as few rows seemed to be in them.
    prior : PublicPrior, optional
        The public prior that it was made with.
    loss, neighboring, receipt, simulated
        As in `Release`.

    Notes
    -----
    All of it is post-processing of noisy tables. Marginals and rows show what was measured, with noise, and
    what follows from it by maximum entropy: a dependence of columns that no measured table has together is
    not in the model. Where the domain has structural zeros no row is drawn and marginals are 0, exactly: they
    are in the model, not taken out afterwards. Rows are drawn from the model, not from people, and standard
    errors that are computed from them as if they were people are too small.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.synthetic import MST, Ordered
    >>> domain = TableDomain(age=Ordered(0, 100, bins=4), sex=["f", "m"])
    >>> people = pa.table({"age": [10.0, 30.0, 60.0, 90.0] * 250, "sex": ["f", "m"] * 500})
    >>> model = MST.calibrated(domain, epsilon=1.0, delta=1e-6).release(people, rng=1)
    >>> model.marginal("sex", "age").round(-1).tolist()
    [[250.0, 10.0, 250.0, 10.0], [0.0, 250.0, 0.0, 260.0]]
    >>> model.table(2, rng=3).to_pylist()
    [{'age': '[0, 25)', 'sex': 'f'}, {'age': '[50, 75)', 'sex': 'f'}]
    >>> model.sample(1, given={"sex": "m", "age": 55.0}, rng=3).to_pylist()
    [{'age': '[50, 75)', 'sex': 'm'}]
    """

    value: FittedModel
    domain: TableDomain
    groups: CellGroups
    prior: PublicPrior | None = None

    def __repr__(self) -> str:
        simulated = ", simulated" if self.simulated else ""
        tables = sum(len(scope) > 1 for scope in self.value.thetas)
        return f"<SyntheticModel of {len(self.domain)} columns from {tables} tables of several{simulated}>"

    @property
    def total(self) -> float:
        """The noisy number of rows that were counted, at least 1."""
        return self.value.total

    @property
    def duality_gap(self) -> float:
        """By how much the fit's objective exceeds its minimum at most, in nats."""
        return self.value.duality_gap

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each table that was measured."""
        names = list(self.domain)
        return tuple(tuple(names[column] for column in scope) for scope in self.value.thetas)

    def marginal(self, *columns: str) -> Array:
        """Return how many rows the model expects in each cell of some columns.

        Parameters
        ----------
        *columns : str
            In the order of the axes; any, measured together or not.

        Returns
        -------
        float64 array
            Not negative; its sum is `total`.

        Raises
        ------
        ParameterError
            If a column is not in the domain, or is twice there, or the table is too large.
        """
        clique = tuple(map(self.domain.index, columns))
        if len(set(clique)) < len(clique):
            _check.refuse("columns", "be different", columns, "name each once")
        cells = math.prod(self.domain.sizes[column] for column in clique)
        if len(clique) > _COLUMNS or cells > _CELLS:
            rule, found = f"be at most {_COLUMNS}, of at most {_CELLS} cells", f"{len(clique)} have {cells}"
            _check.refuse_state("columns", rule, found, "take fewer")
        probabilities = ModelMarginals(self.value.model)(clique)
        return self.total * self.groups.expanded(probabilities, clique)

    def table(  # type: ignore[override]  # rows of people instead of one row for each cell
        self, rows: int | None = None, *, rng: Seed = None, within_bins: bool = False
    ) -> pa.Table:
        """Return rows that are drawn from the model.

        Parameters
        ----------
        rows : int, optional
            How many; the noisy number of rows unless given.
        rng : None, int or numpy Generator
            It protects nobody: the model is the release.
        within_bins : bool
            Whether an ordered column's values are drawn uniformly within its bins; else they are the bins'
            labels.

        Returns
        -------
        pyarrow.Table
        """
        return self.sample(round(self.total) if rows is None else rows, rng=rng, within_bins=within_bins)

    def sample(
        self,
        rows: int,
        given: Mapping[str, Condition] | None = None,
        *,
        rng: Seed = None,
        within_bins: bool = False,
    ) -> pa.Table:
        """Return rows that are drawn from the model, given what some columns are.

        Parameters
        ----------
        rows : int
        given : mapping of str to label or list of labels, optional
            What a column is, or may be: labels of cells, or numbers and dates within bins.
        rng, within_bins
            As for `table`.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        ParameterError
            If a value of ``given`` has no cell, or the model gives such rows no probability.
        """
        rows = _check.integer("rows", rows, minimum=0)
        allowed = {self.domain.index(name): cells for name, cells in allowed_cells(self.domain, given or {})}
        model = self.value.model
        if allowed:
            groups = {column: self._part(column, cells) for column, cells in allowed.items()}
            model = conditioned(self.value, groups)
            if model.log_normalizer - self.value.model.log_normalizer < _SMALLEST:
                rule, found = "have a probability above 1e-300", "the model gives it less"
                _check.refuse_state("given", rule, found, "allow more values")
        generator = _generator(rng)
        within = generator if within_bins else None
        parts = [
            self.domain.decode(self.groups.decoded(part, generator, allowed), rng=within)
            for part in sampled_rows(model, rows, generator)
        ]
        empty = np.empty((0, len(self.domain)), np.int64)
        return pa.concat_tables(parts) if parts else self.domain.decode(empty, rng=within)

    def posterior(
        self, *columns: str, draws: int = 100, prior_scale: float = 2.0, rng: Seed = None
    ) -> PosteriorTables:
        r"""Return draws of the model's parameters given what was released, each for a synthetic table.

        Parameters
        ----------
        *columns : str
            Which columns the tables have; all unless given. They have at most 16,384 cells together, and
            512 in measured tables.
        draws : int
            How many, from 2 to 4,096.
        prior_scale : float
            Standard deviation of each log-weight before anything was measured.
        rng : None, int or numpy Generator
            It protects nobody.

        Returns
        -------
        PosteriorTables

        Raises
        ------
        ParameterError
            If there are too many cells; if chains do not converge (R-hat above 1.05, or fewer effective draws
            than are wanted, after sixteen times as many); or if the measured tables are not there, as in a
            document of the first version.

        Notes
        -----
        Post-processing: it costs nothing. An analysis of each table, then `combine`, gives intervals with the
        noise and the sampling of people in them (Räisä, Jälkö, Kaski, Honkela 2023). What is promised holds
        in the limit of large counts or large noise, for functions of tables that were measured, in
        distributions that are of the model's kind in these columns; which tables were measured is taken as
        fixed, as with `FixedMarginals`. An effect that was never measured is not in it, and an interval for
        it is wrong with great certainty.

        References
        ----------
        Räisä, Jälkö, Kaski, Honkela, "Noise-aware statistical inference with differentially private synthetic
        data" (AISTATS 2023).

        Examples
        --------
        >>> import pyarrow as pa
        >>> from sfumato.synthetic import FixedMarginals
        >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"])
        >>> generator = FixedMarginals.calibrated(domain, epsilon=1.0, delta=1e-6)
        >>> people = pa.table({"age": ["young"] * 600 + ["old"] * 400, "sex": ["f", "m"] * 500})
        >>> drawn = generator.release(people, rng=1).posterior(draws=200, rng=1)
        >>> lower, upper = np.quantile(drawn.marginal("age")[:, 0], [0.025, 0.975])
        >>> bool(0.55 < lower < 0.6 < upper < 0.65)
        True
        """
        measured = self.value.measured
        if measured is None:
            rule, found = "have the tables that were measured", "it is of a document that lacks them"
            _check.refuse_state("model", rule, found, "release it anew")
        if self.domain.structural_zeros:
            remedy = "ask the model for its marginals"
            _check.refuse_state("domain", "have no structural zeros for a posterior", "it has some", remedy)
        if self.value.base:
            remedy = "release a model without one"
            _check.refuse_state("model", "be fitted without a prior for a posterior", "it has one", remedy)
        clique = tuple(sorted(map(self.domain.index, columns))) or tuple(range(len(self.domain)))
        if len(set(clique)) < len(clique):
            _check.refuse("columns", "be different", columns, "name each once")
        names = [list(self.domain)[column] for column in clique]
        drawn = posterior_tables(
            measured,
            clique,
            TableDomain({name: self.domain[name] for name in names}),
            CellGroups([self.groups.groups[column] for column in clique]),
            draws=draws,
            prior_scale=prior_scale,
            rng=_generator(rng),
        )
        return replace(drawn, simulated=self.simulated)

    def to_pandas(  # type: ignore[override]
        self, rows: int | None = None, *, rng: Seed = None, within_bins: bool = False
    ) -> pd.DataFrame:
        """Return `table` as a pandas DataFrame; needs the extra ``sfumato[pandas]``.

        Parameters
        ----------
        rows, rng, within_bins
            As for `table`.

        Returns
        -------
        pandas.DataFrame
        """
        return as_pandas(_columns(self.table(rows, rng=rng, within_bins=within_bins)))

    def to_polars(  # type: ignore[override]
        self, rows: int | None = None, *, rng: Seed = None, within_bins: bool = False
    ) -> pl.DataFrame:
        """Return `table` as a Polars DataFrame; needs the extra ``sfumato[polars]``.

        Parameters
        ----------
        rows, rng, within_bins
            As for `table`.

        Returns
        -------
        polars.DataFrame
        """
        return as_polars(_columns(self.table(rows, rng=rng, within_bins=within_bins)))

    def to_arrow(self) -> pa.Table:
        """Return the cells of all tables that were measured and are in no other one, a row for each.

        Returns
        -------
        pyarrow.Table
            ``columns`` and ``cell``, lists of the table's columns and of the cell's labels as texts,
            ``count`` as the model expects it, and ``stddev``, which is NULL: a model's error is not known.
        """
        names, columns = list(self.domain), list(self.domain.values())
        found = list[CountedTable]()
        for scope in maximal(self.value.thetas):
            named = [names[column] for column in scope]
            labels = [columns[column].labels for column in scope]
            found.append((named, labels, self.marginal(*named), None))
        return cell_rows(found)

    def as_prior(self) -> PublicPrior:
        """Return the model as a prior for another one, of other rows or of a later year.

        Returns
        -------
        PublicPrior
        """
        groups = self.groups.groups
        weights: dict[Clique, Array] = {
            (column,): -np.log(np.bincount(group)[group]) for column, group in enumerate(groups)
        }
        for tables in (self.value.thetas, self.value.base):
            for scope, table in tables.items():
                finite = np.where(np.isneginf(table), 0.0, table)  # zeros come with the domain
                cells = finite[np.ix_(*(groups[column] for column in scope))]
                weights[scope] = weights[scope] + cells if scope in weights else cells
        return PublicPrior(self.domain, weights)

    def to_json(self) -> str:
        """Return the model as a document of the format ``sfumato.synthetic-model``; it may be published.

        Returns
        -------
        str
        """
        return model_document.written(self, self.domain, self.groups, self.prior)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the model that `to_json` wrote, without its receipt.

        Parameters
        ----------
        text : str

        Returns
        -------
        SyntheticModel

        Raises
        ------
        ParameterError
            If it is no such document.
        """
        return cls(**model_document.read(text))

    def _part(self, column: int, cells: NDArray[np.bool_]) -> Array:
        """Return which part of each group's cells is allowed."""
        group = self.groups.groups[column]
        return np.asarray(np.bincount(group, weights=cells) / np.bincount(group))


def _generator(rng: Seed) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        rule = "be None, a whole number of at least 0, or a numpy Generator"
        _check.refuse("rng", rule, rng, "leave it out")


def _columns(table: pa.Table) -> dict[str, NDArray[Any]]:
    return {name: table[name].to_numpy() for name in table.column_names}
