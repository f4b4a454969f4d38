"""Targets: how large the error of a released column may be, absolute or as a share of a magnitude."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, final, runtime_checkable

import numpy as np
import pyarrow as pa

from sfumato import _check
from sfumato.privacy.loss import PrivacyLoss
from sfumato.queries.plan.query import ADDITIVE, MOMENT_KINDS, AggregateKind, Query
from sfumato.queries.planner.half_widths import BY_RANK
from sfumato.queries.sql.query_parameters import QueryValues

__all__ = ["PlanRequest", "Relative", "ReleasedTable", "Target", "relative"]

_IN_OWN_UNIT: Final = frozenset({*ADDITIVE, AggregateKind.AVG})
"""What a target without a name is for: errors of the others are counted otherwise, or far larger."""

_BY_UNITS: Final = MOMENT_KINDS | {AggregateKind.AVG}
"""Aggregates whose error falls with the units of the group."""


@runtime_checkable
class ReleasedTable(Protocol):
    """A released table, as far as a target looks at it; `sfumato.queries.TableRelease` is one."""

    @property
    def loss(self) -> PrivacyLoss:
        """What the release was charged: a table of raw data has none."""
        ...

    def to_arrow(self) -> pa.Table:
        """Return the released values."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Relative:
    """An error as a share of a magnitude; made by :func:`relative`."""

    share: float
    of: float | ReleasedTable | None = None

    def absolute(self, column: str, pilot: ReleasedTable | None) -> float:
        """Return the error in the column's own unit.

        Raises
        ------
        ParameterError
            If there is no magnitude, or it is zero.
        """
        source = pilot if self.of is None else self.of
        if source is None:
            _check.refuse("of", "be a public number or a release", None, "pass of=1000, say, or pilot=0.05")
        size = _magnitude(source, column) if isinstance(source, ReleasedTable) else abs(source)
        if not size > 0:
            remedy = "state an absolute target" if self.of is not None else "pass a larger pilot"
            _check.refuse(f"the magnitude of {column!r}", "be positive", size, remedy)
        return self.share * size


Target: TypeAlias = float | Relative
"""How large the error of a column may be: a number in the column's unit, or :func:`relative`."""


def relative(share: float, *, of: float | ReleasedTable | None = None) -> Relative:
    """Return a target that is a share of a magnitude.

    Parameters
    ----------
    share : float
        Such as 0.05 for five per cent.
    of : float or TableRelease, optional
        A public number, or a released table with the column of that name: the median of its magnitudes then.
        Without it the plan's pilot, which is paid for, gives the magnitude.

    Returns
    -------
    Relative

    Examples
    --------
    >>> relative(0.05, of=2000.0).absolute("visits", None)
    100.0
    """
    share = _check.positive("share", share, "write 0.05 for five per cent")
    if of is not None and not isinstance(of, ReleasedTable):
        of = _check.positive("of", of, "write a public figure")
    return Relative(share, of)


def _magnitude(release: ReleasedTable, column: str) -> float:
    table = release.to_arrow()
    if column not in table.column_names:
        found = f"its columns are {', '.join(table.column_names)}"
        _check.refuse_state("of", f"have a column {column!r}", found, "name the columns alike")
    values = np.abs(np.asarray(table[column].to_pylist(), dtype=np.float64))
    return float(np.median(values)) if len(values) else 0.0


@final
@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a workload is asked to reach; the fields are the parameters of ``session.plan``."""

    target: Target | Mapping[str, Target] | None
    epsilon: float | None
    units: float | None
    level: float
    pilot: float | None
    params: QueryValues | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "units", "pilot"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _check.positive(name, value, "leave it out"))
        object.__setattr__(self, "level", _check.unit_interval("level", self.level, "write 0.95, say"))
        if self.target is None and self.epsilon is None:
            _check.refuse(
                "target", "be given where there is no epsilon to split", None, "pass target=100 or epsilon=1"
            )

    def goals(self, query: Query) -> dict[str, Target]:
        """Return the targets of a query's columns, or refuse what none can have; no magnitude is read.

        Raises
        ------
        ParameterError
            If a column that is named has no error that is known beforehand, or none without ``units``; or if
            a relative target has nothing to be relative to.
        """
        named = isinstance(self.target, Mapping)
        found: dict[str, Target] = {}
        for aggregate in query.aggregates:
            goal = self.target.get(aggregate.name) if isinstance(self.target, Mapping) else self.target
            known = not aggregate.unbounded and (named or aggregate.kind in _IN_OWN_UNIT)
            if goal is None or (not named and not known):
                continue
            if not known:
                what, state = f"the bounds of {aggregate.name!r}", "the query leaves them to be found"
                remedy = "state them: the error follows them"
                _check.refuse_state(what, "be stated for a target", state, remedy)
            if aggregate.kind in _BY_UNITS and self.units is None:
                rule = f"be given for a target on {aggregate.kind.value}"
                _check.refuse("units", rule, None, "pass a public figure")
            if isinstance(goal, Relative) and aggregate.kind in BY_RANK and not isinstance(goal.of, float):
                rule, remedy = f"be relative to a number of rows for {aggregate.name!r}", "pass of=5000, say"
                _check.refuse_state("target", rule, "the error of a quantile is counted in ranks", remedy)
            if not isinstance(goal, Relative):
                goal = _check.positive("target", goal, "allow some error")
            elif goal.of is not None or self.pilot is None:
                goal = goal.absolute(aggregate.name, None)
            found[aggregate.name] = goal
        return found

    def bounds(self, query: Query, pilot: ReleasedTable | None) -> dict[str, float]:
        """Return the targets of a query's columns, in their units."""
        return {
            name: goal.absolute(name, pilot) if isinstance(goal, Relative) else goal
            for name, goal in self.goals(query).items()
        }
