"""The record of a release: the noisy integers and what is public about them, as bytes for the ledger.

A release is committed in this form before it is delivered; asking again reads the same bytes back.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from sfumato import _check
from sfumato._wire import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    RATIONAL,
    TEXT,
    Codec,
    Field,
    Format,
    Names,
    Record,
    canonical,
    optional,
    parse,
    sequence,
)
from sfumato.errors import LedgerUnavailable, ParameterError
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.selection.randomized_threshold import RandomizedThreshold
from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.privacy.catalog import LOSS
from sfumato.privacy.loss import PrivacyLoss
from sfumato.queries.plan.query import AggregateKind, ColumnType, FoundBounds, OrderItem
from sfumato.queries.plan.stated_limits import CutOff
from sfumato.queries.plan.wire_names import AGGREGATE, COLUMN_TYPE
from sfumato.queries.pricing.calibration import AnyMechanism, NoiseDistribution

__all__ = [
    "UNKNOWN_FORMAT",
    "ComputedColumn",
    "NoisyCut",
    "NoisyMeasure",
    "ReleaseRecord",
    "ReleasedColumn",
    "scale_of",
]

UNKNOWN_FORMAT: Final = (
    "a committed release must be of a format that this version knows, got another; install a newer sfumato"
)
"""What is said of a stored record that a later version wrote."""

_FORMAT: Final = Format("sfumato.release", 1)
_METADATA_KEY = b"sfumato.release"
_TRUNCATION: Final = "truncation"


@dataclass(frozen=True, slots=True)
class NoisyMeasure:
    """What is public about one measure: its noise, its grid and its clamps (in grid steps).

    Truncated noise has a limit, which is one less with the probability ``weight``.
    ``found`` clamps were searched for; what is read off the measure is then FLOAT64, whatever the grid. Where
    the answer was chosen by the exponential mechanism, ``scale`` is by how many rows a rank is off, at most,
    for each factor of e that an answer is less likely.
    """

    distribution: NoiseDistribution
    scale: Fraction
    exponent: int
    lower: int
    upper: int
    center: int
    limit: int | None = None
    row_lower: int | None = None
    row_upper: int | None = None
    found: bool = False
    weight: Fraction | None = None

    @property
    def noise(self) -> SymmetricDistribution:
        """The distribution of the noise on the grid; what was chosen has none."""
        if self.distribution is NoiseDistribution.EXPONENTIAL:
            rule, state = "be noised", "it was chosen by the exponential mechanism"
            _check.refuse_state("measure", rule, state, "read its values instead")
        if self.distribution is NoiseDistribution.TRUNCATED and self.limit is not None:
            return TruncatedLaplaceDistribution(self.scale, self.limit, self.weight or Fraction(0))
        return (
            DiscreteGaussianDistribution(self.scale)
            if self.distribution is NoiseDistribution.GAUSSIAN
            else DiscreteLaplaceDistribution(self.scale)
        )


@dataclass(frozen=True, slots=True)
class ReleasedColumn:
    """How an answer column is read: ``total``, over ``count`` for an average (indices of measures).

    ``more`` are the further measures of what is read off several sums, or of a quantile the one that holds
    the ends of its interval; ``quantile_indices`` say which of the quantiles of ``total`` are the column's;
    ``report`` says that it is stated as JSON, with its interval.
    """

    name: str
    kind: AggregateKind
    total: int
    count: int | None
    more: tuple[int, ...] = ()
    quantile_indices: tuple[int, ...] = ()
    report: bool = False


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column that was computed from released ones: its expression in canonical SQL, and its type."""

    name: str
    sql: str
    type: ColumnType


@dataclass(frozen=True, slots=True)
class NoisyCut:
    """The noisy counts of what a limit cuts off, and of what it leaves, in parts of ``steps``.

    ``aggregate`` is the column whose values are counted; a unit weighs at most ``cap``, and ``scale`` is that
    of the discrete Laplace noise on both.
    """

    kind: CutOff
    aggregate: str | None
    cap: int
    steps: int
    scale: Fraction
    cut: int
    left: int


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """Everything a :class:`~sfumato.queries.release.table.TableRelease` is made from; no raw data.

    Parameters
    ----------
    table : pyarrow.Table
        The keys ``k0``, ``k1``, ..., then the noisy integers of each measure ``m0``, ``m1``, ..., then the
        computed columns ``p0``, ``p1``, ...: stored, so that a later version replays the same values. Of
        counts by bin there are lists of quantiles, and if they are read off a noisy tree the ends of their
        intervals in ``l0``, ``u0``, ...
    keys : tuple of str
        What the keys are called in the answer.
    measures, columns : tuple
        What the noisy integers are, and how the answer columns are read off them.
    threshold : RandomizedThreshold or None
        Which noisy counts of units (measure 0) are shown: those above it, and at it those of a coin whose
        probability is public, its outcome not.
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
    simulated : bool
        True if the noise came from a seed.
    computed : tuple of ComputedColumn
        What the computed columns are.
    having : str or None
        The computed column that says which rows are shown.
    offset : int
        How many of these are left out before the first.
    minimum_units : int
        The fewest units of a group that was considered, by its exact count.
    found : tuple of FoundBounds
        The bounds that the query did not state.
    truncation : tuple of NoisyCut
        The report of what the limits cut off, where one was asked for.
    """

    table: pa.Table
    keys: tuple[str, ...]
    measures: tuple[NoisyMeasure, ...]
    columns: tuple[ReleasedColumn, ...]
    threshold: RandomizedThreshold | None
    output: tuple[str, ...]
    order_by: tuple[OrderItem, ...]
    limit: int | None
    epsilon: float
    delta: float
    loss: PrivacyLoss
    privacy_unit: str
    simulated: bool
    computed: tuple[ComputedColumn, ...] = ()
    having: str | None = None
    offset: int = 0
    minimum_units: int = 1
    found: tuple[FoundBounds, ...] = ()
    truncation: tuple[NoisyCut, ...] = ()

    def to_bytes(self) -> bytes:
        """Serialise as one Arrow stream, whose schema carries the public facts as JSON.

        Returns
        -------
        bytes
            Of the format ``sfumato.release``.
        """
        form = _REPORTED if self.truncation else _FACTS
        facts = canonical(_FORMAT.wrap(form.encode(self)))  # a Record writes an object
        table = self.table.replace_schema_metadata({_METADATA_KEY: facts.encode()})
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, payload: bytes) -> ReleaseRecord:
        """Read a committed release back.

        Parameters
        ----------
        payload : bytes
            What `to_bytes` wrote.

        Raises
        ------
        LedgerUnavailable
            If it is no release, or of a format, version or name that is not known here.
        """
        try:
            with pa.ipc.open_stream(payload) as reader:
                table = reader.read_all()
            _, fields = _FORMAT.unwrap("release", parse("release", table.schema.metadata[_METADATA_KEY]))
            form = _REPORTED if _TRUNCATION in fields else _FACTS
            facts: Any = form.decode("release", fields)
        except (pa.ArrowInvalid, KeyError, TypeError, ParameterError):
            raise LedgerUnavailable(UNKNOWN_FORMAT) from None
        return cls(table=table.replace_schema_metadata(None), **facts)


_DISTRIBUTION: Final[Codec[NoiseDistribution]] = Names(
    "a distribution of noise",
    {
        "discrete-gaussian": NoiseDistribution.GAUSSIAN,
        "discrete-laplace": NoiseDistribution.LAPLACE,
        "truncated-discrete-laplace": NoiseDistribution.TRUNCATED,
        "exponential-mechanism": NoiseDistribution.EXPONENTIAL,
    },
)

_MEASURE: Final[Record[NoisyMeasure]] = Record(
    "a measure",
    NoisyMeasure,
    {
        "distribution": _DISTRIBUTION,
        "scale": RATIONAL,
        "grid_exponent": Field("exponent", INTEGER),
        "lower": INTEGER,
        "upper": INTEGER,
        "center": INTEGER,
        "truncated_at": Field("limit", optional(INTEGER)),
        "truncated_one_earlier": Field("weight", optional(RATIONAL)),
        "row_lower": optional(INTEGER),
        "row_upper": optional(INTEGER),
        "bounds_found": Field("found", BOOLEAN),
    },
)

_COLUMN: Final[Record[ReleasedColumn]] = Record(
    "a column",
    ReleasedColumn,
    {
        "name": TEXT,
        "aggregate": Field("kind", AGGREGATE),
        "total": INTEGER,
        "count": optional(INTEGER),
        "further": Field("more", sequence(INTEGER)),
        "quantile_indices": sequence(INTEGER),
        "as_report": Field("report", BOOLEAN),
    },
)

_FOUND: Final[Record[FoundBounds]] = Record(
    "found bounds",
    FoundBounds,
    {"description": Field("words", TEXT), "lower": NUMBER, "upper": NUMBER, "found": BOOLEAN},
)

_COMPUTED: Final[Record[ComputedColumn]] = Record(
    "a computed column", ComputedColumn, {"name": TEXT, "expression": Field("sql", TEXT), "type": COLUMN_TYPE}
)

_ORDER: Final[Record[OrderItem]] = Record(
    "an order", OrderItem, {"name": TEXT, "descending": BOOLEAN, "nulls_first": BOOLEAN}
)

_THRESHOLD: Final[Record[RandomizedThreshold]] = Record(
    "a threshold", RandomizedThreshold, {"units": INTEGER, "probability": RATIONAL}
)

_CUT: Final[Record[NoisyCut]] = Record(
    "what a limit cuts off",
    NoisyCut,
    {
        "of": Field(
            "kind",
            Names(
                "what is cut off",
                {
                    "units": CutOff.UNITS,
                    "groups": CutOff.GROUPS,
                    "rows": CutOff.ROWS,
                    "values": CutOff.VALUES,
                },
            ),
        ),
        "column": Field("aggregate", optional(TEXT)),
        "cap": INTEGER,
        "steps": INTEGER,
        "scale": RATIONAL,
        "cut": INTEGER,
        "left": INTEGER,
    },
)

_FIELDS: Final[dict[str, Codec[Any] | Field]] = {
    "keys": sequence(TEXT),
    "measures": sequence(_MEASURE),
    "columns": sequence(_COLUMN),
    "threshold": optional(_THRESHOLD),
    "output": sequence(TEXT),
    "order": Field("order_by", sequence(_ORDER)),
    "limit": optional(INTEGER),
    "offset": INTEGER,
    "having": optional(TEXT),
    "computed": sequence(_COMPUTED),
    "epsilon": NUMBER,
    "delta": NUMBER,
    "loss": LOSS,
    "privacy_unit": TEXT,
    "simulated": BOOLEAN,
    "minimum_units": INTEGER,
    "found_bounds": Field("found", sequence(_FOUND)),
}

_FACTS: Final[Record[Any]] = Record("a release", dict, _FIELDS)

_REPORTED: Final[Record[Any]] = Record(
    "a release with a report of its limits", dict, {**_FIELDS, _TRUNCATION: sequence(_CUT)}
)


def scale_of(mechanism: AnyMechanism) -> Fraction:
    """Return the parameter of the noise on the grid, or of a choice, exactly: scale or standard deviation."""
    return Fraction(mechanism.stddev if isinstance(mechanism, Gaussian) else mechanism.scale)
