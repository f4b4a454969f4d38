"""Columns as if they were independent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.synthetic.generators.cell_groups import CellGroups
from sfumato.synthetic.generators.column_tables import column_noise, measured_columns
from sfumato.synthetic.generators.generator import Generator
from sfumato.synthetic.generators.private_table import PrivateTable
from sfumato.synthetic.generators.public_noise import PublicNoise
from sfumato.synthetic.graphical_model.dual_fit import FittedModel, fit

__all__ = ["IndependentMarginals"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentMarginals(Generator):
    r"""A model of independent columns: only the table of each column is measured.

    Parameters
    ----------
    domain, rho, neighboring, max_rows_contributed, prior
        As in `Generator`: at scale ``rho`` all columns together are about rho-zCDP.

    Notes
    -----
    Guarantee: the composition of one `DiscreteGaussianVector` for each column, of whole counts that a
    person moves as `TableShift` says. A row that has no cell is not counted, as if it was not there.
    Conditions: each person has at most ``max_rows_contributed`` rows, and the domain does not come from the
    data.

    It is what other generators are compared with: no correlation is in it but that of structural zeros. For
    very small budgets and many columns there is nothing better.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.synthetic import TableDomain
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"])
    >>> generator = IndependentMarginals.calibrated(domain, epsilon=1.0, delta=1e-6)
    >>> people = pa.table({"age": ["young", "old"] * 500, "sex": ["f"] * 600 + ["m"] * 400})
    >>> model = generator.release(people, rng=1)
    >>> model.marginal("sex").round().tolist()
    [607.0, 403.0]
    """

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return compose(
            DiscreteGaussianVector(sigma, self._shift.l2_squared, neighboring=self.neighboring)
            for sigma in self._noise()
        )

    def public_noise(self, rows: float | None = None) -> PublicNoise:
        """Return the noise of the columns' tables: there are no others.

        Parameters
        ----------
        rows : float, optional
            Does not matter.

        Returns
        -------
        PublicNoise
        """
        return PublicNoise(list(map(float, self._noise())), {}, 0)

    def _noise(self) -> list[Fraction]:
        return column_noise(self.domain.sizes, Fraction(self.rho), self._shift)

    def _fitted(self, table: PrivateTable) -> tuple[CellGroups, FittedModel]:
        return table.groups, fit(measured_columns(table, self._noise(), self._base()))
