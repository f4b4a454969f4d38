"""Tables that are chosen beforehand, all of them measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any, Final, final

import numpy as np

from sfumato import _check
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.synthetic.generators.cell_groups import CellGroups
from sfumato.synthetic.generators.column_tables import row_count, shares_by_size
from sfumato.synthetic.generators.generator import Generator
from sfumato.synthetic.generators.private_table import PrivateTable
from sfumato.synthetic.generators.public_noise import PublicNoise
from sfumato.synthetic.graphical_model.base_measure import BaseMeasure
from sfumato.synthetic.graphical_model.dual_fit import FittedModel, fit
from sfumato.synthetic.graphical_model.junction_tree import tree_cells
from sfumato.synthetic.graphical_model.measurements import Measurements, NoisyTable
from sfumato.synthetic.marginals.workload import Clique, Marginals, maximal

__all__ = ["FixedMarginals"]

_COLUMNS: Final = Fraction(1, 5)
_CELLS: Final = 1 << 22


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FixedMarginals(Generator):
    r"""A model of the tables of a workload, each of them measured: nothing is chosen by the data.

    Parameters
    ----------
    domain, rho, neighboring, max_rows_contributed, prior
        As in `Generator`: at scale ``rho`` all tables together are about rho-zCDP.
    workload : Marginals
        The tables that are measured, beside that of each column; all pairs unless given. One whose columns
        are in another one is left out. Weights of tables are not regarded.

    Raises
    ------
    ParameterError
        If the cliques of the model's junction tree have more than 2**22 cells together.

    Notes
    -----
    Guarantee: the composition of one `DiscreteGaussianVector` for each table, of whole counts that a person
    moves as `TableShift` says. A row that has no cell is not counted, as if it was not there. Conditions:
    each person has at most ``max_rows_contributed`` rows, and neither domain nor workload come from the data.

    Take it for a few columns, where inference is wanted: no table is missing, no cells are merged, and
    `SyntheticModel.posterior` is right for all tables of the workload.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.synthetic import TableDomain
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"], income=["low", "high"])
    >>> generator = FixedMarginals.calibrated(domain, Marginals.every(2), epsilon=1.0, delta=1e-6)
    >>> people = pa.table({"age": ["young", "old"] * 500, "sex": ["f"] * 600 + ["m"] * 400,
    ...     "income": ["low"] * 600 + ["high"] * 400})
    >>> generator.release(people, rng=1).tables
    (('age',), ('sex',), ('income',), ('age', 'sex'), ('age', 'income'), ('sex', 'income'))
    """

    workload: Marginals = field(default_factory=partial(Marginals.every, 2))

    def _check_own(self) -> None:
        _check.instance("workload", self.workload, Marginals, "write Marginals.every(2), say")
        base = BaseMeasure.scopes_of(self.domain.structural_zeros)
        cells = tree_cells(self.domain.sizes, (*self._scopes(), *base))
        if cells > _CELLS:
            rule, found = f"make a model of at most {_CELLS} cells", f"it has {cells}"
            _check.refuse_state("workload", rule, found, "take fewer tables or bins, or AIM")

    @classmethod
    def _regarded(cls, workload: Marginals | None) -> dict[str, Any]:
        return {} if workload is None else {"workload": workload}

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return compose(
            DiscreteGaussianVector(sigma, self._shift.l2_squared, neighboring=self.neighboring)
            for sigma in self._noise().values()
        )

    def public_noise(self, rows: float | None = None) -> PublicNoise:
        """Return the noise of all tables: nothing is chosen.

        Parameters
        ----------
        rows : float, optional
            Does not matter.

        Returns
        -------
        PublicNoise
        """
        noise = {scope: float(sigma) for scope, sigma in self._noise().items()}
        columns = [noise.pop((column,)) for column in range(len(self.domain))]
        return PublicNoise(columns, noise, len(noise))

    def _scopes(self) -> list[Clique]:
        """Return the columns, then the tables of several."""
        columns = [(column,) for column in range(len(self.domain))]
        if len(columns) == 1:
            return list[Clique](columns)
        wanted = maximal(self.workload.cliques(self.domain))
        return [*columns, *(each for each in wanted if len(each) > 1)]

    def _noise(self) -> dict[Clique, Fraction]:
        """Return the noise of each table."""
        scopes, sizes, rho = self._scopes(), self.domain.sizes, Fraction(self.rho)
        cells = [prod(sizes[column] for column in scope) for scope in scopes]
        one = sum(len(scope) == 1 for scope in scopes)
        part = _COLUMNS if len(scopes) > one else Fraction(1)
        shares = [part * each for each in shares_by_size(cells[:one])]
        if len(scopes) > one:
            shares += [(1 - part) * each for each in shares_by_size(cells[one:])]
        return {scope: self._shift.noise(rho * share) for scope, share in zip(scopes, shares, strict=True)}

    def _fitted(self, table: PrivateTable) -> tuple[CellGroups, FittedModel]:
        tables: dict[Clique, NoisyTable] = {}
        for scope, sigma in self._noise().items():
            counts = np.asarray(table.measure(scope, sigma), np.float64)
            tables[scope] = NoisyTable(counts, float(sigma) ** 2)
        count = row_count(list(tables.values()))
        return table.groups, fit(self._base().chosen(Measurements(table.groups.sizes, tables, count)))
