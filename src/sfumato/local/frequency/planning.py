"""Choose a frequency oracle by what each would err, send and cost, before anybody is asked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.local.base.plan_comparison import Choice, Limits, compared
from sfumato.local.base.protocol import LocalProtocol
from sfumato.local.device.base.report_batch import ReportBatch
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
_FEWEST: Final = 5
_TURNS: Final = 3
_ENOUGH: Final = 0.1
"""Seconds that the reports of a trial take at least, or there are as many as may be."""


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
    most = max(_FEWEST, min(_TRIAL, _TRIAL_BYTES // protocol.device.width))
    aggregator = protocol.aggregator()

    def reported(size: int) -> ReportBatch:
        return protocol.randomize_batch(tried[np.arange(size, dtype=np.int64) % len(tried)], rng=0)

    aggregator.add_batch(reported(1))
    start = time.process_time()
    aggregator.estimate()
    estimating = time.process_time() - start  # from totals, whatever the number of reports
    client = _seconds_of(lambda size: partial(reported, size), most, count)
    counting = _seconds_of(lambda size: partial(aggregator.add_batch, reported(size)), most, count)
    return client, counting + estimating


def _seconds_of(prepared: Callable[[int], Callable[[], object]], most: int, count: int) -> float:
    """Return the CPU seconds of what is done for so many clients, from trials with ever more of them."""
    first, size = _least_seconds(prepared(1)), _FEWEST
    while (many := _least_seconds(prepared(size))) - first < _ENOUGH and size < most:
        size = min(most, 8 * size)
    return max(0.0, many + max(0.0, many - first) / (size - 1) * (count - size))


def _least_seconds(run: Callable[[], object]) -> float:
    """Return the least CPU seconds of some turns, which are fewer if they are long."""
    turns: list[float] = []
    while len(turns) < _TURNS and sum(turns) < _ENOUGH:
        start = time.process_time()
        run()
        turns.append(time.process_time() - start)
    return min(turns)
