"""Protocols as JSON: a wire name and a table of parameters, from which the same protocol is made again.

The analyst's file of a shuffled collection holds one. Wire names and field names are frozen: they are listed
here one by one, and no name of a class or an attribute is written.

>>> from sfumato import local
>>> oracle = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(range(10)))
>>> specification = protocol_specification(oracle)
>>> specification["name"], sorted(specification["parameters"])
('randomized-response', ['domain', 'epsilon'])
>>> protocol_from_specification(specification) == oracle
True
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

from sfumato import _check
from sfumato._wire import BOOLEAN, INTEGER, NUMBER, TEXT, Codec, Field, Record, optional, sequence
from sfumato.errors import ParameterError
from sfumato.local.base.protocol import ReportProtocol
from sfumato.local.device.domains.bins import Bins
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.strings import Strings

__all__ = ["protocol_from_specification", "protocol_kind", "protocol_specification"]

Fields = dict[str, Codec[Any] | Field]

_REMEDY: Final = "pass protocol="


class _Unwritable(Exception):
    """A parameter has a value that JSON does not have."""


def _write_domain(domain: Domain | Bins) -> dict[str, Any]:
    specification = domain.specification()
    if specification.keys() == {"digest"}:
        raise _Unwritable
    return specification


def _read_domain(name: str, written: Any) -> Domain:
    return Domain.from_specification(written if isinstance(written, Mapping) else {})


def _read_ordered(name: str, written: Any) -> Domain | Bins:
    if isinstance(written, Mapping) and "edges" in written:
        return Bins.from_specification(written)
    return _read_domain(name, written)


def _write_oracle(kind: Any) -> str:
    name = getattr(kind, "wire_name", None)
    if not isinstance(name, str) or protocol_kind(name) is not kind:
        raise _Unwritable
    return name


def _read_oracle(name: str, written: Any) -> type[ReportProtocol[Any, Any]]:
    kind = protocol_kind(written)
    if kind is None:
        _check.refuse_type(name, "name a protocol that is known here", written, _REMEDY)
    return kind


_DOMAIN: Final = Codec(_write_domain, _read_domain)
_ORDERED: Final = Codec(_write_domain, _read_ordered)
_DOMAINS: Final = sequence(_DOMAIN)
_ORACLE: Final = Codec(_write_oracle, _read_oracle)
_STRINGS: Final[Codec[Strings]] = Codec(
    lambda strings: strings.specification(), lambda name, written: Strings.from_specification(written)
)
_NUMBERS: Final = sequence(NUMBER)

_CATEGORICAL: Final[Fields] = {"epsilon": NUMBER, "domain": _DOMAIN}
_SKETCH: Final[Fields] = _CATEGORICAL | {"size": INTEGER, "hashes": INTEGER, "key": INTEGER}
_BIT: Final[Fields] = {"epsilon": NUMBER, "bounds": _NUMBERS}
_NUMERIC: Final[Fields] = _BIT | {"steps": INTEGER}
_MEMOIZED: Final[Fields] = {"max_memos": INTEGER, "permanent_epsilon": optional(NUMBER)}
_RAPPOR: Final[Fields] = {
    "bits": INTEGER,
    "hashes": INTEGER,
    "cohorts": INTEGER,
    "permanent": NUMBER,
    "instantaneous": optional(_NUMBERS),
}
_ATTRIBUTES: Final[Fields] = {"epsilon": NUMBER, "domains": _DOMAINS, "oracle": _ORACLE}
_LEVELS: Final[Fields] = {"epsilon": NUMBER, "weights": optional(_NUMBERS), "oracle": optional(_ORACLE)}
_DIRECTIONS: Final[Fields] = {"epsilon": NUMBER, "dimension": INTEGER, "radius": NUMBER, "pairs": BOOLEAN}
_CAPS: Final[Fields] = _DIRECTIONS | {"candidates": optional(INTEGER)}
_TEXTS: Final[Fields] = {
    "epsilon": NUMBER,
    "strings": _STRINGS,
    "weight": INTEGER,
    "key": INTEGER,
    "false_positive_rate": NUMBER,
}
_FRAGMENTS: Final[Fields] = _TEXTS | {
    "fragment": INTEGER,
    "buckets": INTEGER,
    "size": INTEGER,
    "hashes": INTEGER,
}
_CANDIDATES: Final[Fields] = {"max_candidates": INTEGER}
_PREFIXES: Final[Fields] = _TEXTS | {"levels": optional(sequence(INTEGER))} | _CANDIDATES
_SHUFFLED: Final[Fields] = {"epsilon": NUMBER, "delta": NUMBER, "clients": INTEGER}
_MAX: Final[Fields] = {"max_clients": optional(INTEGER)}
_SPLIT: Final[Fields] = _SHUFFLED | _MAX | {"bounds": _NUMBERS, "steps": optional(INTEGER)}

_LOCAL: Final[dict[str, tuple[str, Fields]]] = {
    "bit-flip": ("BitFlip", _CATEGORICAL | {"asked": INTEGER}),
    "bitstogram": ("Bitstogram", _FRAGMENTS | {"tables": INTEGER}),
    "count-mean-sketch": ("CountMeanSketch", _SKETCH),
    "fourier-marginals": (
        "FourierMarginals",
        {
            "epsilon": NUMBER,
            "domains": _DOMAINS,
            "order": INTEGER,
            "weights": optional(sequence(INTEGER)),
        },
    ),
    "haar-grid": ("HaarGrid", _LEVELS | {"domains": sequence(_ORDERED)}),
    "haar-histogram": ("HaarHistogram", _LEVELS | {"domain": _ORDERED}),
    "hadamard-count-mean-sketch": ("HadamardCountMeanSketch", _SKETCH),
    "hadamard-response": ("HadamardResponse", _CATEGORICAL),
    "hierarchical-histogram": (
        "HierarchicalHistogram",
        _LEVELS | {"domain": _ORDERED, "branching": INTEGER},
    ),
    "hybrid-mean": ("HybridMean", _NUMERIC),
    "laplace-mean": ("LaplaceMean", _NUMERIC),
    "longitudinal-local-hashing": (
        "LongitudinalLocalHashing",
        _CATEGORICAL | _MEMOIZED | {"buckets": optional(INTEGER)},
    ),
    "longitudinal-randomized-response": ("LongitudinalRandomizedResponse", _CATEGORICAL | _MEMOIZED),
    "longitudinal-unary-encoding": (
        "LongitudinalUnaryEncoding",
        _CATEGORICAL | _MEMOIZED | {"chain": TEXT},
    ),
    "memoized-bit-flip": ("MemoizedBitFlip", _CATEGORICAL | _MEMOIZED | {"asked": INTEGER}),
    "memoized-one-bit-mean": ("MemoizedOneBitMean", _NUMERIC | _MEMOIZED),
    "memoized-rappor": ("MemoizedRappor", _RAPPOR | {"max_memos": INTEGER}),
    "one-bit-hadamard": ("OneBitHadamard", _CATEGORICAL),
    "one-bit-mean": ("OneBitMean", _BIT),
    "optimal-local-hashing": ("OptimalLocalHashing", _CATEGORICAL),
    "optimized-unary-encoding": ("OptimizedUnaryEncoding", _CATEGORICAL),
    "piecewise-mean": ("PiecewiseMean", _NUMERIC),
    "prefix-extending": ("PrefixExtending", _PREFIXES),
    "privunit": ("PrivUnit", _CAPS),
    "privunit-g": ("PrivUnitG", _CAPS),
    "projective-geometry-response": ("ProjectiveGeometryResponse", _CATEGORICAL),
    "projunit": ("ProjUnit", _CAPS),
    "randomized-response": ("RandomizedResponse", _CATEGORICAL),
    "rappor": ("Rappor", _RAPPOR),
    "sampled-attribute": ("SampledAttribute", _ATTRIBUTES),
    "sequence-fragment-puzzle": ("SequenceFragmentPuzzle", _FRAGMENTS | {"sketch": TEXT} | _CANDIDATES),
    "sphere-sampling": ("SphereSampling", _DIRECTIONS),
    "split-budget": ("SplitBudget", _ATTRIBUTES),
    "square-wave": ("SquareWave", _NUMERIC),
    "stochastic-rounding-mean": ("StochasticRoundingMean", _NUMERIC),
    "subset-selection": ("SubsetSelection", _CATEGORICAL),
    "symmetric-unary-encoding": ("SymmetricUnaryEncoding", _CATEGORICAL),
    "treehist": ("TreeHist", _PREFIXES | {"size": INTEGER, "hashes": INTEGER}),
}
_SHUFFLE: Final[dict[str, tuple[str, Fields]]] = {
    "shuffled-counts": ("ShuffledCounts", _SHUFFLED | _MAX | {"domain": _DOMAIN}),
    "shuffled-histogram": ("ShuffledHistogram", _SHUFFLED | {"domain": _DOMAIN}),
    "shuffled-mean": ("ShuffledMean", _SPLIT),
    "shuffled-sum": ("ShuffledSum", _SPLIT),
}
_BASELINES: Final[dict[str, tuple[str, Fields]]] = {
    "binary-local-hashing": ("BinaryLocalHashing", _CATEGORICAL),
    "fake-data": ("FakeData", _ATTRIBUTES),
    "summation-histogram": ("SummationHistogram", _CATEGORICAL),
    "threshold-histogram": ("ThresholdHistogram", _CATEGORICAL),
}
_FACES: Final = {
    "sfumato.local": _LOCAL,
    "sfumato.local.baselines": _BASELINES,
    "sfumato.local.shuffle": _SHUFFLE,
}


def protocol_specification(protocol: ReportProtocol[Any, Any]) -> dict[str, Any] | None:
    """Return a protocol as JSON, or None for one with a parameter that JSON does not have."""
    name = protocol.wire_name
    if protocol_kind(name) is not type(protocol):
        return None
    try:
        return {"name": name, "parameters": _record(name).encode(protocol)}
    except _Unwritable:
        return None


def protocol_from_specification(specification: object) -> ReportProtocol[Any, Any]:
    """Return the protocol that `protocol_specification` described.

    Raises
    ------
    ParameterError
        If it names no known protocol, or its parameters break a rule.
    """
    given = specification if isinstance(specification, dict) else {}
    if given.keys() != {"name", "parameters"} or protocol_kind(given["name"]) is None:
        raise ParameterError(
            "protocol must be written by the name of a known one and its parameters, got something else; "
            f"{_REMEDY}"
        )
    return _record(given["name"]).decode("parameters", given["parameters"])


def protocol_kind(name: object) -> type[ReportProtocol[Any, Any]] | None:
    """Return the protocol of a wire name in `sfumato.local`, its baselines or its shuffle model, or None."""
    for face, table in _FACES.items():
        if isinstance(name, str) and name in table:
            found: type[ReportProtocol[Any, Any]] = getattr(importlib.import_module(face), table[name][0])
            return found
    return None


def _record(name: str) -> Record[ReportProtocol[Any, Any]]:
    kind, fields = protocol_kind(name), (_LOCAL | _BASELINES | _SHUFFLE)[name][1]
    return Record(f"the parameters of {name}", kind, fields)  # type: ignore[arg-type]
