"""Released counts of prefixes or ranges of ordered columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sfumato.synthetic.marginals.count_table import CountTable

__all__ = ["RangeTable"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RangeTable(CountTable):
    """Noisy counts of ranges of ordered columns, by the cells of others.

    Parameters
    ----------
    columns : tuple of str
    labels : tuple of tuple
        The ranges or cells of each column.
    counts : float64 array, an axis for each column
        Unbiased. They agree: each is the sum of the counts of its cells.
    stddev : float64 array of the shape of `counts`
        Standard deviation of each count's noise, with the covariances of its cells.
    proxy : float64 array
        As `stddev`, of a normal variable whose tails bound the noise's (its subgaussian parameter).
    half_step : float64 array
        Half of the steps of the lattices that the noise is drawn on.
    total : float
        The noisy number of rows.
    possible : bool array of the shape of `counts`, optional
        Which of them can be of any row; the exact count of the others is 0. All unless given.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.synthetic import Marginals, Ordered, ResidualMechanism, TableDomain
    >>> domain = TableDomain(age=Ordered.integers(0, 63), sex=["f", "m"])
    >>> workload = Marginals.ranges("age", by=["sex"])
    >>> mechanism = ResidualMechanism.calibrated(domain, workload, epsilon=1.0, delta=1e-6)
    >>> people = pa.table({"age": list(range(64)) * 50, "sex": ["f", "m"] * 1600})
    >>> released = mechanism.release(people, rng=1)
    >>> table = released.ranges("age", by=["sex"], between={"age": [(18, 40), (41, 63)]})
    >>> table.labels, table.stddev.round().tolist()
    ((('18 to 40', '41 to 63'), ('f', 'm')), [[10.0, 10.0], [10.0, 10.0]])
    """
