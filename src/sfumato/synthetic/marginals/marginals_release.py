"""Released residuals, and the marginals that they add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import final

import numpy as np

from sfumato.mechanisms.base.release import Release
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.marginal_table import MarginalTable
from sfumato.synthetic.marginals.residual_noise import cell_noise, clique_of
from sfumato.synthetic.marginals.workload import Clique, subsets

__all__ = ["MarginalsRelease"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalsRelease(Release):
    """Noisy marginals: those of the workload, and of any columns of them.

    Parameters
    ----------
    value : mapping of tuple of int to float64 array
        Residuals by the numbers of their columns, centred.
    domain : TableDomain
    distributions : mapping of tuple of int to DiscreteGaussianDistribution
        Of each residual's noise, in steps of one over the product of its columns' cells.
    loss, neighboring, receipt, simulated
        As in `Release`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.synthetic import Marginals, ResidualMechanism
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"])
    >>> mechanism = ResidualMechanism.calibrated(domain, Marginals.every(2), epsilon=1.0, delta=1e-6)
    >>> released = mechanism.release(pa.table({"age": ["young"] * 900, "sex": ["f", "m"] * 450}), rng=1)
    >>> released.marginal("age", "sex")
    <MarginalTable of age, sex, 2 x 2, stddev 4.226>
    >>> round(abs(released.total - float(released.marginal("sex").counts.sum())), 6)
    0.0
    """

    domain: TableDomain
    distributions: Mapping[Clique, DiscreteGaussianDistribution]

    def __repr__(self) -> str:
        simulated = ", simulated" if self.simulated else ""
        return f"<MarginalsRelease of {len(self.value)} residuals over {list(self.domain)}{simulated}>"

    @property
    def total(self) -> float:
        """The noisy number of rows that were counted."""
        return float(self.value[()])

    def marginal(self, *columns: str) -> MarginalTable:
        """Return the table of some columns.

        Parameters
        ----------
        *columns : str
            In the order of the table's axes; all in one table of the workload. None for the number of rows.

        Returns
        -------
        MarginalTable

        Raises
        ------
        ParameterError
            If they are not, or one is twice there.
        """
        clique, inner = clique_of(self.domain, columns, self.value)
        sizes = self.domain.sizes
        counts, parts = np.zeros([sizes[place] for place in clique]), subsets([inner])
        for part in parts:
            rest = prod(sizes[place] for place in clique if place not in part)
            shape = [sizes[place] if place in part else 1 for place in clique]
            counts = counts + self.value[part].reshape(shape) / rest
        order = [clique.index(self.domain.index(name)) for name in columns]
        noise = cell_noise(clique, sizes, {part: self.distributions[part] for part in parts})
        return MarginalTable(
            columns=columns,
            labels=tuple(self.domain[name].labels for name in columns),
            counts=np.transpose(counts, order),
            stddev=noise.stddev,
            proxy=noise.proxy,
            half_step=len(parts) / (2 * prod(counts.shape)),
            total=self.total,
        )
