"""The record of a release: the noisy integers and what is public about them, as bytes for the ledger.

A release is committed in this form before it is delivered; asking again reads the same bytes back.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from sfumato.errors import LedgerUnavailable
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.privacy.catalog import loss_from_json
from sfumato.privacy.loss import PrivacyLoss
from sfumato.queries.noise import AnyMechanism, Law
from sfumato.queries.plan import AggregateKind, ColumnType, OrderItem

__all__ = ["ComputedColumn", "FoundBounds", "NoisyMeasure", "ReleaseRecord", "ReleasedColumn", "scale_of"]

_VERSIONS = (1, 2, 3)
"""Two holds what one had no name for: computed columns, further measures; three holds found bounds."""
_METADATA_KEY = b"sfumato.release"


@dataclass(frozen=True, slots=True)
class NoisyMeasure:
    """What is public about one measure: its noise, its grid and its clamps (in grid steps).

    ``found`` clamps were searched for; what is read off the measure is then FLOAT64, whatever the grid.
    """

    law: Law
    scale: Fraction
    exponent: int
    lower: int
    upper: int
    center: int
    limit: int | None = None
    row_lower: int | None = None
    row_upper: int | None = None
    found: bool | None = None

    @property
    def noise(self) -> SymmetricDistribution:
        """The law of the noise on the grid."""
        if self.law is Law.TRUNCATED and self.limit is not None:
            return TruncatedLaplaceDistribution(self.scale, self.limit)
        return (
            DiscreteGaussianDistribution(self.scale)
            if self.law is Law.GAUSSIAN
            else DiscreteLaplaceDistribution(self.scale)
        )

    def to_facts(self) -> dict[str, Any]:
        """Return what JSON can hold; what is as it was before there was such a thing is left out."""
        facts = {**asdict(self), "law": self.law.name, "scale": str(self.scale)}
        return {name: value for name, value in facts.items() if name not in _LATER or value is not None}


_LATER = ("limit", "row_lower", "row_upper", "found")
_LATER_NAMES = frozenset({*_LATER, "more", "places", "report"})


@dataclass(frozen=True, slots=True)
class ReleasedColumn:
    """How an answer column is read: ``total``, over ``count`` for an average (indices of measures).

    ``more`` are the further measures of what is read off several sums; ``places`` where the quantiles of the
    column are among those of ``total``; ``report`` says that it is told as JSON, with its interval.
    """

    name: str
    kind: AggregateKind
    total: int
    count: int | None
    more: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    report: bool = False

    def to_facts(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        facts = {**asdict(self), "kind": self.kind.name}
        return {name: value for name, value in facts.items() if name not in _LATER_NAMES or value}


@dataclass(frozen=True, slots=True)
class FoundBounds:
    """Bounds that were searched for, released like any noisy number.

    Parameters
    ----------
    words : str
        What was searched.
    lower, upper : float
        Each zero or a power of two with a sign.
    found : bool
        False where nothing stood out of the noise, so that these are the fixed ones, -1 and 1.
    """

    words: str
    lower: float
    upper: float
    found: bool


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column that was computed from released ones: its expression in canonical SQL, and its type."""

    name: str
    sql: str
    type: ColumnType


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """Everything a :class:`~sfumato.queries.release.TableRelease` is made from; no raw data.

    Parameters
    ----------
    table : pyarrow.Table
        The keys ``k0``, ``k1``, ..., then the noisy integers of each measure ``m0``, ``m1``, ..., then the
        computed columns ``p0``, ``p1``, ...: stored, so that a later version replays the same values. Of
        counts by bin there are lists of quantiles, and the ends of their intervals in ``l0``, ``u0``, ...
    keys : tuple of str
        What the keys are called in the answer.
    measures, columns : tuple
        What the noisy integers are, and how the answer columns are read off them.
    threshold : int or None
        Least noisy count of units (measure 0) of the groups that are shown.
    output : tuple of str
        Columns of the answer in order.
    order_by, limit
        Post-processing asked for.
    epsilon, delta : float
        The guarantee of this query alone.
    loss : PrivacyLoss
        What the ledger was charged.
    privacy_unit : str
        Who is protected.
    explanation : str
        How the answer was made.
    simulated : bool
        True if the noise came from a seed.
    computed : tuple of ComputedColumn
        What the computed columns are.
    having : str or None
        The computed column that says which rows are shown.
    offset : int
        How many of these are left out before the first.
    least_units : int
        The fewest units of a group that was considered, by its exact count.
    found : tuple of FoundBounds
        The bounds that the query did not state.
    """

    table: pa.Table
    keys: tuple[str, ...]
    measures: tuple[NoisyMeasure, ...]
    columns: tuple[ReleasedColumn, ...]
    threshold: int | None
    output: tuple[str, ...]
    order_by: tuple[OrderItem, ...]
    limit: int | None
    epsilon: float
    delta: float
    loss: PrivacyLoss
    privacy_unit: str
    explanation: str
    simulated: bool
    computed: tuple[ComputedColumn, ...] = ()
    having: str | None = None
    offset: int = 0
    least_units: int = 1
    found: tuple[FoundBounds, ...] = ()

    def to_bytes(self) -> bytes:
        """Serialise as one Arrow stream whose schema carries the public facts."""
        more: dict[str, object] = {}
        if self.computed or self.offset:
            computed = [{**asdict(c), "type": c.type.name} for c in self.computed]
            more = {"computed": computed, "having": self.having, "offset": self.offset}
        if self.least_units > 1:
            more["least_units"] = self.least_units
        if self.found:
            more["found"] = [asdict(bounds) for bounds in self.found]
        measures, columns = ([item.to_facts() for item in items] for items in (self.measures, self.columns))
        plain = not more and _LATER_NAMES.isdisjoint(name for item in measures + columns for name in item)
        facts = {
            "version": _VERSIONS[2 if self.found else 0 if plain else 1],
            "keys": self.keys,
            "measures": measures,
            "columns": columns,
            "threshold": self.threshold,
            "output": self.output,
            "order_by": [asdict(item) for item in self.order_by],
            "limit": self.limit,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "loss": self.loss.to_json(),
            "privacy_unit": self.privacy_unit,
            "explanation": self.explanation,
            "simulated": self.simulated,
            **more,
        }
        table = self.table.replace_schema_metadata({_METADATA_KEY: json.dumps(facts).encode()})
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, payload: bytes) -> ReleaseRecord:
        """Read a committed release back.

        Raises
        ------
        LedgerUnavailable
            If a later version wrote it.
        """
        with pa.ipc.open_stream(payload) as reader:
            table = reader.read_all()
        facts: dict[str, Any] = json.loads(table.schema.metadata[_METADATA_KEY])
        if facts.pop("version") not in _VERSIONS:
            raise LedgerUnavailable(
                "a committed release must be of a format this version knows, got a later one; upgrade sfumato"
            )
        return cls(
            table=table.replace_schema_metadata(None),
            keys=tuple(facts.pop("keys")),
            measures=tuple(
                NoisyMeasure(**{**m, "law": Law[m["law"]], "scale": Fraction(m["scale"])})
                for m in facts.pop("measures")
            ),
            columns=tuple(
                ReleasedColumn(
                    **{
                        **c,
                        "kind": AggregateKind[c["kind"]],
                        "more": tuple(c.get("more", ())),
                        "places": tuple(c.get("places", ())),
                    }
                )
                for c in facts.pop("columns")
            ),
            output=tuple(facts.pop("output")),
            order_by=tuple(OrderItem(**item) for item in facts.pop("order_by")),
            loss=loss_from_json(facts.pop("loss")),
            found=tuple(FoundBounds(**bounds) for bounds in facts.pop("found", ())),
            computed=tuple(
                ComputedColumn(**{**c, "type": ColumnType[c["type"]]}) for c in facts.pop("computed", ())
            ),
            **facts,
        )


def scale_of(mechanism: AnyMechanism) -> Fraction:
    """Return the parameter of the noise on the grid, exactly: scale or standard deviation."""
    return Fraction(mechanism.stddev if isinstance(mechanism, Gaussian) else mechanism.scale)
