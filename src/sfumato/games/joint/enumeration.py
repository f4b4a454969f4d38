"""Joint privacy by enumeration: everything that the others receive, for all reports of a small game."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, final

import numpy as np

from sfumato import _check
from sfumato.games.joint.joint_mechanism import JointMechanism

__all__ = ["JointPrivacyCheck", "check_joint_privacy"]

_MOST: Final = 1 << 22
_LARGEST: Final = 709.0  # of what the exponential is a float

_Distribution = Callable[[tuple[Any, ...]], Mapping[Any, float]]
_Profile = tuple[Any, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JointPrivacyCheck:
    """What enumeration found: how well everyone but one agent can distinguish two of that agent's reports.

    Parameters
    ----------
    epsilon : float
        What was claimed.
    delta : float
        The largest hockey-stick divergence at that epsilon of what the others receive.
    signal_delta : float
        The same of the signal alone: ``delta`` is at most this, by the billboard lemma.
    measured_epsilon : float
        The largest logarithm of a ratio of probabilities of one output to the others.
    agent : int
        Whose report was replaced where ``measured_epsilon`` was found.
    reports, replaced : tuple
        The two profiles of reports there.
    pairs : int
        How many ordered pairs of neighbors were compared.

    Examples
    --------
    >>> check = JointPrivacyCheck(epsilon=1.0, delta=0.0, signal_delta=0.0, measured_epsilon=0.8, agent=0,
    ...                           reports=("a", "b"), replaced=("b", "b"), pairs=8)
    >>> check.ratio
    0.8
    """

    epsilon: float
    delta: float
    signal_delta: float
    measured_epsilon: float
    agent: int
    reports: _Profile
    replaced: _Profile
    pairs: int

    @property
    def ratio(self) -> float:
        """The measured epsilon over the claimed one: at most 1 where the claim is pure and true."""
        return self.measured_epsilon / self.epsilon


def check_joint_privacy(
    mechanism: JointMechanism, types: Sequence[Any], distribution: _Distribution, *, epsilon: float
) -> JointPrivacyCheck:
    """Compare all that the other agents receive, for every profile, agent and replaced report.

    Parameters
    ----------
    mechanism : JointMechanism
        Whose parts are computed.
    types : sequence
        All reports that an agent may make.
    distribution : callable
        Takes a tuple of reports, one for each agent; returns the exact probability of each signal, as a
        mapping. Signals that are arrays are given as tuples.
    epsilon : float
        What is claimed, positive.

    Returns
    -------
    JointPrivacyCheck

    Raises
    ------
    ParameterError
        If the game is too large: more than four million signals over all profiles.

    Notes
    -----
    An output to the others is the tuple of their parts. Up to the error of adding floats, about 1e-15 of
    each probability, the result is exact.

    Examples
    --------
    >>> from sfumato.games import Billboard, PrivateDictator
    >>> def respond(signal, report):
    ...     return signal == report[0]
    >>> vote = PrivateDictator(candidates=2, epsilon=1.0)
    >>> board = Billboard(signal=vote, respond=respond, agents=3)
    >>> def distribution(reports):
    ...     return dict(enumerate(vote.probabilities(reports)))
    >>> check = check_joint_privacy(board, [(0, 1), (1, 0)], distribution, epsilon=1.0)
    >>> check.delta, check.ratio <= 1
    (0.0, True)
    """
    _check.instance("mechanism", mechanism, JointMechanism, "pass a Billboard or another")
    epsilon = _check.positive("epsilon", epsilon)
    labels = list(types)
    profiles = _profiles(labels, mechanism.agents)
    signals = {profile: dict(distribution(profile)) for profile in profiles}
    if len(profiles) * max(len(found) for found in signals.values()) > _MOST:
        _check.refuse_state(
            "types", f"give at most {_MOST:,} signals", "there are more", "play a smaller game"
        )
    worst = _Worst(epsilon)
    for agent in range(mechanism.agents):
        others = {profile: _others(mechanism, signals[profile], profile, agent) for profile in profiles}
        for profile in profiles:
            for report in labels:
                if report != profile[agent]:
                    replaced = (*profile[:agent], report, *profile[agent + 1 :])
                    worst.compare(others[profile], others[replaced], agent, profile, replaced)
                    worst.compare_signals(signals[profile], signals[replaced])
    return worst.result()


def _profiles(labels: list[Any], agents: int) -> list[_Profile]:
    if len(labels) < 2 or len(labels) ** agents > _MOST:
        rule = f"be at least 2, with at most {_MOST:,} profiles"
        _check.refuse("types", rule, len(labels), "play a smaller game")
    return list(product(labels, repeat=agents))


def _others(
    mechanism: JointMechanism, signals: Mapping[Hashable, float], profile: _Profile, agent: int
) -> dict[Hashable, float]:
    """Return the distribution of the tuple of all parts but one agent's."""
    found: dict[Hashable, float] = {}
    places = np.array([place for place in range(mechanism.agents) if place != agent], np.int64)
    reports = mechanism._checked([profile[place] for place in places], len(places))  # noqa: SLF001
    for signal, probability in signals.items():
        parts = _hashable(mechanism._parts(signal, places, reports))  # noqa: SLF001
        found[parts] = found.get(parts, 0.0) + probability
    return found


def _hashable(parts: Any) -> Hashable:
    listed = parts.tolist() if isinstance(parts, np.ndarray) else parts
    return tuple(_hashable(part) for part in listed) if isinstance(listed, list | tuple) else listed


class _Worst:
    """The worst pair so far."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon
        self.growth = math.exp(epsilon) if epsilon < _LARGEST else math.inf
        self.delta = self.signal_delta = 0.0
        self.found, self.pairs = -math.inf, 0
        self.witness: tuple[int, _Profile, _Profile] = (0, (), ())

    def compare(
        self,
        here: Mapping[Hashable, float],
        there: Mapping[Hashable, float],
        agent: int,
        profile: _Profile,
        replaced: _Profile,
    ) -> None:
        self.pairs += 1
        self.delta = max(self.delta, self._hockey_stick(here, there))
        for output, probability in here.items():
            if probability > 0:
                other = there.get(output, 0.0)
                ratio = math.log(probability / other) if other > 0 else math.inf
                if ratio > self.found:
                    self.found, self.witness = ratio, (agent, profile, replaced)

    def compare_signals(self, here: Mapping[Hashable, float], there: Mapping[Hashable, float]) -> None:
        self.signal_delta = max(self.signal_delta, self._hockey_stick(here, there))

    def result(self) -> JointPrivacyCheck:
        agent, reports, replaced = self.witness
        return JointPrivacyCheck(
            epsilon=self.epsilon,
            delta=self.delta,
            signal_delta=self.signal_delta,
            measured_epsilon=self.found,
            agent=agent,
            reports=reports,
            replaced=replaced,
            pairs=self.pairs,
        )

    def _hockey_stick(self, here: Mapping[Hashable, float], there: Mapping[Hashable, float]) -> float:
        return math.fsum(
            excess
            for output, p in here.items()
            if (excess := p - (self.growth * other if (other := there.get(output, 0.0)) else 0.0)) > 1e-15
        )
