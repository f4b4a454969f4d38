"""Noisy marginals with the least squared error: discrete Gaussian noise on residuals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from types import MappingProxyType
from typing import Any, Final, Self, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_noise
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, floor_log2, plain, power_of_two
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.privacy.neighboring import Neighboring
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.column_strategy import CellStrategy, RangeStrategy, squared_shift
from sfumato.synthetic.marginals.marginals_release import MarginalsRelease
from sfumato.synthetic.marginals.ordered_plan import ordered_plan
from sfumato.synthetic.marginals.residual_noise import clique_of
from sfumato.synthetic.marginals.residual_plan import AskedColumn
from sfumato.synthetic.marginals.table_counts import table_counts
from sfumato.synthetic.marginals.workload import Clique, Marginals, subsets

__all__ = ["ResidualMechanism"]

_CELLS: Final = 1 << 24
_TOTAL: Final = 1 << 25
_ROWS: Final = 1 << 20
_UNITS: Final = 1 << 36
_BITS: Final = 20
_REMEDY: Final = "pass epsilon= and delta= to ResidualMechanism.calibrated to have it chosen"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualMechanism(Mechanism):
    r"""All marginals of a workload, unbiased, consistent, and with the least total squared error.

    Parameters
    ----------
    domain : TableDomain
        The columns and their cells.
    workload : Marginals
        The tables wanted; each of at most 2**24 cells.
    scale : int, float or Fraction
        By how much the noise is multiplied; at 1 the loss is about that of 1-Gaussian DP.
    neighboring : Neighboring
        ADD_REMOVE of a row, REPLACE_ONE or ZERO_OUT.
    max_rows_contributed : int
        The most rows that one person has among those that are counted; noise grows in proportion.

    Raises
    ------
    ParameterError
        If a table is too large, or all of them together are, or a column is not in the domain.

    Notes
    -----
    Guarantee: the loss is the composition of `DiscreteGaussianVector` over the residuals. The residual of
    some columns is the product of :math:`n_i I - J`, over them, of their table of counts: whole numbers,
    which one row moves by at most `l2_squared_shift` in squared L2 norm, and to which independent discrete
    Gaussian noise is added. A row that has no cell is not counted, as if it was not there. The k rows of a
    person move it by at most k times as much in L2 norm, by the triangle inequality: each is added, removed,
    or replaced by one of as many. Conditions: each person has at most ``max_rows_contributed`` rows, and the
    domain does not come from the data.

    Tables are sums of residuals, so tables that share columns agree, and all say the same number of rows. No
    unbiased linear measurement with Gaussian noise has a smaller sum of squared errors over the cells at the
    same cost. Discrete noise on centred counts would not have that cost: the noise is drawn on whole numbers
    first and centred afterwards.

    A column that is asked by prefixes or ranges is measured by the whole-numbered matrix of
    `ordered_strategy` in the place of :math:`n_i I - J`, which the bound of `squared_shift` holds for. With
    one such column the squared error is that of the best linear measurement, but for 0.1 %; with several, and
    over several tables, it is at most that of answers from cells. Whole numbers are taken modulo 2**64, which
    is post-processing: with such columns counts are right up to 2**26 rows at least.

    References
    ----------
    Xiao, He, Zhang, Kifer, "An optimal and scalable matrix mechanism for noisy marginals under convex loss
    functions" (NeurIPS 2023). Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy"
    (NeurIPS 2020).

    Examples
    --------
    >>> import pyarrow as pa
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"])
    >>> mechanism = ResidualMechanism.calibrated(domain, Marginals.every(2), epsilon=1.0, delta=1e-6)
    >>> round(mechanism.stddev("age", "sex"), 1), mechanism.privacy_loss.epsilon(1e-6) <= 1.0
    (4.2, True)
    >>> people = pa.table({"age": ["young", "old"] * 500, "sex": ["f"] * 600 + ["m"] * 400})
    >>> released = mechanism.release(people, rng=1)
    >>> released.marginal("sex").counts.round().tolist()
    [601.0, 393.0]
    """

    domain: TableDomain
    workload: Marginals
    scale: Number
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    max_rows_contributed: int = 1
    _variances: Mapping[Clique, float] = field(init=False, repr=False, compare=False)
    _columns: tuple[AskedColumn, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check.instance("domain", self.domain, TableDomain, "declare one with sfumato.synthetic.TableDomain")
        _check.instance("workload", self.workload, Marginals, "write Marginals.every(2), say")
        _check.instance("neighboring", self.neighboring, Neighboring)
        object.__setattr__(self, "scale", as_number("scale", self.scale, _REMEDY))
        most = _check.integer("max_rows_contributed", self.max_rows_contributed, minimum=1)
        if most > _ROWS:
            _check.refuse("max_rows_contributed", f"be at most {_ROWS}", most, "bound the rows of a person")
        sizes, cliques = self.domain.sizes, self.workload.cliques(self.domain)
        largest = max((prod(sizes[i] for i in clique) for clique in cliques), default=1)
        if largest > _CELLS:
            found = f"the largest has {largest}"
            _check.refuse_state(
                "workload", f"be of tables of at most {_CELLS} cells", found, "take fewer columns or bins"
            )
        total = max((prod(1 + sizes[i] for i in clique) for clique in cliques), default=1)  # of one table
        if total <= _TOTAL:
            total = sum(prod(sizes[i] for i in part) for part in subsets(cliques))
        if total > _TOTAL:
            found = f"they are {total}"
            remedy = "list the tables that are wanted, or take fewer bins"
            _check.refuse_state("noisy numbers of the workload", f"be at most {_TOTAL}", found, remedy)
        plan, ordered = ordered_plan(self.domain, self.workload, two=self._two)
        object.__setattr__(self, "_variances", plan.variances)
        columns = (ordered.get(i) or AskedColumn(CellStrategy(size)) for i, size in enumerate(sizes))
        object.__setattr__(self, "_columns", tuple(columns))
        if any(self._units(clique) > _UNITS for clique in cliques if ordered):
            rule, found = (
                "ask fewer columns of one table by prefixes or ranges",
                "whole numbers would overflow",
            )
            _check.refuse_state("workload", rule, found, "ask the others by cells, or take wider bins")

    @classmethod
    def calibrated(
        cls,
        domain: TableDomain,
        workload: Marginals,
        *,
        epsilon: float,
        delta: float,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
        max_rows_contributed: int = 1,
    ) -> Self:
        """Return the mechanism with the smallest noise whose loss meets (epsilon, delta).

        Parameters
        ----------
        domain, workload, neighboring, max_rows_contributed
            As in the class.
        epsilon, delta : float
            The guarantee; delta must be positive.

        Returns
        -------
        ResidualMechanism
        """
        request = PrivacyTarget.approximate(epsilon, delta, "take a delta far below 1 over the rows, as 1e-9")
        start = analytic_gaussian_stddev(sensitivity=1.0, epsilon=request.epsilon, delta=request.delta)
        given: dict[str, Any] = {"domain": domain, "workload": workload, "neighboring": neighboring}
        given["max_rows_contributed"] = max_rows_contributed
        template = cls(scale=max(1 << 20, start), **given)
        return cls(scale=plain(minimum_noise(template._price, request, Fraction(start))), **given)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return self._price(Fraction(self.scale))

    def stddev(self, *columns: str) -> float:
        """Return the standard deviation of each count of a table, before anything is spent.

        Where columns of it are asked by prefixes or ranges, the counts are those of all prefixes or ranges,
        and this is the root of their mean variance.

        Parameters
        ----------
        *columns : str
            Of a table of the workload, or some columns of one.

        Returns
        -------
        float
        """
        clique, inner = clique_of(self.domain, columns, self._variances)
        parts = subsets([inner])
        distributions, variance = self._distributions(parts), 0.0
        for part in parts:
            asked = ((place, self._columns[place]) for place in clique)
            share = prod(each.inner if place in part else each.outer for place, each in asked)
            variance += share * (distributions[part].stddev / self._units(part)) ** 2
        return math.sqrt(variance / prod(self.domain.sizes[place] for place in clique))

    @property
    def residuals(self) -> tuple[Clique, ...]:
        """The columns of each residual that is measured, by number."""
        return tuple(self._variances)

    @property
    def cells(self) -> int:
        """How many noisy numbers are drawn: a measure of time and memory."""
        return sum(prod(self.domain.sizes[place] for place in part) for part in self._variances)

    def release(self, value: Any, rng: Rng = None) -> MarginalsRelease:
        """Count the rows of a table and release all residuals with noise.

        Parameters
        ----------
        value : frame or TableCounts
            Of Arrow, pandas, Polars or another library, or counts by cell; private. At most 2**38 rows.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        MarginalsRelease
        """
        source, table = random_source(rng), table_counts(self.domain, value)
        found, distributions = {}, self._distributions()
        for part, distribution in distributions.items():
            strategies = [self._columns[place].strategy for place in part]
            steps = table.counts(part)
            for axis, strategy in enumerate(strategies):
                steps = strategy.measured(steps, axis)
            noise = np.asarray(distribution.sample(steps.shape or (1,), source)).reshape(steps.shape)
            values = (steps + noise) / self._units(part)
            for axis, strategy in enumerate(strategies):
                values = strategy.estimated(values, axis)
            found[part] = values
        return self._release_as(
            MarginalsRelease,
            MappingProxyType(found),
            source,
            domain=self.domain,
            distributions=MappingProxyType(distributions),
            strategies=MappingProxyType(self._strategies()),
        )

    @property
    def _two(self) -> bool:
        return self.neighboring is not Neighboring.ADD_REMOVE

    def _units(self, part: Clique) -> int:
        return prod(self._columns[place].strategy.unit for place in part)

    def _strategies(self) -> dict[int, RangeStrategy]:
        found = {place: asked.strategy for place, asked in enumerate(self._columns)}
        return {place: each for place, each in found.items() if isinstance(each, RangeStrategy)}

    def _noise(self, part: Clique, scale: Fraction) -> Fraction:
        """Return the parameter of a residual's noise, at least a step: a short number, rounded up."""
        steps = self.max_rows_contributed * self._units(part)
        exact = scale * Fraction(math.sqrt(self._variances[part])) * steps
        unit = power_of_two(floor_log2(exact) - _BITS)
        return max(Fraction(1), math.ceil(exact / unit) * unit)

    def _distributions(
        self, parts: Iterable[Clique] | None = None
    ) -> dict[Clique, DiscreteGaussianDistribution]:
        """Return the noise of residuals: of all unless some are named."""
        scale, wanted = Fraction(self.scale), self._variances if parts is None else parts
        return {part: DiscreteGaussianDistribution(self._noise(part, scale)) for part in wanted}

    def _price(self, scale: Fraction) -> PrivacyLoss:
        return compose(
            DiscreteGaussianVector(
                self._noise(part, scale),
                self.max_rows_contributed**2
                * squared_shift([self._columns[place].strategy for place in part], two=self._two),
                neighboring=self.neighboring,
            )
            for part in self._variances
        )
