"""What a fit may see: released tables and their noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.synthetic.graphical_model.base_measure import BaseMeasure
from sfumato.synthetic.graphical_model.calibration import Array
from sfumato.synthetic.graphical_model.prior_trust import PriorTrust
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["Measurements", "NoisyTable"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoisyTable:
    """A released table of counts.

    Parameters
    ----------
    counts : array
    variances : float or array of the same shape
        Of each count's noise; an array afterwards.
    """

    counts: Array
    variances: Array | float

    def __post_init__(self) -> None:
        counts = np.array(self.counts, np.float64)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "variances", np.array(np.broadcast_to(self.variances, counts.shape), float))

    def combined(self, other: NoisyTable) -> NoisyTable:
        """Return the mean of two measurements of the same counts, by inverse variance.

        Parameters
        ----------
        other : NoisyTable

        Returns
        -------
        NoisyTable
        """
        one, two = 1 / self.variances, 1 / other.variances
        return NoisyTable((one * self.counts + two * other.counts) / (one + two), 1 / (one + two))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """All that was released of a table: what a model is fitted to, and nothing else.

    Parameters
    ----------
    sizes : tuple of int
        Cells of each column.
    tables : mapping of tuple of int to NoisyTable
        By columns, rising; each column's own table among them.
    total : float
        The noisy number of rows.
    base : BaseMeasure, optional
        Public: what the model is relative to; all cells alike unless given.
    trust : PriorTrust, optional
        How far a prior in the base measure is believed.

    Examples
    --------
    >>> table = NoisyTable(np.array([40.0, 60.0]), 4.0)
    >>> table.combined(table).variances.tolist(), Measurements((2,), {(0,): table}, 100.0).total
    ([2.0, 2.0], 100.0)
    """

    sizes: tuple[int, ...]
    tables: Mapping[Clique, NoisyTable]
    total: float
    base: BaseMeasure | None = None
    trust: PriorTrust | None = None
