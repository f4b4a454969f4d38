"""The billboard: a private signal for all agents, and each agent's own response to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from sfumato import _check
from sfumato.games.joint.joint_mechanism import JointMechanism
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Billboard"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Billboard(JointMechanism):
    """A signal that a private mechanism draws from all reports, and a response of each agent.

    Parameters
    ----------
    signal : Mechanism
        What is posted for all: its ``release`` takes the reports, and its loss is stated under replace-one.
    respond : callable
        A plain function of the signal and of one report, with no default, closure or object behind it: an
        agent's part, such as its best response. It must not draw at random, and must not change anything.
    agents : int
        How many; public.
    delta : float
        Where a ledger reads the signal's guarantee; 0 unless given.

    Raises
    ------
    ParameterError
        If the signal is stated under another relation, or the function could read something else.

    Notes
    -----
    Guarantee: the joint privacy of `JointMechanism`, with the signal's loss. Global names that the function
    uses, such as a public table, are the caller's to leave alone: Python cannot forbid that they change.

    Examples
    --------
    Three drivers choose between a bridge and a ferry. The signal counts who wants to cross early; each driver
    avoids the crowd unless it is in a hurry itself.

    >>> from sfumato.mechanisms import Histogram, Laplace
    >>> from sfumato.privacy import Neighboring
    >>> counts = Laplace.for_query(
    ...     Histogram(categories=("early", "late")), epsilon=2.0, neighboring=Neighboring.REPLACE_ONE
    ... )
    >>> def respond(signal, report):
    ...     return "bridge" if report == "early" or signal[0] <= signal[1] else "ferry"
    >>> board = Billboard(signal=counts, respond=respond, agents=3)
    >>> release = board.release(["early", "late", "late"], rng=5)
    >>> release.part(0, "early"), board.privacy_loss == counts.privacy_loss
    ('bridge', True)
    """

    signal: Mechanism
    respond: Callable[[Any, Any], Any]
    agents: int
    delta: float = 0.0

    def __post_init__(self) -> None:
        _check.instance("signal", self.signal, Mechanism, "pass a mechanism whose release takes the reports")
        _check.integer("agents", self.agents, minimum=1)
        _check.probability("delta", self.delta)
        if self.signal.neighboring is not Neighboring.REPLACE_ONE:
            remedy = "state the signal with neighboring=Neighboring.REPLACE_ONE"
            _check.refuse("signal", "protect one replaced report", str(self.signal.neighboring), remedy)
        _check_function(self.respond)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The signal's loss, which is joint for the parts."""
        return self.signal.privacy_loss

    def _checked(self, reports: Any, count: int) -> list[Any]:
        if not hasattr(reports, "__len__") or isinstance(reports, str | bytes | dict | set):
            _check.refuse_type("reports", "be a sequence", reports, "pass one report for each agent")
        if len(reports) != count:
            remedy = "an agent that is absent reports what is set aside for it"
            _check.refuse_state("reports", "be one for each agent", "there are more or fewer", remedy)
        return list(reports)

    def _announce(self, reports: Any, source: RandomSource) -> Any:
        return self.signal.release(reports, source).value

    def _parts(self, signal: Any, agents: Any, reports: Any) -> list[Any]:
        return [self.respond(signal, report) for report in reports]


def _check_function(respond: object) -> None:
    """Refuse what could read more than the signal and a report."""
    remedy = "define it by def, with the two parameters signal and report"
    if not inspect.isfunction(respond):
        _check.refuse_type("respond", "be a plain function", respond, remedy)
    if respond.__closure__ or respond.__defaults__ or respond.__kwdefaults__:
        found = "it has a default or reads a variable of another function"
        _check.refuse_state("respond", "read the signal and one report only", found, remedy)
    if len(inspect.signature(respond).parameters) != 2:
        _check.refuse_state("respond", "take the signal and one report", "it takes others", remedy)
