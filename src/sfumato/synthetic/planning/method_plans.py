"""What each method would do with a workload: its noise in each table, memory and time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Final, TypeAlias, final

from sfumato import _check
from sfumato.privacy.neighboring import Neighboring
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.residual_mechanism import ResidualMechanism
from sfumato.synthetic.marginals.workload import Clique, Marginals

__all__ = ["METHODS", "MethodPlan", "PlanRequest", "TableError"]

_MEAN_ABSOLUTE: Final = math.sqrt(2 / math.pi)
"""Mean magnitude of a normal variable of standard deviation 1."""
_BYTES: Final = 40
_SECONDS_PER_TABLE: Final = 0.004
_SECONDS_PER_CELL: Final = 1e-7


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
    """

    domain: TableDomain
    workload: Marginals
    epsilon: float
    delta: float
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    max_rows_contributed: int = 1

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

    def residuals(self, workload: Marginals) -> ResidualMechanism:
        """Return the mechanism that releases the marginals of a workload for this guarantee.

        Parameters
        ----------
        workload : Marginals

        Returns
        -------
        ResidualMechanism
        """
        return ResidualMechanism.calibrated(
            self.domain,
            workload,
            epsilon=self.epsilon,
            delta=self.delta,
            neighboring=self.neighboring,
            max_rows_contributed=self.max_rows_contributed,
        )


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
        hold as many rows.
    misplaced : float
        How many rows the noise puts into wrong cells, on average: half of the sum of all cells' mean
        magnitudes of noise. Over the number of rows it is a total variation distance.
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
        Of each table of the workload; what the noise does, and no more.
    memory : int
        Bytes, about.
    seconds : float
        Of one core, about; without reading the rows.
    unbiased : bool
        Whether noise is all of the error.
    remark : str
        What else to know, a sentence.
    """

    name: str
    errors: tuple[TableError, ...]
    memory: int
    seconds: float
    unbiased: bool
    remark: str

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


def _residual(request: PlanRequest) -> MethodPlan:
    """Return the plan of measuring all tables at once by residuals."""
    mechanism, names = request.residuals(request.workload), list(request.domain)
    errors = []
    for clique in request.cliques:
        columns, cells = tuple(names[place] for place in clique), request.cells(clique)
        stddev = mechanism.stddev(*columns)
        errors.append(
            TableError(
                columns=columns,
                cells=cells,
                stddev=stddev,
                misplaced=cells * _MEAN_ABSOLUTE * stddev / 2,
            )
        )
    return MethodPlan(
        name="residual",
        errors=tuple(errors),
        memory=_BYTES * mechanism.cells,
        seconds=_SECONDS_PER_TABLE * len(mechanism.residuals) + _SECONDS_PER_CELL * mechanism.cells,
        unbiased=True,
        remark="counts are unbiased, with intervals; nearly empty cells are lost in the noise",
    )


def _independent(request: PlanRequest) -> MethodPlan:
    """Return the plan of measuring single columns, and multiplying them."""
    mechanism = request.residuals(Marginals.every(1))
    names, sizes = list(request.domain), request.domain.sizes
    single = [mechanism.stddev(name) for name in names]
    errors = []
    for clique in request.cliques:
        cells = request.cells(clique)
        stddev = math.hypot(*(single[place] * sizes[place] / cells for place in clique))
        misplaced = math.fsum(sizes[place] * _MEAN_ABSOLUTE * single[place] / 2 for place in clique)
        columns = tuple(names[place] for place in clique)
        errors.append(TableError(columns=columns, cells=cells, stddev=stddev, misplaced=misplaced))
    return MethodPlan(
        name="independent",
        errors=tuple(errors),
        memory=_BYTES * (mechanism.cells + max(request.cells(clique) for clique in request.cliques)),
        seconds=_SECONDS_PER_TABLE * len(mechanism.residuals) + _SECONDS_PER_CELL * mechanism.cells,
        unbiased=False,
        remark="tables are products of the columns of Marginals.every(1); "
        "what columns have to do with one another is lost",
    )


Planner: TypeAlias = Callable[[PlanRequest], MethodPlan]

METHODS: Final[tuple[Planner, ...]] = (_residual, _independent)
"""Each method's plan; those that say more of the data come first."""
