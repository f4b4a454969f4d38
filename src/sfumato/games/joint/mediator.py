"""A mediator: agents report round by round, and each receives its own recommendation, jointly private."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

from sfumato import _check
from sfumato.games.game import as_agent
from sfumato.games.joint.joint_mechanism import JointMechanism, JointRelease
from sfumato.games.social_choice import Ledger
from sfumato.numerics.randomness.one_process import OneProcess
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.rounding import add_up, mul_up, up
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Advice", "Mediator"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Advice:
    """One round's recommendations: the public signal, and each present agent's own part.

    Parameters
    ----------
    round : int
        From 1.
    release : JointRelease
        The signal, which may be shown to all.
    incentive : float
        See `Mediator.incentive_bound`: before this round.
    recommendations : mapping of int to object
        The part of each agent that reported: for the curator, who hands each agent its own.

    Examples
    --------
    >>> from sfumato.games import Billboard, PrivateDictator
    >>> def respond(signal, report):
    ...     return "stay" if signal == report[0] else "leave"
    >>> board = Billboard(signal=PrivateDictator(candidates=2, epsilon=1), respond=respond, agents=3)
    >>> mediator = Mediator(board, rounds=2, absent=(0, 1), rng=1)
    >>> advice = mediator.advise({0: (0, 1), 2: (1, 0)})
    >>> advice.round, sorted(advice.recommendations)
    (1, [0, 2])
    """

    round: int
    release: JointRelease
    incentive: float
    recommendations: Mapping[int, Any]


@final
class Mediator(OneProcess):
    r"""Takes reports of agents who may lie, round by round, and returns to each its own recommendation.

    Parameters
    ----------
    mechanism : JointMechanism
        What is run in each round.
    rounds : int
        How many there are; public, fixed beforehand.
    absent : object
        The public report that counts for an agent who does not report in a round.
    utility_range : float
        The most by which an agent's utilities of a round differ.
    advantage : float
        The most that an agent would gain in a round by any other function of the signals than its
        recommendation, if all report truly. 0 unless given: as for a `Billboard` whose parts are best
        responses, where utilities depend on the signal and the agent's own action.
    ledger : Ledger, optional
        Charged in each round, before anything is drawn.
    description : str
        What the ledger writes down.
    rng : None, int, numpy Generator or RandomSource
        As in `sfumato.mechanisms.Mechanism`.

    Attributes
    ----------
    played : int
        Rounds so far.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: all rounds together are jointly private for each agent's whole sequence of reports, absences
    included, with the loss ``mechanism.privacy_loss * rounds``: the signals compose, as a round's reports may
    depend on the signals before it, and all that others receive is computed from the signals and from their
    own reports. Who is absent is not shown: an absent agent counts with a public report. How many rounds
    there are does not depend on any report.

    A copy is the mediator itself: another one would have its rounds once more.

    Condition: others' reports depend on the agent's only through the signals. What an agent shows by acting
    is outside of the guarantee.

    *Incentives.* Let an agent report falsely from some round on, and act on what it receives as it likes. In
    the k-th of these rounds the others' behavior and the signals so far have moved by at most the total
    variation distance that k runs allow, ``(mechanism.privacy_loss * k).delta(0)``; times the utility range,
    that is the most that lies change of the expected utility of any way to act on the signals; and truthful
    reports with the recommended actions are at most ``advantage`` below the best such way. `incentive_bound`
    adds up over the rounds that are left. This is approximate truthfulness: a bound on the gain, not its
    absence.

    References
    ----------
    McSherry, Talwar (2007), "Mechanism design via differential privacy"; Kearns, Pai, Roth, Ullman (2014),
    "Mechanism design in large games: incentives and privacy"; Rogers, Roth (2014), "Asymptotically
    truthful equilibrium selection in large congestion games", for weak mediators.

    Examples
    --------
    >>> from sfumato.games import Billboard, PrivateDictator
    >>> def respond(signal, report):
    ...     return "stay" if signal == report[0] else "leave"
    >>> board = Billboard(signal=PrivateDictator(candidates=2, epsilon=0.1), respond=respond, agents=3)
    >>> mediator = Mediator(board, rounds=2, absent=(0, 1), rng=4)
    >>> round(mediator.incentive_bound(), 3)
    0.1
    >>> advice = mediator.advise({0: (0, 1), 1: (0, 1), 2: (1, 0)})
    >>> advice.recommendations[2] in ("stay", "leave"), round(mediator.incentive_bound(), 3)
    (True, 0.05)
    """

    _name: ClassVar[str] = "mediator"
    _remedy: ClassVar[str] = "send it reports, or make one mediator in each process and add up their losses"

    def __init__(
        self,
        mechanism: JointMechanism,
        *,
        rounds: int,
        absent: Any,
        utility_range: float = 1.0,
        advantage: float = 0.0,
        ledger: Ledger | None = None,
        description: str = "mediator",
        rng: Rng = None,
    ) -> None:
        _check.instance("mechanism", mechanism, JointMechanism, "pass a Billboard or another")
        _check.ledger(ledger)
        self.mechanism: Final = mechanism
        self.rounds: Final = _check.integer("rounds", rounds, minimum=1)
        self.utility_range: Final = _check.positive("utility_range", utility_range)
        self.advantage: Final = _check.non_negative("advantage", advantage)
        mechanism._checked([absent], 1)  # noqa: SLF001
        self.absent: Final = absent
        self.played = 0
        self._ledger, self._description = ledger, description
        self._source = random_source(rng)
        self._lock = threading.Lock()
        self._gains: list[float] = []

    def __repr__(self) -> str:
        return f"Mediator({self.rounds - self.played} of {self.rounds} rounds left)"

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Of all rounds together, jointly."""
        return self.mechanism.privacy_loss * self.rounds

    @property
    def spent(self) -> PrivacyLoss:
        """Of the rounds so far."""
        return self.mechanism.privacy_loss * self.played

    def incentive_bound(self) -> float:
        """Return the most that an agent gains in expectation by lies in the rounds that are left.

        Returns
        -------
        float
            In the unit of utilities, added up over these rounds; at most their number times the utility
            range. It follows from public parameters.
        """
        left = self.rounds - self.played
        while len(self._gains) < left:
            moved = (self.mechanism.privacy_loss * (len(self._gains) + 1)).delta(0.0)
            gain = add_up(self.advantage, mul_up(self.utility_range, min(1.0, moved)))
            self._gains.append(min(self.utility_range, gain))
        return up(math.fsum(self._gains[:left])) if left else 0.0

    def advise(self, reports: Mapping[int, Any]) -> Advice:
        """Play a round.

        Parameters
        ----------
        reports : mapping of int to object
            The reports of the agents that are present, by position.

        Returns
        -------
        Advice

        Raises
        ------
        ParameterError
            If all rounds were played, there is no such agent, or a report's form does not fit. Nothing is
            charged then.
        BudgetExceeded
            If the ledger cannot pay.
        """
        self._check_process()
        if not isinstance(reports, Mapping):
            _check.refuse_type(
                "reports", "be a mapping from agents to reports", reports, "pass {agent: report}"
            )
        with self._lock:
            if self.played >= self.rounds:
                remedy = "make a new mediator, whose rounds are charged too"
                _check.refuse_state("advise", "be called for a round that is left", "all were played", remedy)
            everyone = [self.absent] * self.mechanism.agents
            for agent, report in reports.items():
                everyone[as_agent(agent, len(everyone))] = report
            incentive = self.incentive_bound()
            release = self.mechanism.release(
                everyone, self._source, ledger=self._ledger, description=self._description
            )
            self.played += 1
            parts = release.parts(everyone)
        return Advice(
            round=self.played,
            release=release,
            incentive=incentive,
            recommendations={agent: parts[agent] for agent in reports},
        )
