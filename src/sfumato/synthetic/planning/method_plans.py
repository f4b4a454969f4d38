"""What a plan says of a method: its noise in each table, memory and time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import prod
from typing import Any, final

from sfumato import _check
from sfumato.privacy.neighboring import Neighboring
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.workload import Clique, Marginals

__all__ = ["MethodPlan", "PlanRequest", "TableError"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What is to be released, and for which guarantee.

    Parameters
    ----------
    domain : TableDomain
    workload : Marginals
    epsilon, delta : float
    neighboring : Neighboring
    max_rows_contributed : int
        As in `sfumato.synthetic.ResidualMechanism`.
    rows : float, optional
        How many rows there are, about: a public or released figure.
    """

    domain: TableDomain
    workload: Marginals
    epsilon: float
    delta: float
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    max_rows_contributed: int = 1
    rows: float | None = None

    @property
    def guarantee(self) -> dict[str, Any]:
        """What calibrates a mechanism."""
        return {
            "domain": self.domain,
            "workload": self.workload,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighboring": self.neighboring,
            "max_rows_contributed": self.max_rows_contributed,
        }

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The columns of each table, by number."""
        return self.workload.cliques(self.domain)

    def cells(self, clique: Clique) -> int:
        """Return how many cells a table has.

        Parameters
        ----------
        clique : tuple of int

        Returns
        -------
        int
        """
        return prod(self.domain.sizes[place] for place in clique)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableError:
    """The noise in one table.

    Parameters
    ----------
    columns : tuple of str
    cells : int
    stddev : float
        Standard deviation of the noise of a cell; of a product of columns, that of a cell where all cells
        hold as many rows. Where prefixes or ranges are asked, the root of the mean variance of these.
    misplaced : float
        How many rows the noise puts into wrong cells, on average: half of the sum of all cells' mean
        magnitudes of noise. Over the number of rows it is a total variation distance. Where prefixes or
        ranges are asked it is half of their mean magnitude, summed over the cells of other columns.
    """

    columns: tuple[str, ...]
    cells: int
    stddev: float
    misplaced: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MethodPlan:
    """What a method would do.

    Parameters
    ----------
    name : str
    errors : tuple of TableError
        Of each table of the workload; what the noise does, and no more. Of a generator it is that of the
        tables of columns, multiplied: before any other table is measured.
    memory : int
        Bytes, about.
    seconds : float
        Of one core, about; without reading the rows.
    unbiased : bool
        Whether noise is all of the error.
    remark : str
        What else to know, a sentence.
    measured : tuple of TableError
        Of a generator: the noise in each table of the workload that it may measure, where it measures that
        once. Its model has less: tables that share columns are fitted together.
    tables_measured : int
        Up to how many of these are measured, about. Which ones, the rows decide.
    """

    name: str
    errors: tuple[TableError, ...]
    memory: int
    seconds: float
    unbiased: bool
    remark: str
    measured: tuple[TableError, ...] = ()
    tables_measured: int = 0

    @property
    def misplaced(self) -> float:
        """The mean over the tables of how many rows the noise puts into wrong cells."""
        return math.fsum(each.misplaced for each in self.errors) / len(self.errors)

    def rows_needed(self, share: float = 0.05) -> int:
        """Return from how many rows on the noise misplaces no more than a share of them, on average.

        Parameters
        ----------
        share : float

        Returns
        -------
        int
        """
        return math.ceil(self.misplaced / _check.positive("share", share, "write 0.05, say"))
