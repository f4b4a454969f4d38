"""Draws of a model's parameters given what was released, and a synthetic table of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NoReturn, Protocol, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.graphical_model.calibration import Array, summed
from sfumato.synthetic.graphical_model.measurements import Measurements, NoisyTable
from sfumato.synthetic.marginals.workload import Clique, maximal
from sfumato.synthetic.posterior.convergence import Convergence, convergence
from sfumato.synthetic.posterior.hamiltonian import HamiltonianChains
from sfumato.synthetic.posterior.table_likelihood import TableLikelihood

__all__ = ["PosteriorTables", "posterior_tables"]

_CELLS: Final = 1 << 14
_MEASURED: Final = 512
_DRAWS: Final = 1 << 12
_CHAINS: Final = 8
_WARMUP: Final = 100
_FIRST: Final = 50  # draws of each chain
_R_HAT: Final = 1.05
_CONSTANT: Final = 1e-12
_LONGEST: Final = 16  # times as many draws as are wanted, or as the first


class Groups(Protocol):
    """Which cells of columns are merged: what this folder needs of it."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many groups each column has."""

    def expanded(self, table: Array, columns: Clique) -> Array:
        """Return a table of groups as a table of cells."""

    def decoded(
        self, rows: NDArray[np.int32], rng: np.random.Generator, allowed: Mapping[int, Any]
    ) -> NDArray[np.int64]:
        """Return rows of groups as rows of cells."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PosteriorTables:
    """Draws from the posterior of a released model's parameters.

    Parameters
    ----------
    domain : TableDomain
        Of the columns that were asked for.
    groups : Groups
        Which cells of them are taken to be alike.
    measured : tuple of tuple of str
        Measured tables of these columns: what is promised is about functions of them.
    probabilities : array of shape (draws, cells of all columns)
    rows : int
        How many rows a synthetic table has unless others are asked for.
    convergence : Convergence
        R-hat and effective draws, the worst of all measured cells, of the chains that draws are from.
    simulated : bool
        Whether the release was.

    Notes
    -----
    Made by `SyntheticModel.posterior`, which says what is promised.

    Examples
    --------
    >>> from sfumato.synthetic import FixedMarginals
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"])
    >>> generator = FixedMarginals.calibrated(domain, epsilon=1.0, delta=1e-6)
    >>> people = pa.table({"age": ["young"] * 600 + ["old"] * 400, "sex": ["f", "m"] * 500})
    >>> drawn = generator.release(people, rng=1).posterior(draws=50, rng=1)
    >>> drawn
    <PosteriorTables of 2 columns, 50 draws, simulated>
    >>> bool(0.01 < drawn.marginal("age").std(axis=0)[0] < 0.03)
    True
    >>> [table.num_rows for table in drawn.tables(20)] == [20] * 50
    True
    """

    domain: TableDomain
    groups: Groups
    measured: tuple[tuple[str, ...], ...]
    probabilities: Array
    rows: int
    convergence: Convergence
    simulated: bool = False

    def __repr__(self) -> str:
        simulated = ", simulated" if self.simulated else ""
        return f"<PosteriorTables of {len(self.domain)} columns, {self.draws} draws{simulated}>"

    @property
    def draws(self) -> int:
        """How many draws, and synthetic tables, there are."""
        return len(self.probabilities)

    def marginal(self, *columns: str) -> Array:
        """Return the probabilities of some columns' cells in each draw.

        Parameters
        ----------
        *columns : str
            In the order of the axes.

        Returns
        -------
        array with an axis of draws, then one for each column
            Quantiles over the draws are credible intervals, with no further noise of synthetic rows.

        Raises
        ------
        ParameterError
            If a column is not among those that were asked for, or is there twice.
        """
        clique = tuple(map(self.domain.index, columns))
        if len(set(clique)) < len(clique):
            _check.refuse("columns", "be different", columns, "name each once")
        places = tuple(range(len(self.domain)))
        shaped = self.probabilities.reshape(-1, *self.groups.sizes)
        return np.stack([self.groups.expanded(summed(each, places, clique), clique) for each in shaped])

    def tables(
        self,
        rows: int | None = None,
        *,
        rng: int | np.random.Generator | None = None,
        within_bins: bool = False,
    ) -> Iterator[pa.Table]:
        """Yield a synthetic table of each draw, its rows independent of each other.

        Parameters
        ----------
        rows : int, optional
            Of each table; the noisy number of rows unless given. Tell `combine` with ``row_ratio`` how many
            times as many.
        rng : None, int or numpy Generator
            It protects nobody.
        within_bins : bool
            Whether an ordered column's values are drawn uniformly within its bins.

        Yields
        ------
        pyarrow.Table
        """
        size = self.rows if rows is None else _check.integer("rows", rows, minimum=1)
        generator = np.random.default_rng(rng)
        within = generator if within_bins else None
        for probabilities in self.probabilities:
            cells = np.repeat(np.arange(len(probabilities)), generator.multinomial(size, probabilities))
            generator.shuffle(cells)
            rows_of_groups = np.stack(np.unravel_index(cells, self.groups.sizes), axis=1).astype(np.int32)
            yield self.domain.decode(self.groups.decoded(rows_of_groups, generator, {}), rng=within)


def posterior_tables(
    measured: Measurements,
    clique: Clique,
    domain: TableDomain,
    groups: Groups,
    *,
    draws: int,
    prior_scale: float,
    rng: np.random.Generator,
) -> PosteriorTables:
    """Draw parameters of the model of some columns from their posterior.

    Parameters
    ----------
    measured : Measurements
        Of all columns.
    clique : tuple of int
        Which of them, rising.
    domain : TableDomain
        Of these.
    groups : Groups
        Of these.
    draws : int
    prior_scale : float
    rng : numpy Generator

    Returns
    -------
    PosteriorTables
    """
    draws = _check.integer("draws", draws, minimum=2)
    if draws > _DRAWS:
        _check.refuse("draws", f"be at most {_DRAWS}", draws, "take fewer, and more rows in each table")
    scale = _check.positive("prior_scale", prior_scale)
    names, sizes = list(domain), groups.sizes
    if prod(sizes) > _CELLS:
        rule = f"have at most {_CELLS} cells together"
        _check.refuse_state("columns", rule, f"they have {prod(sizes)}", "name fewer of them")
    tables = _onto(measured, clique)
    cells = sum(each.counts.size for each in tables.values())
    if cells > _MEASURED:
        rule = f"have at most {_MEASURED} measured cells"
        _check.refuse_state("columns", rule, f"they have {cells}", "name fewer of them")
    likelihood = TableLikelihood(sizes, tables, prior_scale=scale)
    try:
        parameters, found = _drawn(likelihood, max(1.0, measured.total), draws, rng)
    except np.linalg.LinAlgError:  # where hardly any row is left of the noise
        _refuse_slow()
    return PosteriorTables(
        domain=domain,
        groups=groups,
        measured=tuple(tuple(names[place] for place in scope) for scope in maximal(tables)),
        probabilities=likelihood.probabilities(parameters),
        rows=max(1, round(measured.total)),
        convergence=found,
    )


def _onto(measured: Measurements, clique: Clique) -> dict[Clique, NoisyTable]:
    """Return all measured tables summed onto some columns, these numbered by their places."""
    tables: dict[Clique, NoisyTable] = {}
    for scope, table in measured.tables.items():
        inside = tuple(column for column in scope if column in clique)
        counts = np.asarray(summed(table.counts, scope, inside))
        variances = np.asarray(summed(np.asarray(table.variances), scope, inside))
        here, places = NoisyTable(counts, variances), tuple(map(clique.index, inside))
        tables[places] = tables[places].combined(here) if places in tables else here
    return tables


def _drawn(
    likelihood: TableLikelihood, rows: float, draws: int, rng: np.random.Generator
) -> tuple[Array, Convergence]:
    """Return draws of the parameters, as many chains' as are worth so many independent ones."""
    laplace = likelihood.laplace(rows)

    def density(points: Array) -> tuple[Array, Array]:
        value, gradient = likelihood.log_density(laplace.mode + points @ laplace.factor.T)
        return value, gradient @ laplace.factor

    chains = HamiltonianChains(density, likelihood.parameters, chains=_CHAINS, rng=rng)
    chains.adapt(_WARMUP)
    first = max(_FIRST, -(-2 * draws // _CHAINS))
    points = chains.draw(first)
    while True:
        parameters = laplace.mode + points @ laplace.factor.T
        flat = parameters.reshape(-1, parameters.shape[2])
        shares = likelihood.shares(flat).reshape(*points.shape[:2], -1)
        # A table of one cell has the probability 1, but for rounding.
        varying = np.ptp(shares, axis=(0, 1)) > _CONSTANT
        found = convergence(np.concatenate([parameters[:, :, :1], shares[:, :, varying]], axis=2))
        if found.r_hat <= _R_HAT and found.effective_draws >= draws:
            break
        if points.shape[1] >= _LONGEST * first:
            _refuse_slow()
        points = np.concatenate([points, chains.draw(points.shape[1])], axis=1)
    mixed = parameters.transpose(1, 0, 2).reshape(-1, parameters.shape[2])
    return mixed[np.linspace(0, len(mixed) - 1, draws).round().astype(int)], found


def _refuse_slow() -> NoReturn:
    rule, state = "be of columns whose posterior can be drawn", "its chains disagree, or are too slow"
    _check.refuse_state("columns", rule, state, "name fewer, or take a smaller prior_scale")
