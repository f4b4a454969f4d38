"""Choose a frequency oracle by what each would err, send and cost, before anybody is asked."""

from __future__ import annotations

import math
import time
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.local.base.plan_comparison import Choice, Limits, compared
from sfumato.local.base.protocol import LocalProtocol
from sfumato.local.device.domains.bins import Bins
from sfumato.local.device.domains.categories import Domain
from sfumato.local.frequency.hadamard import HadamardResponse, OneBitHadamard
from sfumato.local.frequency.local_hashing import OptimalLocalHashing
from sfumato.local.frequency.oracle import Oracle
from sfumato.local.frequency.projective_geometry import ProjectiveGeometryResponse
from sfumato.local.frequency.randomized_response import RandomizedResponse
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import OptimizedUnaryEncoding, SymmetricUnaryEncoding

__all__ = ["Frequencies", "OracleChoice", "OraclePlan", "plannable", "trial_seconds"]

_KINDS: Final[tuple[type[Oracle[Any]], ...]] = (
    RandomizedResponse,
    SymmetricUnaryEncoding,
    OptimizedUnaryEncoding,
    OptimalLocalHashing,
    SubsetSelection,
    HadamardResponse,
    OneBitHadamard,
    ProjectiveGeometryResponse,
)
_TRIAL: Final = 20_000
_MAX_CATEGORIES: Final = 1 << 24
_TRIAL_BYTES: Final = 1 << 20
_TRIAL_WORK: Final = 1 << 27
_TURNS: Final = 3
_LONG: Final = 0.2
"""Seconds of a trial that is not made in several turns."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OraclePlan:
    """What one oracle would achieve and cost.

    Parameters
    ----------
    name : str
        Of its class in `sfumato.local`.
    variance : float
        Of the estimate of a share, from all reports.
    bytes : int
        Of a report.
    client_seconds, server_seconds : float
        Of all clients together, and of the server with its estimate: CPU time, extrapolated from trials.

    Examples
    --------
    >>> from sfumato import local
    >>> plan = local.choose(local.Frequencies(16), epsilon=1.0, n=10_000).best
    >>> plan.stddev == plan.variance**0.5
    True
    """

    name: str
    variance: float
    bytes: int
    client_seconds: float
    server_seconds: float

    @property
    def stddev(self) -> float:
        """Of the estimate of a share."""
        return math.sqrt(self.variance)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OracleChoice(Choice[OraclePlan]):
    """All oracles that meet the limits, the one to take first.

    Parameters
    ----------
    epsilon : float
        Of each report.
    plans : tuple of OraclePlan
        The oracles that meet the limits, the best first.
    ruled_out : mapping of str to str
        The others, with the reason.

    Examples
    --------
    >>> from sfumato import local
    >>> choice = local.choose(local.Frequencies(3), epsilon=1.0, n=10_000)
    >>> type(choice.oracle(local.Domain(["red", "green", "blue"]))).__name__ == choice.best.name
    True
    """

    epsilon: float

    def oracle(self, domain: Domain) -> Oracle[Any]:
        """Return the best one for a domain, of the size that was planned for.

        Parameters
        ----------
        domain : Domain
            As many categories as were planned for.

        Returns
        -------
        Oracle
            Ready to collect with.
        """
        return _kind(self.best.name)(epsilon=self.epsilon, domain=domain)

    def __str__(self) -> str:
        head = f"{'oracle':<28}{'stddev':>12}{'bytes':>8}{'clients, s':>12}{'server, s':>12}"
        rows = [
            f"{plan.name:<28}{plan.stddev:>12.3g}{plan.bytes:>8}{plan.client_seconds:>12.3g}"
            f"{plan.server_seconds:>12.3g}"
            for plan in self.plans
        ]
        return self._table(head, *rows)


def plannable(domain: object) -> int:
    """Return the number of categories of a domain, or the number itself, small enough for trials."""
    size = _check.integer("domain", len(domain) if isinstance(domain, Domain | Bins) else domain, minimum=2)
    if size > _MAX_CATEGORIES:
        rule = f"have at most {_MAX_CATEGORIES} categories, to be tried"
        _check.refuse("domain", rule, size, "hash the values to fewer")
    return size


@final
@dataclass(frozen=True, slots=True)
class Frequencies:
    """The question how often each category of a domain occurs, for `sfumato.local.choose`.

    Parameters
    ----------
    domain : Domain or int
        The categories, or how many there are; from 2 to 2^24.
    frequency : float
        The share whose estimate's variance is compared; 0 for rare categories.

    Notes
    -----
    All frequency oracles are compared. Of those whose variance is within 5 % of the minimum, the one with the
    shortest reports comes first, and of these the one with the smallest variance; all others follow by their
    variance. The protocols of deployed telemetry (`Rappor`, sketches, `BitFlip`) answer other needs, and are
    not among them; nor are those of `sfumato.local.baselines`, which are nowhere the best.

    Examples
    --------
    >>> from sfumato import local
    >>> choice = local.choose(Frequencies(1024), epsilon=1.0, n=1_000_000, max_bytes=16)
    >>> choice.best.name, choice.best.bytes, round(choice.best.stddev, 5)
    ('ProjectiveGeometryResponse', 6, 0.00194)
    """

    domain: Domain | int
    _: KW_ONLY
    frequency: float = 0.0

    def __post_init__(self) -> None:
        plannable(self.domain)
        _check.share("frequency", self.frequency)

    def plan(self, epsilon: float, n: int, limits: Limits) -> OracleChoice:
        """Return the oracles that meet the limits; called by `sfumato.local.choose`.

        Parameters
        ----------
        epsilon : float
            Of each report.
        n : int
            How many people will report.
        limits : Limits
            What an oracle may cost.

        Returns
        -------
        OracleChoice
            The best one first.
        """
        domain = Domain(range(plannable(self.domain)))
        plans, out = compared(
            ((kind.__name__, partial(kind, epsilon=epsilon, domain=domain)) for kind in _KINDS),
            lambda name, oracle: _planned(name, oracle, n, self.frequency),
            lambda plan: plan.variance,
            limits,
            kind="oracle",
        )
        return OracleChoice(epsilon=epsilon, plans=plans, ruled_out=out)


def _kind(name: str) -> type[Oracle[Any]]:
    return next(kind for kind in _KINDS if kind.__name__ == name)


def _planned(name: str, oracle: Oracle[Any], count: int, frequency: float) -> OraclePlan:
    client, server = trial_seconds(oracle, len(oracle.domain), count)
    return OraclePlan(
        name=name,
        variance=oracle.variance(count, frequency),
        bytes=oracle.device.width,
        client_seconds=client,
        server_seconds=server,
    )


def trial_seconds(
    protocol: LocalProtocol[Any, Any], categories: int, count: int, values: ArrayLike | None = None
) -> tuple[float, float]:
    """Return the CPU seconds of so many clients and of the server for them, as small trials here go on.

    Parameters
    ----------
    protocol : LocalProtocol
        Of one category each.
    categories : int
        How many there are.
    count : int
        Of the clients.
    values : array, optional
        What may be reported, in place of the numbers of the categories.
    """
    tried = np.arange(categories, dtype=np.int64) if values is None else np.asarray(values)
    largest = min(_TRIAL, _TRIAL_BYTES // protocol.device.width, _TRIAL_WORK // categories)
    many = max(5, largest)
    few = many // 5
    once = sum(_tried(protocol, tried, 1))  # what is made once, is made before
    turns = _TURNS if once < _LONG else 1
    rounds = [[_tried(protocol, tried, size) for _ in range(turns)] for size in (few, many)]
    first, second = (np.min(turns, axis=0) for turns in rounds)
    each = np.maximum(second - first, 0) / (many - few)
    client, server = np.maximum(second + each * (count - many), 0)
    return float(client), float(server)


def _tried(protocol: LocalProtocol[Any, Any], values: NDArray[Any], size: int) -> tuple[float, float]:
    """Return the CPU seconds of so many clients, and of the server for them."""
    values = values[np.arange(size, dtype=np.int64) % len(values)]
    start = time.process_time()
    reports = protocol.randomize_batch(values, rng=0)
    sent = time.process_time()
    aggregator = protocol.aggregator()
    aggregator.add_batch(reports)
    aggregator.estimate()
    return sent - start, time.process_time() - sent
