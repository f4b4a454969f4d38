"""Which protocol of ranges to take: what each would err, send and cost, before anybody is asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np

from sfumato import _check
from sfumato.local.base.plan_comparison import Choice, Limits, compared
from sfumato.local.device.domains.bins import Bins
from sfumato.local.device.domains.categories import Domain
from sfumato.local.frequency.hadamard import OneBitHadamard
from sfumato.local.frequency.planning import plannable, trial_seconds
from sfumato.local.frequency.projective_geometry import ProjectiveGeometryResponse
from sfumato.local.ranges.haar import HaarHistogram
from sfumato.local.ranges.hierarchy import HierarchicalHistogram, planned_branching
from sfumato.local.ranges.protocol import RangeProtocol, range_ends

__all__ = ["RangeChoice", "RangePlan", "Ranges"]

_Maker = Callable[[float, Domain | Bins], RangeProtocol[Any]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RangePlan:
    """What one protocol of ranges would achieve and cost.

    Parameters
    ----------
    name : str
        ``"tree"``, ``"tree, one bit"`` and ``"tree, projective"`` (`HierarchicalHistogram` with its own
        oracles, with `OneBitHadamard` or with `ProjectiveGeometryResponse`), ``"haar"`` (`HaarHistogram`), or
        ``"flat"`` (a tree of leaves alone).
    branching : int
        Of the tree; 2 for Haar, as many as there are values for a flat one.
    stddev : float
        Root mean squared error of a range's share, over ranges of all lengths.
    by_length : mapping of int to float
        The same for ranges of one length.
    bytes : int
        Of a report.
    client_seconds, server_seconds : float
        Of all clients together, and of the server with its estimate: CPU time, extrapolated from trials.

    Examples
    --------
    >>> from sfumato.local import Ranges, choose
    >>> plan = choose(Ranges(16), epsilon=1.0, n=10_000).best
    >>> plan.stddev < 0.1, plan.bytes > 0
    (True, True)
    """

    name: str
    branching: int
    stddev: float
    by_length: Mapping[int, float]
    bytes: int
    client_seconds: float
    server_seconds: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RangeChoice(Choice[RangePlan]):
    """All protocols of ranges that meet the limits, the one to take first.

    Parameters
    ----------
    epsilon : float
        Of each report.
    plans : tuple of RangePlan
        The protocols that meet the limits, the best first.
    ruled_out : mapping of str to str
        The others, with the reason.

    Examples
    --------
    >>> from sfumato.local import Domain, Ranges, choose
    >>> choice = choose(Ranges(16), epsilon=1.0, n=10_000)
    >>> protocol = choice.protocol(Domain(range(16)))
    >>> protocol.device.width == choice.best.bytes
    True
    """

    epsilon: float

    def protocol(self, domain: Domain | Bins) -> RangeProtocol[Any]:
        """Return the best one for a domain, of the size that was planned for.

        Parameters
        ----------
        domain : Domain or Bins
            As many values as were planned for.

        Returns
        -------
        HierarchicalHistogram or HaarHistogram
            Ready to collect with.
        """
        return _KINDS[self.best.name](self.epsilon, domain)

    def __str__(self) -> str:
        lengths = list(self.best.by_length)
        head = f"{'protocol':<18}{'children':>9}{'stddev':>10}" + "".join(f"{x:>9} long" for x in lengths)
        rows = [head + f"{'bytes':>8}{'clients, s':>12}{'server, s':>12}"]
        for plan in self.plans:
            errors = "".join(f"{plan.by_length[length]:>14.3g}" for length in lengths)
            rows.append(
                f"{plan.name:<18}{plan.branching:>9}{plan.stddev:>10.3g}{errors}{plan.bytes:>8}"
                f"{plan.client_seconds:>12.3g}{plan.server_seconds:>12.3g}"
            )
        return self._table(*rows)


@final
@dataclass(frozen=True, slots=True)
class Ranges:
    """The question how many people lie in ranges of ordered values, for `sfumato.local.choose`.

    Parameters
    ----------
    domain : Domain, Bins or int
        The values, or how many there are; from 2 to 2^24.
    lengths : sequence of int, optional
        Of the ranges that will be asked: the error in question is then the root of the mean over these
        lengths. If left out it is that over ranges of all lengths, and some lengths are shown beside it.

    Notes
    -----
    A flat histogram, trees and Haar coefficients are compared, by their error for values that are all alike
    frequent. Of those whose error is within 5 % of the minimum, the one with the shortest reports comes
    first, and of these the one with the smallest error; all others follow by their error.

    Examples
    --------
    >>> from sfumato import local
    >>> choice = local.choose(Ranges(100), epsilon=1.0, n=1_000_000)
    >>> choice.best.name, choice.best.bytes, round(choice.best.stddev, 3)
    ('tree, projective', 6, 0.006)
    """

    domain: Domain | Bins | int
    _: KW_ONLY
    lengths: Sequence[int] | None = None

    def __post_init__(self) -> None:
        _lengths(self.lengths, plannable(self.domain))

    def plan(self, epsilon: float, n: int, limits: Limits) -> RangeChoice:
        """Return the protocols that meet the limits; called by `sfumato.local.choose`.

        Parameters
        ----------
        epsilon : float
            Of each report.
        n : int
            How many people will report.
        limits : Limits
            What a protocol may cost.

        Returns
        -------
        RangeChoice
            The best one first.
        """
        size = plannable(self.domain)
        domain, wanted = Domain(range(size)), _lengths(self.lengths, size)
        plans, out = compared(
            ((name, partial(make, epsilon, domain)) for name, make in _KINDS.items()),
            lambda name, protocol: _planned(name, protocol, n, wanted, self.lengths is not None),
            lambda plan: plan.stddev,
            limits,
            kind="protocol",
        )
        return RangeChoice(epsilon=epsilon, plans=plans, ruled_out=out)


def _one_bit(epsilon: float, domain: Domain | Bins) -> RangeProtocol[Any]:
    branching = planned_branching(epsilon, len(domain), OneBitHadamard)
    return HierarchicalHistogram(epsilon=epsilon, domain=domain, branching=branching, oracle=OneBitHadamard)


def _projective(epsilon: float, domain: Domain | Bins) -> RangeProtocol[Any]:
    return HierarchicalHistogram(epsilon=epsilon, domain=domain, oracle=ProjectiveGeometryResponse)


def _flat(epsilon: float, domain: Domain | Bins) -> RangeProtocol[Any]:
    return HierarchicalHistogram(epsilon=epsilon, domain=domain, branching=len(domain))


_KINDS: Final[Mapping[str, _Maker]] = {
    "tree": lambda epsilon, domain: HierarchicalHistogram(epsilon=epsilon, domain=domain),
    "tree, one bit": _one_bit,
    "tree, projective": _projective,
    "haar": lambda epsilon, domain: HaarHistogram(epsilon=epsilon, domain=domain),
    "flat": _flat,
}


def _lengths(given: Sequence[int] | None, size: int) -> list[int]:
    """Return the lengths whose error is shown."""
    if given is None:
        return sorted({1, max(1, round(size**0.5)), max(1, size // 2)})
    lengths: object = given
    if not isinstance(lengths, list | tuple | range) or not lengths:
        _check.refuse_type("lengths", "be a list of at least one length", given, "leave it out for all")
    for length in lengths:
        if _check.integer("lengths", length, minimum=1) > size:
            _check.refuse("lengths", f"be at most {size}", length, "leave longer ones out")
    return [int(length) for length in lengths]


def _planned(
    name: str, protocol: RangeProtocol[Any], count: int, lengths: list[int], weighed: bool
) -> RangePlan:
    ranges = [range_ends(len(protocol.domain), length) for length in (*lengths, None)]
    found = protocol.variance(count, *(np.concatenate(ends) for ends in zip(*ranges, strict=True)))
    parts = np.split(found, np.cumsum([len(first) for first, _ in ranges])[:-1])
    *squares, whole = (float(part.mean()) for part in parts)
    mean = sum(squares) / len(squares) if weighed else whole
    client, server = trial_seconds(protocol, len(protocol.domain), count)
    return RangePlan(
        name=name,
        branching=protocol.device.shape.branching,
        stddev=math.sqrt(mean),
        by_length={length: math.sqrt(square) for length, square in zip(lengths, squares, strict=True)},
        bytes=protocol.device.width,
        client_seconds=client,
        server_seconds=server,
    )
