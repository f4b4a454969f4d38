"""The key of a counter: what its charge is found by in the ledger, and its state in a file.

It is one JSON text of the format ``sfumato.counter``: the query, the schedule, the guarantee, and the noise
of each sum, under names of their own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final

from sfumato._wire import (
    INTEGER,
    NUMBER,
    RATIONAL,
    Codec,
    Field,
    Format,
    Names,
    Record,
    canonical,
    optional,
    sequence,
)
from sfumato.mechanisms.factorization.continual_sum import ContinualSum
from sfumato.mechanisms.factorization.strategies.banded import BandedToeplitz
from sfumato.mechanisms.factorization.strategies.binary_tree import BinaryTree
from sfumato.mechanisms.factorization.strategies.buffered_toeplitz import BufferedToeplitz
from sfumato.mechanisms.factorization.strategies.lower_triangular import LowerTriangular
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.square_root import SquareRoot
from sfumato.mechanisms.factorization.strategies.strategy import Strategy
from sfumato.queries.continual.parameters import CounterParameters
from sfumato.queries.continual.schedule import Moment, Schedule
from sfumato.queries.plan.query import Query
from sfumato.queries.plan.query_key import query_document

__all__ = ["counter_key"]

_FORMAT: Final = Format("sfumato.counter", 1)

_FLOATS: Final = sequence(NUMBER)
_VECTOR: Final[Codec[Any]] = Codec(lambda values: _FLOATS.encode(tuple(map(float, values))), _FLOATS.decode)
_MATRIX: Final[Codec[Any]] = Codec(
    lambda rows: [_VECTOR.encode(row) for row in rows], sequence(_FLOATS).decode
)

_STRATEGIES: Final[dict[type[Strategy], tuple[str, Record[Any]]]] = {
    BandedToeplitz: (
        "banded-toeplitz",
        Record("a strategy", BandedToeplitz, {"steps": INTEGER, "coefficients": Field("bands", _VECTOR)}),
    ),
    BufferedToeplitz: (
        "buffered-toeplitz",
        Record("a strategy", BufferedToeplitz, {"steps": INTEGER, "decays": _FLOATS, "weights": _FLOATS}),
    ),
    LowerTriangular: ("lower-triangular", Record("a strategy", LowerTriangular, {"rows": _MATRIX})),
    SquareRoot: ("square-root", Record("a strategy", SquareRoot, {"steps": INTEGER})),
    BinaryTree: ("tree", Record("a strategy", BinaryTree, {"steps": INTEGER})),
}

_EXACT: Final[Codec[Any]] = Codec(lambda number: RATIONAL.encode(Fraction(number)), RATIONAL.decode)

_PARTICIPATION: Final[Record[Participation]] = Record(
    "participation",
    Participation,
    {"maximum": Field("max_participations", optional(INTEGER)), "separation": INTEGER},
)

_PERIOD: Final[Codec[str]] = Names(
    "a period", {name: name for name in ("day", "hour", "month", "quarter", "year")}
)


def counter_key(query: Query, terms: CounterParameters, mechanisms: Iterable[ContinualSum]) -> str:
    """Return the key of a counter.

    Parameters
    ----------
    query : Query
        Over all periods.
    terms : CounterParameters
    mechanisms : iterable of ContinualSum
        The noise of each sum.
    """
    return canonical(
        _FORMAT.wrap(
            {
                "query": query_document(query),
                "schedule": _schedule(terms.schedule),
                "epsilon": NUMBER.encode(terms.epsilon),
                "delta": NUMBER.encode(terms.delta),
                "max_periods": terms.max_periods,
                "noise": [_noise(mechanism) for mechanism in mechanisms],
            }
        )
    )


def _schedule(schedule: Schedule) -> dict[str, object]:
    return {
        "column": schedule.moment,
        "start": _moment(schedule.start),
        "every": _PERIOD.encode(schedule.every),
        "periods": schedule.steps,
    }


def _moment(moment: Moment) -> dict[str, object]:
    return {"timestamp" if isinstance(moment, dt.datetime) else "date": moment.isoformat()}


def _noise(mechanism: ContinualSum) -> dict[str, object]:
    name, fields = _STRATEGIES[type(mechanism.strategy)]
    return {
        "strategy": {"name": name, **fields.encode(mechanism.strategy)},
        "sensitivity": _EXACT.encode(mechanism.sensitivity),
        "stddev": _EXACT.encode(mechanism.stddev),
        "participation": _PARTICIPATION.encode(mechanism.participation),
        "l0": mechanism.l0,
        "grid_exponent": mechanism.grid.exponent,
        "strategy_bits": mechanism.bits,
    }
