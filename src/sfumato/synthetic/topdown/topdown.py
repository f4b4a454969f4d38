"""The TopDown algorithm: noisy counts of nested places, made whole, non-negative and adding up."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Self, final

import numpy as np

from sfumato import _check
from sfumato._progress import StepProgress
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_noise
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.privacy.neighboring import Neighboring
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.domain.structural_zeros import possible_cells
from sfumato.synthetic.topdown.cell_query import CellQuery, Recode, cell_query
from sfumato.synthetic.topdown.constraints import CountBound, Invariant
from sfumato.synthetic.topdown.estimation import LevelEstimate, LevelEstimator
from sfumato.synthetic.topdown.fingerprint import fingerprint
from sfumato.synthetic.topdown.hierarchy import Hierarchy, Nodes
from sfumato.synthetic.topdown.level_run import LevelRun, estimated_levels, family_workers
from sfumato.synthetic.topdown.limits.joint_limits import Constraints, JointLimits
from sfumato.synthetic.topdown.noise_plan import LevelNoise, noise_plan, shares_of
from sfumato.synthetic.topdown.state_file import StateFile
from sfumato.synthetic.topdown.topdown_release import TopDownRelease, all_levels
from sfumato.synthetic.topdown.tree_least_squares import MeasuredTable
from sfumato.synthetic.topdown.unit_counts import unit_counts
from sfumato.synthetic.topdown.workers.level_progress import shown_levels

__all__ = ["TopDown"]

_CELLS: Final = 1 << 20
_COUNTS: Final = 1 << 40
_ROWS: Final = 1 << 20
_REMEDY: Final = "pass epsilon= and delta= to TopDown.calibrated to have it chosen"
_QUERIES: Final = "write [(), ('sex',), ('sex', 'age')]"
_CONSTRAINTS: Final = "pass Invariant('state') or CountBound('block', upper={...})"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TopDown(Mechanism):
    r"""Counts of every place of a hierarchy by the cells of a domain.

    Every query is measured on every level with discrete Gaussian noise on its exact counts. Then, from the
    root down, the children of each place are fitted to their noisy counts all together (weighted least
    squares over non-negative tables that add up to the parent), and rounded to whole numbers with the same
    sums.

    Parameters
    ----------
    hierarchy : Hierarchy
        Levels of places.
    domain : TableDomain
        The columns and their cells; at most 2**20 cells together.
    queries : sequence of sequence of str or Recode
        What is measured on each level: tables of some columns; an empty one is the total.
    rho : int, float or Fraction
        The zCDP of all measurements together.
    levels : mapping of str to number, optional
        Proportions of the budget by level, the root's among them; each the same unless given.
    shares : sequence of number, or mapping of str to such, optional
        Proportions of a level's budget by query, for all levels or by level; each the same unless given. What
        has 0 is not measured.
    invariants : sequence of Invariant
        Counts that are released exactly: outside of the guarantee.
    bounds : sequence of CountBound
        Public numbers that counts are within.
    neighboring : Neighboring
        ADD_REMOVE of a row, REPLACE_ONE or ZERO_OUT.
    max_rows_contributed : int
        The most rows that one person has among those that are counted; noise grows in proportion.

    Raises
    ------
    ParameterError
        If a column or level is unknown, no counts meet all bounds, or constraints by different columns meet
        at too many places.

    Notes
    -----
    Guarantee: the loss is the composition of `DiscreteGaussianVector` over queries and levels, each on counts
    that a neighbor moves by at most `squared_shift`, and is rho-zCDP. All else follows from the noisy counts,
    from public bounds and from the invariants. Conditions: each person has at most ``max_rows_contributed``
    rows, and hierarchy, domain, queries, shares and bounds do not come from the data. *Invariants are
    published without noise*: the guarantee holds between neighbors that agree on them, and protects nothing
    that they determine.

    A row in a structural zero of the domain is not counted, as if it was not there, and released counts are 0
    in all such cells.

    References
    ----------
    Abowd et al., "The 2020 Census Disclosure Avoidance System TopDown Algorithm" (Harvard Data Science
    Review, 2022). Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy" (NeurIPS 2020).

    Examples
    --------
    >>> import pyarrow as pa
    >>> places = Hierarchy.from_table(pa.table({"state": ["A", "A", "B"], "town": ["x", "y", "z"]}),
    ...     ["state", "town"], root="country")
    >>> mechanism = TopDown.calibrated(hierarchy=places, domain=TableDomain(sex=["f", "m"]),
    ...     queries=[(), ("sex",)], invariants=[Invariant("state")], epsilon=1.0, delta=1e-6)
    >>> people = pa.table({"town": ["x"] * 60 + ["y"] * 30 + ["z"] * 50, "sex": ["f", "m"] * 70})
    >>> released = mechanism.release(people, rng=1)
    >>> released.counts("state").tolist(), released.outside_guarantee
    ([90, 50], ('the total at each state',))
    """

    hierarchy: Hierarchy
    domain: TableDomain
    queries: Sequence[Sequence[str | Recode]]
    rho: Number
    levels: Mapping[str, Number] | None = None
    shares: Sequence[Number] | Mapping[str, Sequence[Number]] | None = None
    invariants: Sequence[Invariant] = ()
    bounds: Sequence[CountBound] = ()
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    max_rows_contributed: int = 1
    _queries: tuple[CellQuery, ...] = field(init=False, repr=False, compare=False)
    _shares: tuple[tuple[Fraction, ...], ...] = field(init=False, repr=False, compare=False)
    _possible: Nodes = field(init=False, repr=False, compare=False)
    _constraints: Constraints = field(init=False, repr=False, compare=False)
    _stated: JointLimits | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check.instance("hierarchy", self.hierarchy, Hierarchy, "make one with Hierarchy.from_table")
        _check.instance("domain", self.domain, TableDomain, "declare one with sfumato.synthetic.TableDomain")
        _check.instance("neighboring", self.neighboring, Neighboring)
        object.__setattr__(self, "rho", as_number("rho", self.rho, _REMEDY))
        most = _check.integer("max_rows_contributed", self.max_rows_contributed, minimum=1)
        if most > _ROWS:
            _check.refuse("max_rows_contributed", f"be at most {_ROWS}", most, "bound the rows of a person")
        units = self.hierarchy.size(len(self.hierarchy.names))
        if self.domain.cells > _CELLS or units * self.domain.cells > _COUNTS:
            rule = f"have at most {_CELLS} cells, and at most {_COUNTS} with the lowest places multiplied"
            found = f"it has {self.domain.cells} and there are {units} places"
            _check.refuse_state("domain", rule, found, "take fewer columns or bins")
        asked: Any = self.queries
        if not isinstance(asked, list | tuple) or not asked:
            _check.refuse_type("queries", "be a list of lists of columns", asked, _QUERIES)
        for name, kind in (("invariants", Invariant), ("bounds", CountBound)):
            given = getattr(self, name)
            if not isinstance(given, list | tuple) or not all(isinstance(each, kind) for each in given):
                _check.refuse_type(name, f"be a list of {kind.__name__}", given, _CONSTRAINTS)
            object.__setattr__(self, name, tuple(given))
            for each in given:
                self.hierarchy.depth(each.level)
        queries = tuple(cell_query(self.domain, each) for each in self.queries)
        shares = shares_of(self.hierarchy, len(queries), self.levels, self.shares)
        object.__setattr__(self, "_queries", queries)
        object.__setattr__(self, "_shares", shares)
        possible = _possible(self.domain)
        constraints = Constraints.of(self.hierarchy, self.domain, possible, self.invariants, self.bounds)
        object.__setattr__(self, "_possible", possible)
        object.__setattr__(self, "_constraints", constraints)
        object.__setattr__(self, "_stated", constraints.limits())  # bounds among themselves

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, **parameters: Any) -> Self:
        """Return the mechanism with the smallest noise whose loss meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            The guarantee; delta must be positive.
        **parameters
            All of the class but rho.

        Returns
        -------
        TopDown
        """
        request = PrivacyTarget.approximate(epsilon, delta, "take a delta far below 1 over the rows, as 1e-9")
        start = analytic_gaussian_stddev(sensitivity=1.0, epsilon=request.epsilon, delta=request.delta)
        template = cls(rho=1, **parameters)
        noise = minimum_noise(lambda noise: template._price(1 / (2 * noise**2)), request, Fraction(start))
        return cls(rho=1 / (2 * noise**2), **parameters)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return self._price(Fraction(self.rho))

    @property
    def outside_guarantee(self) -> tuple[str, ...]:
        """What is released exactly, in words: for a receipt and for the release."""
        return tuple(str(each) for each in self.invariants)

    @property
    def fingerprint(self) -> str:
        """A hash of what is asked: of all parameters but ``rho``, which says how exactly."""
        return fingerprint(
            self.hierarchy,
            {
                "domain": self.domain.to_json(),
                "invariants": self.outside_guarantee,
                "max_rows_contributed": self.max_rows_contributed,
                "neighboring": self.neighboring.value,
                "queries": [[query.name, *query.columns] for query in self._queries],
                "shares": [[str(share) for share in row] for row in self._shares],
            },
            [query.group_of for query in self._queries],
            self._stated,
        )

    def stddev(self, level: str, *columns: str) -> float:
        """Return the standard deviation of a count of one place from its own level's noise, before a release.

        Parameters
        ----------
        level : str
        *columns : str
            Of a query, in any order.

        Returns
        -------
        float
            What other queries and levels add makes the estimates of a release better.

        Raises
        ------
        ParameterError
            If no query has these columns, or it is not measured on that level.
        """
        depth, wanted = self.hierarchy.depth(level), cell_query(self.domain, columns).columns
        for each in self._noise(Fraction(self.rho)):
            query = self._queries[each.query]
            if each.depth == depth and query.columns == wanted and not query.recoded:
                return each.distribution.stddev
        return _check.refuse(
            "columns", f"be measured on the level {level!r}", columns, "name those of a query"
        )

    def release(
        self,
        value: Any,
        rng: Rng = None,
        *,
        intervals: bool = True,
        processes: int = 1,
        spark: Any = None,
        state: str | os.PathLike[str] | None = None,
        progress: StepProgress | bool | None = None,
    ) -> TopDownRelease:
        """Measure the counts of a table and release whole counts of all places.

        Parameters
        ----------
        value : frame or UnitCounts
            Private: rows with their lowest place, or counts.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.
        intervals : bool
            Whether all noisy counts are held, so that the release has intervals. Without, noise is drawn for
            those counts only that a fit needs: of cells that the parent has people in.
        processes : int
            How many fit families. They see noisy counts only.
        spark : pyspark.sql.SparkSession, optional
            Whose executors fit families instead, with the same release.
        state : path, optional
            A folder for levels that are done; a release that was ended goes on from there. It holds nothing
            of rows; do not use it for another table.
        progress : callable or bool, optional
            Called with a level's name, how many of its places are done, and of how many. True shows a bar,
            None only on a terminal and in a notebook.

        Returns
        -------
        TopDownRelease

        Raises
        ------
        ParameterError
            If invariants contradict bounds, or the folder cannot be written or is of another mechanism.
        """
        with shown_levels(progress, self.hierarchy.levels) as show:
            workers = family_workers(processes, spark)
            file = None if state is None else StateFile.begun(state, self._digest(intervals=intervals))
            return self._released(value, random_source(rng), LevelRun(intervals, workers, file, show))

    def _released(self, value: Any, source: RandomSource, run: LevelRun) -> TopDownRelease:
        lowest = unit_counts(self.hierarchy, self.domain, value)
        cells, units = self.domain.cells, self.hierarchy.size(len(self.hierarchy.names))
        exact = all_levels(self.hierarchy, lowest.lowest(units, cells, self._possible), cells)
        invariant = self._constraints.exact(exact)
        limits = self._constraints.limits(invariant) if self.invariants else self._stated
        noise = self._noise(Fraction(self.rho))
        estimator = LevelEstimator(
            self.hierarchy,
            self._queries,
            noise,
            limits,
            cells,
            self._possible,
            run.intervals,
            run.workers,
            run.progress,
        )
        estimates, simulated = estimated_levels(estimator, exact, source, run.file)
        return TopDownRelease(
            value=tuple(each.counts for each in estimates),
            loss=self.privacy_loss,
            neighboring=self.neighboring,
            simulated=simulated,
            hierarchy=self.hierarchy,
            domain=self.domain,
            outside_guarantee=self.outside_guarantee,
            measured=self._measured(noise, estimates, invariant) if run.intervals else None,
            unfinished=sum(each.unfinished for each in estimates),
        )

    def _noise(self, rho: Fraction) -> tuple[LevelNoise, ...]:
        return noise_plan(
            self.hierarchy,
            self._queries,
            self._shares,
            rho,
            neighboring=self.neighboring,
            rows=self.max_rows_contributed,
        )

    def _price(self, rho: Fraction) -> PrivacyLoss:
        return compose(each.loss(self.neighboring) for each in self._noise(rho))

    def _measured(
        self,
        noise: Sequence[LevelNoise],
        estimates: Sequence[LevelEstimate],
        exact: Sequence[Mapping[int, Nodes]],
    ) -> Mapping[int, Sequence[MeasuredTable]]:
        """Return what estimates with intervals are made of: all but recoded queries."""
        found: dict[int, list[MeasuredTable]] = {depth: [] for depth in range(len(estimates))}
        for each in noise:
            query, noisy = self._queries[each.query], estimates[each.depth].noisy
            if not query.recoded and noisy is not None:
                table = MeasuredTable(query.columns, noisy[each.query], float(each.sigma**2))
                found[each.depth].append(table)
        for query, by_depth in zip(self._constraints.queries, exact, strict=True):
            for depth, counts in by_depth.items() if not query.recoded else ():
                found[depth].append(MeasuredTable(query.columns, counts, 0.0))
        return found

    def _digest(self, *, intervals: bool) -> str:
        """Return a hash of all parameters, for files of levels that are done."""
        sigmas = [str(each.sigma) for each in self._noise(Fraction(self.rho))]
        return hashlib.sha256(repr((self.fingerprint, sigmas, intervals)).encode()).hexdigest()


def _possible(domain: TableDomain) -> Nodes:
    """Return the cells that may hold people."""
    every = range(len(domain))
    found: Nodes = np.flatnonzero(possible_cells(every, domain.sizes, domain.structural_zeros))
    if not len(found):
        rule, remedy = "have a cell that can hold a row", "declare fewer structural zeros"
        _check.refuse_state("domain", rule, "all are structural zeros", remedy)
    return found
