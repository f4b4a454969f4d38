"""Compare the ways to do a job: each is tried and held against limits, and the best comes first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Never, Protocol, TypeVar

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.base.protocol import LocalProtocol

__all__ = ["Choice", "Limits", "compared", "none_left"]

_NEAR: Final = 1.05

_Plan = TypeVar("_Plan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Generic[_Plan]):
    """All ways to do a job that meet the limits, the one to take first.

    Attributes
    ----------
    plans : tuple
    ruled_out : mapping of str to str
        The others, with the reason.
    """

    plans: tuple[_Plan, ...]
    ruled_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> _Plan:
        """The one to take."""
        return self.plans[0]

    def _table(self, *lines: str) -> str:
        """Return the lines of a table, and below them what is ruled out."""
        return "\n".join([*lines, *(f"{name}: {why}" for name, why in self.ruled_out.items())])


@dataclass(frozen=True, slots=True)
class Limits:
    """What a protocol may cost.

    Attributes
    ----------
    max_bytes : int or None
        Of a report.
    max_seconds : float
        Of the server.
    """

    max_bytes: int | None
    max_seconds: float = math.inf

    @classmethod
    def checked(cls, max_bytes: int | None, max_seconds: float | None = None) -> Limits:
        """Return the limits that a user states.

        Raises
        ------
        ParameterError
            If one breaks its rule.
        """
        return cls(
            None if max_bytes is None else _check.integer("max_bytes", max_bytes, minimum=1),
            math.inf if max_seconds is None else _check.positive("max_seconds", max_seconds),
        )

    def too_long(self, protocol: LocalProtocol[Any, Any]) -> str | None:
        """Return why reports are too long; None if they are not."""
        width = protocol.device.width
        return f"{width} bytes a report" if self.max_bytes is not None and width > self.max_bytes else None

    def too_slow(self, seconds: float) -> str | None:
        """Return why the server would take too long; None if it would not."""
        return f"{seconds:.3g} seconds of the server" if seconds > self.max_seconds else None


class _Costed(Protocol):
    """A plan that states its cost."""

    @property
    def bytes(self) -> int: ...
    @property
    def server_seconds(self) -> float: ...


_Made = TypeVar("_Made", bound=LocalProtocol[Any, Any])
_CostedPlan = TypeVar("_CostedPlan", bound=_Costed)


def compared(
    ways: Iterable[tuple[str, Callable[[], _Made]]],
    planned: Callable[[str, _Made], _CostedPlan],
    error: Callable[[_CostedPlan], float],
    limits: Limits,
    *,
    kind: str,
) -> tuple[tuple[_CostedPlan, ...], dict[str, str]]:
    """Return the plans of all ways that meet the limits, in their order, and why the others do not.

    Of those whose error is within 5 % of the minimum, the one with the shortest reports comes first, and of
    these the one with the smallest error; all others follow by their error.

    Parameters
    ----------
    ways : iterable of (name, how to make the protocol)
        One whose parameters do not fit is refused when it is made.
    planned : callable
        Makes a plan from a name and a protocol.
    error : callable
        What a plan is ordered by.
    limits : Limits
    kind : str
        What the ways are, for the error.

    Raises
    ------
    ParameterError
        If none meets the limits.
    """
    plans: list[_CostedPlan] = []
    out: dict[str, str] = {}
    for name, make in ways:
        try:
            protocol = make()
        except ParameterError as refused:
            out[name] = str(refused)
            continue
        why = limits.too_long(protocol)
        if why is None:
            plan = planned(name, protocol)
            why = limits.too_slow(plan.server_seconds)
            if why is None:
                plans.append(plan)
                continue
        out[name] = why
    if not plans:
        none_left("max_bytes and max_seconds", f"leave some {kind}", "none", out)
    smallest = _NEAR * min(error(plan) for plan in plans)

    def order(plan: _CostedPlan) -> tuple[bool, float, float]:
        near = error(plan) <= smallest
        return not near, plan.bytes if near else 0, error(plan)

    return tuple(sorted(plans, key=order)), out


def none_left(parameters: str, rule: str, value: object, ruled_out: Mapping[str, str]) -> Never:
    """Refuse parameters that rule out all ways, with the reasons.

    Raises
    ------
    ParameterError
        Always.
    """
    _check.refuse(parameters, rule, value, "; ".join(f"{name}: {why}" for name, why in ruled_out.items()))
