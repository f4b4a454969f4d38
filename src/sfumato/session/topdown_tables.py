"""What a session offers for nested places: the TopDown algorithm, for one charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from sfumato import _check
from sfumato.errors import OptionError
from sfumato.mechanisms.base.rational import Number
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss
from sfumato.queries.builder.private_query import Table
from sfumato.queries.engines.engine import Engine
from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.session.counted_release import ChargedRequest, request_key
from sfumato.session.table_releases import TableReleases
from sfumato.synthetic.counting.counting_job import counting_job
from sfumato.synthetic.counting.engine_counts import EngineCounts, read_counts
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.topdown.cell_query import Recode
from sfumato.synthetic.topdown.constraints import CountBound, Invariant
from sfumato.synthetic.topdown.hierarchy import Hierarchy
from sfumato.synthetic.topdown.place_counts import place_domain, place_unit_counts
from sfumato.synthetic.topdown.topdown import TopDown
from sfumato.synthetic.topdown.topdown_release import TopDownRelease
from sfumato.synthetic.topdown.workers.spark_families import SparkFamilies

__all__ = ["TopDownTools"]

_LARGE: Final = 1 << 22
"""Lowest places times cells from which on Spark fits what it counted."""


@final
@dataclass(frozen=True, slots=True)
class _CountedTopDown:
    """TopDown over counts that an engine made."""

    mechanism: TopDown
    intervals: bool
    engine: Engine

    @property
    def privacy_loss(self) -> PrivacyLoss:
        return self.mechanism.privacy_loss

    def release(self, value: EngineCounts, rng: RandomSource) -> TopDownRelease:
        counts = place_unit_counts(self.mechanism.hierarchy, value)
        shown = getattr(self.engine, "display", None) is not None
        return self.mechanism.release(
            counts, rng, intervals=self.intervals, spark=self._spark(), progress=shown
        )

    def _spark(self) -> SparkFamilies | None:
        """Return who fits families where Spark counted, and they are many."""
        hierarchy = self.mechanism.hierarchy
        counts = hierarchy.size(len(hierarchy.names)) * self.mechanism.domain.cells
        if counts < _LARGE or not isinstance(self.engine, SparkEngine):
            return None
        return SparkFamilies(self.engine.session, otherwise_here=True)


class TopDownTools(TableReleases):
    """The door of a session that leads to counts of nested places; base of `Session`."""

    __slots__ = ()

    def topdown(
        self,
        domain: TableDomain,
        *,
        hierarchy: Hierarchy,
        queries: Sequence[Sequence[str | Recode]],
        epsilon: float,
        delta: float,
        levels: Mapping[str, Number] | None = None,
        shares: Sequence[Number] | Mapping[str, Sequence[Number]] | None = None,
        invariants: Sequence[Invariant] = (),
        bounds: Sequence[CountBound] = (),
        table: str | Table | None = None,
        max_rows_contributed: int = 1,
        intervals: bool = True,
    ) -> TopDownRelease:
        """Release whole counts of nested places that add up, charging before any row is read.

        Asking the very same of the same data again returns the committed release, free of charge.

        Parameters
        ----------
        domain : TableDomain
            The columns and their cells, as for `marginals`; without the places' column.
        hierarchy : Hierarchy
            Levels of places. The column of the lowest ones is found in the table by the level's name.
        queries, levels, shares, invariants, bounds
            As in `sfumato.synthetic.TopDown`.
        epsilon, delta : float
            The guarantee; delta must be positive.
        table : str or Table, optional
            As for `marginals`.
        max_rows_contributed : int
            How many rows of a unit count, chosen at random; noise grows in proportion. Where each row is a
            unit it counts once, whatever this says.
        intervals : bool
            Whether all noisy counts are drawn and stored, so that the release has intervals.

        Returns
        -------
        TopDownRelease
            With the receipt of its charge; without where it was committed before. What is outside of the
            guarantee is named in it, and in the ledger's entry.

        Raises
        ------
        ParameterError, QueryError
            If a column is not there or is of another type than its cells, something of the mechanism cannot
            be, or there are too many places: an engine counts up to 2**20 places that are whole numbers one
            after the other, and up to 2**16 other ones. Nothing is charged. If counts that are invariant
            contradict a bound, after the charge, which stays.
        OptionError
            If there are invariants under a privacy policy; nothing is charged.
        BudgetExceeded
            If it does not fit into the budget; nothing is charged, and no row is read.
        EngineError
            If the engine fails after the charge; the charge stays.

        Notes
        -----
        Guarantee: that of `sfumato.synthetic.TopDown` for the session's unit, whose rows are bounded as for
        `marginals`; a row without a place of the hierarchy, or in a structural zero, is left out before.
        *Invariants* are counts of the rows that are counted, published without noise: outside of it and of
        the ledger's budget, whatever epsilon is, and so not for those whom the budget limits.

        Levels are shown as they are done where the session shows progress. Where Spark counts, and places
        times cells are 2**22 or more, its executors fit the families of a level, if they have sfumato.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import sfumato as sf
        >>> from sfumato.synthetic import Hierarchy, TableDomain
        >>> towns = pa.table({"state": ["A", "A", "B"], "town": ["x", "y", "z"]})
        >>> places = Hierarchy.from_table(towns, ["state", "town"], root="country")
        >>> people = pa.table({"id": range(900), "town": ["x", "y", "z"] * 300, "sex": ["f", "m"] * 450})
        >>> with sf.connect(people, privacy_unit="id", epsilon=1.0, delta=1e-6, rng=7) as session:
        ...     released = session.topdown(TableDomain(sex=["f", "m"]), hierarchy=places,
        ...         queries=[(), ("sex",)], epsilon=0.9, delta=1e-7)
        >>> released.counts("state").sum().tolist() == released.counts("country")[0].tolist()
        True
        """
        _check.instance("domain", domain, TableDomain, "declare one with sfumato.synthetic.TableDomain")
        _check.instance("hierarchy", hierarchy, Hierarchy, "make one with Hierarchy.from_table")
        _check.instance("intervals", intervals, bool, "pass True or False")
        neighboring = self._ledger.neighboring
        query = self._rows_of(table, epsilon, delta)
        most = self._rows_counted(query, max_rows_contributed)

        def at_epsilon(smaller: float) -> _CountedTopDown:
            mechanism = TopDown.calibrated(
                hierarchy=hierarchy,
                domain=domain,
                queries=queries,
                epsilon=smaller,
                delta=delta,
                levels=levels,
                shares=shares,
                invariants=invariants,
                bounds=bounds,
                neighboring=neighboring,
                max_rows_contributed=most,
            )
            return _CountedTopDown(mechanism, intervals, self._engine)

        counted = at_epsilon(epsilon)  # its limits are public: they come before those of the engine
        everything = place_domain(hierarchy, domain)
        every = tuple(range(len(everything)))
        counting = counting_job(everything, query.relation, [every], max_rows_contributed=most)
        self._check_rows(query, most)
        if invariants and self._policy is not None:
            raise OptionError(
                "invariants must be left out under a privacy policy, which limits what a query tells, got "
                f"{len(invariants)}; ask for bounds that are public"
            )
        asked: dict[str, object] = {"fingerprint": counted.mechanism.fingerprint, "intervals": intervals}
        request = ChargedRequest(
            kind="topdown",
            key=request_key("topdown", query, epsilon, delta, asked),
            description=_description(counted.mechanism),
            epsilon=epsilon,
            delta=delta,
            mechanism=counted,
            at_epsilon=at_epsilon,
            jobs=(counting.job,),
            read=lambda answers: read_counts(everything, counting, answers[0]),
        )
        released: TopDownRelease = self._charged(request)
        return released


def _description(mechanism: TopDown) -> str:
    """Return what the ledger's entry says."""
    exact = "; ".join(mechanism.outside_guarantee)
    outside = f"; exact, outside of the guarantee: {exact}" if exact else ""
    return f"topdown: {' > '.join(mechanism.hierarchy.levels)} by {', '.join(mechanism.domain)}{outside}"
