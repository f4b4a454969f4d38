"""Choose a protocol before anybody is asked: a question, what it may cost, and the best ways to answer it.

>>> from sfumato import local
>>> local.choose(local.Frequencies(1024), epsilon=1.0, n=1_000_000, max_bytes=16).best.name
'ProjectiveGeometryResponse'

A question is a value: `sfumato.local.Frequencies`, `Ranges`, `Marginals` or `FrequentStrings`. It knows the
protocols that answer it and how far their estimates deviate; `choose` is the same for all. No data are used:
errors are the protocols' theory, and times are of trials with made-up values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Never, Protocol, TypeVar

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.base.protocol import LocalProtocol, ReportProtocol
from sfumato.local.device.base.bernoulli import checked_epsilon

__all__ = ["Choice", "Limits", "Question", "choose", "compared", "none_left"]

_NEAR: Final = 1.05

_Plan = TypeVar("_Plan")
_Choice_co = TypeVar("_Choice_co", covariant=True)
_Choice = TypeVar("_Choice")


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

    def too_long(self, protocol: ReportProtocol[Any, Any]) -> str | None:
        """Return why reports are too long; None if they are not."""
        width = protocol.device.width
        return f"{width} bytes a report" if self.max_bytes is not None and width > self.max_bytes else None

    def without_seconds(self) -> None:
        """Refuse a limit of seconds, for questions whose protocols are not timed."""
        if math.isfinite(self.max_seconds):
            _check.refuse("max_seconds", "be left out for this question", self.max_seconds, "pass max_bytes")

    def too_slow(self, seconds: float) -> str | None:
        """Return why the server would take too long; None if it would not."""
        return f"{seconds:.3g} seconds of the server" if seconds > self.max_seconds else None


class Question(Protocol[_Choice_co]):
    """What people may be asked, as `choose` takes it."""

    def plan(self, epsilon: float, n: int, limits: Limits) -> _Choice_co:
        """Return the protocols that answer it within the limits, the best first."""


def choose(
    question: Question[_Choice],
    *,
    epsilon: float,
    n: int,
    max_bytes: int | None = None,
    max_seconds: float | None = None,
) -> _Choice:
    """Compare all protocols that answer a question, before anybody is asked.

    Parameters
    ----------
    question : Frequencies, Ranges, Marginals or FrequentStrings
        What will be asked; see these classes for what is compared, and how.
    epsilon : float
        Bound on the loss of each person's report, from above 0 to 40.
    n : int
        How many people will report, at least 1.
    max_bytes : int, optional
        Of a report.
    max_seconds : float, optional
        Of the server, for frequencies and ranges.

    Returns
    -------
    OracleChoice, RangeChoice, MarginalsChoice or StringsChoice
        The protocols that meet the limits, the best first, and why the others are ruled out. ``print`` shows
        it as a table.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or no protocol meets the limits.

    Examples
    --------
    How often each of 1,024 categories occurs, how many people lie in ranges of 100 values, how often the
    answers to 16 questions come together, and which strings of up to 8 letters are frequent:

    >>> from sfumato import local
    >>> local.choose(local.Frequencies(1024), epsilon=1.0, n=1_000_000, max_bytes=16).best.bytes
    6
    >>> local.choose(local.Ranges(100), epsilon=1.0, n=1_000_000).best.name
    'tree, projective'
    >>> questions = local.Marginals([local.Domain(["no", "yes"])] * 16, order=3)
    >>> local.choose(questions, epsilon=1.0, n=1_000_000).best.name
    'FourierMarginals'
    >>> found = local.choose(local.FrequentStrings(local.Strings(length=8)), epsilon=4.0, n=1_000_000)
    >>> round(found.best.share, 3)
    0.003
    """
    given: object = question
    if not callable(getattr(given, "plan", None)):
        remedy = "pass local.Frequencies(...), Ranges(...), Marginals(...) or FrequentStrings(...)"
        _check.refuse_type("question", "be a question that can be planned for", given, remedy)
    count = _check.integer("n", n, minimum=1)
    return question.plan(checked_epsilon(epsilon), count, Limits.checked(max_bytes, max_seconds))


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
        none_left("max_bytes and max_seconds", f"leave some {kind}", out)
    smallest = _NEAR * min(error(plan) for plan in plans)

    def order(plan: _CostedPlan) -> tuple[bool, float, float]:
        near = error(plan) <= smallest
        return not near, plan.bytes if near else 0, error(plan)

    return tuple(sorted(plans, key=order)), out


def none_left(parameters: str, rule: str, ruled_out: Mapping[str, str]) -> Never:
    """Refuse parameters that rule out all ways, with the reasons.

    Raises
    ------
    ParameterError
        Always.
    """
    reasons = "; ".join(f"{name}: {why}" for name, why in ruled_out.items())
    _check.refuse_state(parameters, rule, "all are ruled out", reasons)
