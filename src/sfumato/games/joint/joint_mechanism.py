"""Joint differential privacy: a public signal, and for each agent a part computed from it and its report."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sfumato.games.game import as_agent
from sfumato.games.social_choice import Ledger, charged
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.neighboring import Neighboring

__all__ = ["JointMechanism", "JointRelease"]


class JointMechanism(Mechanism):
    r"""A private signal for all, and for each agent a part that reads the signal and its own report.

    A subclass is a frozen dataclass. It draws the signal, and says how a part follows from it.

    Notes
    -----
    Guarantee (the billboard lemma): let the signal have the loss ``privacy_loss`` under replacing one agent's
    report. Then for every agent i, what all other agents receive together, their parts and the signal itself,
    has that loss too in i's report: joint differential privacy. For i's report replaced, every other part is
    the same function of the signal and of an unchanged report, so all of it is post-processing of the signal.

    The same holds against i's report of any coalition that does not contain i. It says nothing of i's own
    part, which depends on i's report as much as it must, nor of what i makes public by acting on it: where
    actions are seen by outsiders, they are outside of the guarantee.

    By construction a `JointRelease` holds the signal and the frozen mechanism, and no report: there is
    nothing else that a part could read.

    References
    ----------
    Kearns, Pai, Roth, Ullman (2014), "Mechanism design in large games: incentives and privacy", for joint
    differential privacy; Hsu, Huang, Roth, Roughgarden, Wu (2014), "Private matchings and allocations",
    for the billboard lemma.

    Examples
    --------
    >>> from sfumato.games import Billboard
    >>> issubclass(Billboard, JointMechanism)
    True
    """

    __slots__ = ()

    agents: int
    delta: float

    @abstractmethod
    def _announce(self, reports: Any, source: RandomSource) -> Any:
        """Draw the signal for checked reports."""

    @abstractmethod
    def _checked(self, reports: Any, count: int) -> Any:
        """Return ``count`` reports in a known form; refuse what no agent can report, and do not show it."""

    @abstractmethod
    def _parts(self, signal: Any, agents: Any, reports: Any) -> Any:
        """Return the parts of some agents, given their positions and their checked reports."""

    @property
    def neighboring(self) -> Neighboring:
        """One agent's report is replaced; who takes part is public."""
        return Neighboring.REPLACE_ONE

    def release(
        self,
        value: Any,
        rng: Rng = None,
        *,
        ledger: Ledger | None = None,
        description: str = "jointly private signal",
    ) -> JointRelease:
        """Draw one signal.

        Parameters
        ----------
        value : sequence or array
            One report for each agent, in the agents' public order.
        rng : None, int, numpy Generator or RandomSource
            As in `sfumato.mechanisms.Mechanism`.
        ledger : Ledger, optional
            Charged before anything is drawn.
        description : str
            What the ledger writes down.

        Returns
        -------
        JointRelease

        Raises
        ------
        ParameterError
            If there is not one report for each agent, or their form does not fit.
        """
        reports, source = self._checked(value, self.agents), random_source(rng)
        receipt = charged(ledger, self.privacy_loss, description, source, self.delta)
        signal = self._announce(reports, source)
        return self._release_as(JointRelease, signal, source, receipt=receipt, mechanism=self)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointRelease(Release):
    """The signal that all agents may see, and what turns it and a report into that agent's own part.

    Parameters
    ----------
    mechanism : JointMechanism
        Its frozen parameters, which are public.
    value, loss, neighboring, receipt, simulated, labels
        As in `sfumato.mechanisms.Release`; the value is the signal, and the loss is joint: it holds for what
        everyone but the protected agent receives.

    Examples
    --------
    >>> from sfumato.games import Billboard, PrivateDictator
    >>> def respond(signal, report):
    ...     return "stay" if signal == report[0] else "leave"
    >>> board = Billboard(signal=PrivateDictator(candidates=2, epsilon=9), respond=respond, agents=2)
    >>> release = board.release([[0, 1], [0, 1]], rng=1)
    >>> release.value, release.part(0, [0, 1])
    (0, 'stay')
    """

    mechanism: JointMechanism

    def part(self, agent: int, report: Any) -> Any:
        """Return one agent's own part.

        Parameters
        ----------
        agent : int
            Its position, which is public.
        report : object
            What it reported. Nobody else's report is needed: an agent may compute its part by itself.

        Returns
        -------
        object

        Raises
        ------
        ParameterError
            If there is no such agent, or the report's form does not fit.
        """
        agent = as_agent(agent, self.mechanism.agents)
        report = self.mechanism._checked([report], 1)  # noqa: SLF001
        return self.mechanism._parts(self.value, np.array([agent]), report)[0]  # noqa: SLF001

    def parts(self, reports: Any) -> Any:
        """Return all agents' parts: for the curator, who hands each agent its own.

        Parameters
        ----------
        reports : sequence or array
            One report for each agent.

        Returns
        -------
        sequence or array
            The parts, in the agents' order. All of them together are not private.

        Raises
        ------
        ParameterError
            If the reports' form does not fit.
        """
        count = self.mechanism.agents
        reports = self.mechanism._checked(reports, count)  # noqa: SLF001
        return self.mechanism._parts(self.value, np.arange(count), reports)  # noqa: SLF001
