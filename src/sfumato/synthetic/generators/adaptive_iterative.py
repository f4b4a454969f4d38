"""AIM: the tables that a model predicts worst are measured, one after another."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any, Final, final

from sfumato import _check
from sfumato.synthetic.generators.adaptive_rounds import AdaptiveRounds, RoundPlan, round_noise
from sfumato.synthetic.generators.cell_groups import CellGroups
from sfumato.synthetic.generators.generator import Generator
from sfumato.synthetic.generators.private_table import PrivateTable
from sfumato.synthetic.generators.public_noise import PublicNoise
from sfumato.synthetic.graphical_model.dual_fit import FittedModel
from sfumato.synthetic.marginals.workload import Clique, Marginals, subsets

__all__ = ["AIM"]

_CELLS: Final = 1 << 24
_COLUMNS: Final = 16
_WEIGHTS: Final = 1 << 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AIM(Generator):
    r"""A model of the tables of a workload that it would otherwise predict worst (adaptive and iterative).

    Parameters
    ----------
    domain, rho, neighboring, max_rows_contributed, prior
        As in `Generator`.
    workload : Marginals
        The tables that should be right; all pairs of columns unless given. Each has at most 2**24 cells and
        16 columns, as tables of fewer columns of it may be measured too.
    max_cells : int
        The most cells of the model, over all cliques of its junction tree: a measure of time and memory. More
        cells let more tables be measured. What structural zeros need is not among them.
    rounds : int, optional
        How many tables are measured, about; twice the number of columns unless given.

    Raises
    ------
    ParameterError
        If a table of the workload is too large.

    Notes
    -----
    Guarantee: rho-zCDP, by the fully adaptive composition theorem for zCDP (Whitehouse, Ramdas, Rogers, Wu
    2023): see `PrivateTable`, through which each answer goes. Questions, noise, the cost of a round and the
    end follow from released values alone. Conditions: each person has at most ``max_rows_contributed`` rows,
    and the domain, the workload and its weights do not come from the data.

    The tables of all columns are measured, and cells with few rows merged. Then each round chooses a table of
    the workload, or one of fewer columns of it, by the exponential mechanism. Its score is the L1 distance of
    counts and prediction, less the error that noise would make, times the root of the weights of the tables
    of the workload that have it in them, each by how much larger its squared error is where prefixes or
    ranges are asked instead of cells. Tables that would make the model too large are left out. It is
    measured, with less noise the more cells it has, and the model is fitted again. Where a measurement has
    moved the model by less than its noise, rounds become twice as expensive. Where the tables of columns are
    mostly noise, as with a small budget or few rows, they get most of the budget.

    References
    ----------
    McKenna, Mullins, Sheldon, Miklau, "AIM: an adaptive and iterative mechanism for differentially private
    synthetic data" (VLDB 2022).

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.synthetic import TableDomain
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"], income=["low", "high"])
    >>> generator = AIM.calibrated(domain, epsilon=1.0, delta=1e-6)
    >>> people = pa.table({"age": ["young", "old"] * 500, "sex": ["f"] * 600 + ["m"] * 400,
    ...     "income": ["low"] * 600 + ["high"] * 400})
    >>> model = generator.release(people, rng=1)
    >>> (model.marginal("sex", "income") / model.total).round(1).tolist()
    [[0.6, 0.0], [0.0, 0.4]]
    """

    workload: Marginals = field(default_factory=partial(Marginals.every, 2))
    max_cells: int = 50_000
    rounds: int | None = None

    def _check_own(self) -> None:
        _check.instance("workload", self.workload, Marginals, "write Marginals.every(2), say")
        _check.integer("max_cells", self.max_cells, minimum=1)
        if self.rounds is not None:
            _check.integer("rounds", self.rounds, minimum=1)
        sizes = self.domain.sizes
        cliques = () if len(sizes) == 1 else self.workload.cliques(self.domain)
        largest = max((prod(sizes[i] for i in clique) for clique in cliques), default=1)
        if largest > _CELLS:
            found = f"the largest has {largest}"
            remedy = "take fewer columns or bins"
            _check.refuse_state("workload", f"be of tables of at most {_CELLS} cells", found, remedy)
        widest = max(map(len, cliques), default=0)
        if widest > _COLUMNS:
            rule = f"have at most {_COLUMNS} columns in each table"
            _check.refuse_state("workload", rule, f"one has {widest}", "take fewer")

    @classmethod
    def _regarded(cls, workload: Marginals | None) -> dict[str, Any]:
        return {} if workload is None else {"workload": workload}

    def public_noise(self, rows: float | None = None) -> PublicNoise:
        """Return the noise of the columns' tables, and of others, were they measured in the first round.

        Parameters
        ----------
        rows : float, optional
            How many rows there are, about: where columns would be mostly noise they get most of the budget.

        Returns
        -------
        PublicNoise
        """
        return round_noise(self._plan(), self.domain.sizes, rows)

    def _fitted(self, table: PrivateTable) -> tuple[CellGroups, FittedModel]:
        return AdaptiveRounds(table, self._plan()).run()

    def _plan(self) -> RoundPlan:
        return RoundPlan(
            weights=self._candidates(),
            rho=Fraction(self.rho),
            max_cells=self.max_cells,
            rounds=self.rounds or 2 * len(self.domain),
            shift=self._shift,
            base=self._base(),
        )

    def _candidates(self) -> dict[Clique, int]:
        """Return tables of the workload and of fewer columns of them, with whole weights."""
        if len(self.domain) == 1:
            return {}
        totals, cliques = dict[Clique, float](), self.workload.cliques(self.domain)
        several = (self.workload.weight(place) for place, clique in enumerate(cliques) if len(clique) > 1)
        most = max(several, default=1.0)  # of sums that may be beyond floats
        for place, clique in enumerate(cliques):
            for part in subsets([clique]):
                if len(part) > 1:
                    weight = self.workload.weight(place) / most
                    if self.workload.ordered:
                        weight *= self.workload.error_factor(self.domain, clique, part)
                    totals[part] = totals.get(part, 0.0) + weight
        heaviest = max(totals.values(), default=1.0)
        return {
            clique: max(1, round(math.sqrt(total / heaviest) * _WEIGHTS)) for clique, total in totals.items()
        }
