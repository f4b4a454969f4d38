"""Counters: sums so far over a table that grows, released period after period for one charge.

Each period's bounded sums come from the engine like those of any query; noise that is correlated over the
periods is added once for all, so that the sum after a thousand periods has little more of it than the first.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato._display import named
from sfumato.errors import SchemaError, SourceError
from sfumato.mechanisms.base.rational import sqrt_up
from sfumato.mechanisms.factorization.continual_sum import ContinualSum
from sfumato.mechanisms.factorization.linear_release import LinearRelease
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.square_root import SquareRoot
from sfumato.mechanisms.factorization.stream_mechanism import SumStream
from sfumato.numerics.interval import Interval
from sfumato.privacy.interpretation.plotting import axes, draw_line, label_text
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.queries.builder.private_query import PrivateQuery
from sfumato.queries.builder.query_session import QuerySession
from sfumato.queries.continual.counter_key import counter_key
from sfumato.queries.continual.parameters import CounterParameters, require_countable
from sfumato.queries.continual.schedule import Moment, Schedule
from sfumato.queries.continual.state import CounterState, RecordedSource
from sfumato.queries.plan.query import AggregationJob, Query
from sfumato.queries.plan.schema import ARROW_TYPES
from sfumato.queries.plan.sql_text import name_sql
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.release.display import plain_rows

__all__ = ["Counter", "CounterRelease", "open_counter"]

_PERIOD_INDEX = "sfumato_period_place"


@final
@dataclass(frozen=True, slots=True)
class CounterRelease:
    """The sums so far after each period that has been released, with their error; it holds no raw data.

    Parameters
    ----------
    schedule : Schedule
    keys : pyarrow.Table
        The public groups, a row for each; no column where there are none.
    sums : mapping of str to tuple of LinearRelease
        For each aggregate and period the sums so far, one for each group.
    scales : mapping of str to float
        What one step of a sum is worth.
    loss : PrivacyLoss
        Of all periods together, released or not.
    """

    schedule: Schedule
    keys: pa.Table
    sums: Mapping[str, tuple[LinearRelease, ...]]
    scales: Mapping[str, float]
    loss: PrivacyLoss

    @property
    def periods(self) -> int:
        """How many periods have been released."""
        return len(next(iter(self.sums.values())))

    def to_arrow(self, *, intervals: bool = False, level: float = 0.95) -> pa.Table:
        """Return a row for each period and group: ``period`` (its beginning), the keys, and the sums so far.

        Parameters
        ----------
        intervals : bool
            Put ``<name>_lower`` and ``<name>_upper`` after every sum.
        level : float
            Coverage of each interval, for the bounded sums.
        """
        groups = max(1, self.keys.num_rows)
        begins = [self.schedule.begin(step) for step in range(self.periods) for _ in range(groups)]
        # typed, so that the table has the same columns before the first period is released
        made: dict[str, Any] = {"period": pa.array(begins, pa.scalar(self.schedule.begin(0)).type)}
        for name in self.keys.column_names:
            column = self.keys[name].combine_chunks()
            made[name] = pa.concat_arrays([column] * self.periods) if self.periods else column.slice(0, 0)
        for name, released in self.sums.items():
            scale = self.scales[name]
            made[name] = pa.array(_joined([release.value for release in released]) * scale)
            if intervals:
                ends = [release.interval(level) for release in released]
                made[f"{name}_lower"] = pa.array(_joined([end.lower for end in ends]) * scale)
                made[f"{name}_upper"] = pa.array(_joined([end.upper for end in ends]) * scale)
        return pa.table(list(made.values()), names=list(made))

    def plot(
        self, ax: Any = None, *, aggregate: str | None = None, level: float = 0.95, most: int = 30
    ) -> Any:
        """Draw the sums so far over the periods, a line for each group within its intervals; return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        aggregate : str, optional
            Which sum; the first one if left out.
        level : float
            Coverage of each interval.
        most : int
            How many groups are drawn at most, the first ones; at least 1.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ParameterError
            If there is no such sum.
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        name = next(iter(self.sums)) if aggregate is None else aggregate
        if name not in self.sums:
            listed = ", ".join(map(repr, self.sums))
            _check.refuse("aggregate", f"be one of {listed}", aggregate, "name a sum of the counter")
        most = _check.integer("most", most, minimum=1)
        table = self.to_arrow(intervals=True, level=level)
        columns = [table[each].to_numpy() for each in (name, f"{name}_lower", f"{name}_upper")]
        begins = [self.schedule.begin(step) for step in range(self.periods)]
        groups = list(plain_rows(self.keys))
        ax = axes(ax)
        for place in range(min(most, max(1, len(groups)))):
            sums, lower, upper = (column[place :: max(1, len(groups))] for column in columns)
            label = ", ".join(map(named, groups[place])) if groups else None
            draw_line(begins, sums, Interval(lower, upper), ax=ax, label=label)
        ax.set_ylabel(label_text(f"{name}, so far"))
        ax.set_xlabel("period")
        if groups:
            ax.legend(title=label_text(", ".join(self.keys.column_names)))
        if len(groups) > most:
            ax.set_title(f"the first {most:,} of {len(groups):,} groups")
        return ax


def _joined(values: list[Any]) -> NDArray[np.float64]:
    return np.concatenate([np.atleast_1d(np.asarray(value, np.float64)) for value in values] or [np.zeros(0)])


@final
class Counter:
    """Releases sums so far, period after period; made by ``session.counter``.

    Notes
    -----
    Guarantee: all that a counter ever releases has its ``loss``, which the ledger was charged when it was
    opened, under adding or removing one unit (or one row, where each is a unit: event-level). Conditions: a
    unit counts in the first ``max_periods`` of the periods that it has rows in, and in
    ``max_groups_contributed`` groups of each, which is a function of its own rows; periods that were released
    are never computed again; so over all periods a unit moves each measure as `ContinualSum` presupposes,
    whose theorem is Denisov et al. 2022, Theorem 2.1, for noise on the integers. Rows of periods that were
    released must stay in the table as long as the counter lives, and so must the public rows that they are
    joined with: a unit whose early rows are taken away, or match no more, would count in later periods
    instead.

    A unit's rows that arrive after their period was released are not counted.
    """

    def __init__(self, session: QuerySession[object], plan: _Streams, state: CounterState) -> None:
        self._session = session
        self._plan = plan
        self._state = state
        self._streams = [SumStream(mechanism, state.source) for mechanism in plan.mechanisms]
        self._released: list[list[LinearRelease]] = [[] for _ in plan.mechanisms]
        self._one_at_a_time = threading.Lock()
        self._process: int | None = os.getpid()
        for step in state.steps:
            self._send(step)

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of all periods together."""
        return self._plan.loss

    @property
    def released(self) -> int:
        """How many periods have been released."""
        return len(self._state.steps)

    def refresh(self, until: Moment) -> CounterRelease:
        """Release every period that has ended by a moment; earlier ones are shown again, free of charge.

        Parameters
        ----------
        until : date or datetime
            In UTC. The table must hold all rows of the periods before it.

        Raises
        ------
        ParameterError
            If it is no date; nothing is released.
        EngineError
            If the engine fails; the periods before it are released, asking again goes on from there.
        SourceError
            If the counter is closed, or is another process's: who goes on with its state would release the
            same period with other noise.
        """
        if self._process != os.getpid():
            raise SourceError(
                "a counter must be open, and used in the process that opened it; nothing was released: "
                "open it again with its state"
            )
        with self._one_at_a_time:
            return self._refreshed(until)

    def _refreshed(self, until: Moment) -> CounterRelease:
        for step in range(self.released, self._plan.schedule.complete(until)):
            exact = self._session.engine.aggregate(self._plan.job(step, self._session), self._state.secret())
            keys = exact.select([f"k{i}" for i in range(len(self._plan.keys))])
            values = [
                exact[f"m{index}"].to_numpy().astype(np.int64) for index in range(len(self._plan.mechanisms))
            ]
            self._state.add(keys, values)
            self._send(self._state.steps[-1])
        # What is released is on the disk first: a restart would else draw other noise for the same sums.
        self._state.save()
        return self._release()

    def close(self) -> None:
        """Let another process go on with the state; calling it again does nothing."""
        with self._one_at_a_time:
            self._process = None
            self._state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, step: Sequence[NDArray[np.int64]]) -> None:
        for index, (stream, values) in enumerate(zip(self._streams, step, strict=True)):
            self._released[index].append(stream.send(values))

    def _release(self) -> CounterRelease:
        plan = self._plan
        keys = self._state.keys if self._state.steps else plan.no_keys()
        named = (
            pa.table({name: keys[f"k{i}"] for i, name in enumerate(plan.keys)}) if plan.keys else pa.table({})
        )
        return CounterRelease(
            schedule=plan.schedule,
            keys=named,
            sums={name: tuple(self._released[index]) for name, index in plan.columns.items()},
            scales={n: 2.0 ** plan.priced.measures[index].exponent for n, index in plan.columns.items()},
            loss=plan.loss,
        )


@final
@dataclass(frozen=True, slots=True)
class _Streams:
    """A counter's measures and the noise of each."""

    query: PrivateQuery
    terms: CounterParameters
    priced: PricedQuery
    mechanisms: tuple[ContinualSum, ...]
    loss: PrivacyLoss

    @property
    def schedule(self) -> Schedule:
        return self.terms.schedule

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.priced.query.keys)

    def no_keys(self) -> pa.Table:
        """Return the columns of the groups without a row, as they are before the first period is released."""
        types = [ARROW_TYPES[key.expression.type] for key in self.priced.query.keys]
        return pa.table({f"k{i}": pa.array([], type_) for i, type_ in enumerate(types)})

    @property
    def columns(self) -> dict[str, int]:
        return {estimator.name: estimator.total for estimator in self.priced.estimators}

    @property
    def identity(self) -> str:
        """What the counter is, for the ledger and for its state."""
        return counter_key(self.priced.query, self.terms, self.mechanisms)

    def job(self, step: int, session: QuerySession[object]) -> AggregationJob:
        """Return the engine's part for one period: the same measures over that period's rows."""
        found = _read_period(self.query, self.terms, (step, step + 1), session)
        return replace(self.priced.job, relation=found.relation, keys=found.keys)


def open_counter(query: PrivateQuery, terms: CounterParameters, session: QuerySession[object]) -> Counter:
    """Open a counter, or go on with the one whose state lies there; only the first costs anything.

    Raises
    ------
    UnsupportedSql
        If an aggregate is no COUNT or SUM, or groups are unknown.
    BudgetExceeded
        If all periods together do not fit into the budget; nothing is charged.
    LedgerMismatch
        If the state is of another counter.
    """
    _check.instance("query", query, PrivateQuery, "use session.table()...agg(...)")
    participation = terms.participation(query.table.unit)
    priced = price(_read_whole(query, terms, session))
    require_countable(priced, terms)
    streams = _streams(query, terms, priced, participation)
    source = session.randomness()
    path = None if terms.state is None else Path(terms.state)
    state = CounterState.find(path, streams.identity, session.account.ledger_id, source)
    if state is None:
        receipt = session.account.charge(
            streams.loss,
            delta=terms.delta,
            request=streams.identity,
            description=f"a counter: {query.sql}",
            simulated=source.simulated,
        )
        recorded = RecordedSource(source)
        state = CounterState(path, streams.identity, session.account.ledger_id, recorded)
        state.save()
        session.account.commit(receipt, streams.identity.encode())
    return Counter(session, streams, state)


def _read_whole(query: PrivateQuery, terms: CounterParameters, session: QuerySession[object]) -> Query:
    """Read the query over all periods; say so if it could be read without them."""
    schedule = terms.schedule
    try:
        return _read_period(query, terms, (0, schedule.steps), session)
    except SchemaError:
        session.read(query.sql, query.public_groups, epsilon=terms.epsilon, delta=terms.delta)
    kinds = ("TIMESTAMP", "datetime") if isinstance(schedule.start, dt.datetime) else ("DATE", "date")
    raise SchemaError(
        f"moment must be a column of type {kinds[0]} where start is a {kinds[1]}, got {schedule.moment!r}; "
        "name another, or cast it by with_columns()"
    )


def _read_period(
    query: PrivateQuery, terms: CounterParameters, steps: tuple[int, int], session: QuerySession[object]
) -> Query:
    """Read the query over the rows of some periods, of units that may still count in them."""
    schedule, unit = terms.schedule, query.table.unit
    rows = query.table.filter(schedule.within(0, schedule.steps))
    if unit is not None and terms.max_periods is not None:
        window = f"DENSE_RANK() OVER (PARTITION BY {name_sql(unit)} ORDER BY {schedule.bucket})"
        rows = rows.with_columns(**{_PERIOD_INDEX: window}).filter(f"{_PERIOD_INDEX} <= {terms.max_periods}")
    period = query.over(rows.filter(schedule.within(*steps)))
    return session.read(period.sql, query.public_groups, epsilon=terms.epsilon, delta=terms.delta)


def _streams(
    query: PrivateQuery, terms: CounterParameters, priced: PricedQuery, participation: Participation
) -> _Streams:
    """Give each measure an equal part of epsilon and delta."""
    groups = priced.query.options.max_groups_contributed or 1
    parts = len(priced.measures)
    mechanisms = tuple(
        ContinualSum.calibrated(
            strategy=terms.strategy or SquareRoot(steps=terms.schedule.steps),
            sensitivity=_norm(max(1, measure.sensitivity), groups),
            epsilon=terms.epsilon / parts,
            delta=terms.delta / parts,
            participation=participation,
            l0=groups,
            integral=True,
        )
        for measure in priced.measures
    )
    loss = compose([mechanism.privacy_loss for mechanism in mechanisms])
    return _Streams(query, terms, priced, mechanisms, loss)


def _norm(sensitivity: int, groups: int) -> Any:
    """Return how far one unit moves the groups of a period in the L2 norm, at least."""
    if groups == 1:
        return sensitivity
    return sqrt_up(Fraction(sensitivity * sensitivity * groups))
