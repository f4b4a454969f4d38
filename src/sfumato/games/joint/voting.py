"""Private voting: a winner drawn at random, by points or by a dictator drawn among ballots and candidates."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.joint.distortion import ranked_ballots
from sfumato.games.social_choice import Ledger, charged
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.selection.exponential import Exponential
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["PositionalVote", "PrivateDictator", "VotingRule"]

_Floats = NDArray[np.float64]
_Ballots = NDArray[np.int64]
_Rule = Literal["plurality", "veto", "borda", "harmonic"]
_HARMONIC: Final = 1 << 20
_DICTATOR_BITS: Final = 40
_MOST: Final = 1000


class VotingRule(Mechanism):
    """A random winner for ranked ballots, with its exact distribution.

    Notes
    -----
    Guarantee: differential privacy of the winner under replacing one ballot, and so joint differential
    privacy of whatever a voter does for itself once the winner is known (`Billboard`). The number of voters
    is public.

    Examples
    --------
    >>> vote = PositionalVote(candidates=3, rule="borda", epsilon=1.0)
    >>> isinstance(vote, VotingRule), vote.release([[0, 1, 2]] * 50, rng=3).value
    (True, 0)
    """

    __slots__ = ()

    candidates: int

    @abstractmethod
    def probabilities(self, ballots: Any) -> _Floats:
        """Return the probability of each winner: private, for tests and for `distortion`.

        Parameters
        ----------
        ballots : array of shape (voters, candidates)
            Each voter's candidates, the best first.

        Returns
        -------
        float64 array of shape (candidates,)
        """

    @abstractmethod
    def _draw(self, ballots: _Ballots, source: RandomSource) -> int:
        """Draw the winner."""

    @property
    def neighboring(self) -> Neighboring:
        """One ballot is replaced."""
        return Neighboring.REPLACE_ONE

    def release(
        self, value: Any, rng: Rng = None, *, ledger: Ledger | None = None, description: str = "vote"
    ) -> Release:
        """Draw the winner.

        Parameters
        ----------
        value : array of shape (voters, candidates)
            Each voter's candidates, the best first.
        rng : None, int, numpy Generator or RandomSource
            As in `sfumato.mechanisms.Mechanism`.
        ledger : Ledger, optional
            Charged before anything is drawn.
        description : str
            What the ledger writes down.

        Returns
        -------
        Release
            Its value is the winner's position.

        Raises
        ------
        ParameterError
            If a ballot is no order of all candidates.
        """
        ballots = ranked_ballots(value, self.candidates)
        source = random_source(rng)
        receipt = charged(ledger, self.privacy_loss, description, source)
        return self._release_as(Release, self._draw(ballots, source), source, receipt=receipt)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PositionalVote(VotingRule):
    r"""A winner with probability proportional to the exponential of its points.

    Parameters
    ----------
    candidates : int
        How many, from 2 to 1,000.
    rule : {"plurality", "veto", "borda", "harmonic"}
        The points of a ballot's positions: 1 for the first, 1 for all but the last, from m - 1 down to 0, or
        1 over the position (to a part in 2^20).
    epsilon : int, float or Fraction
        Of the winner.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: epsilon-DP under replacing one ballot, by the exponential mechanism: a ballot moves a
    candidate's points by at most those of the first position less those of the last.

    *Utility.* With probability at least :math:`1 - \beta` the winner has at most `shortfall` points fewer
    than the best candidate: see `sfumato.mechanisms.Exponential`.

    References
    ----------
    Lee (2015), "Efficient, private, and epsilon-strategyproof elicitation of tournament voting rules", for
    random private rules; Boutilier, Caragiannis, Haber, Lu, Procaccia, Sheffet (2015), "Optimal social choice
    functions: a utilitarian view", for harmonic points.

    Examples
    --------
    >>> vote = PositionalVote(candidates=3, rule="plurality", epsilon=1.0)
    >>> vote.probabilities([[0, 1, 2]] * 6 + [[1, 0, 2]] * 4).round(3).tolist()
    [0.705, 0.259, 0.035]
    """

    candidates: int
    rule: _Rule
    epsilon: Number

    def __post_init__(self) -> None:
        _check_candidates(self.candidates)
        if self.rule not in get_args(_Rule):
            _check.refuse("rule", "be plurality, veto, borda or harmonic", self.rule, "pass borda, for one")
        _check.fraction("epsilon", self.epsilon)

    @property
    def points(self) -> _Ballots:
        """The whole points of each position; harmonic ones in steps of 2^-20."""
        places = np.arange(self.candidates)
        if self.rule == "borda":
            return places[::-1].astype(np.int64)
        if self.rule == "harmonic":
            return np.asarray(_HARMONIC // (places + 1), np.int64)
        best = places == 0 if self.rule == "plurality" else places < self.candidates - 1
        return best.astype(np.int64)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """That of one winner."""
        return self._mechanism().privacy_loss

    def shortfall(self, beta: float) -> float:
        """Return how many points the winner may lack of the best candidate's, but for a chance ``beta``.

        Parameters
        ----------
        beta : float
            Strictly between 0 and 1.

        Returns
        -------
        float
            In steps of `points`.
        """
        return float(self._mechanism().utility_bound(beta))

    def scores(self, ballots: Any) -> _Ballots:
        """Return the points of all candidates: private.

        Parameters
        ----------
        ballots : array of shape (voters, candidates)

        Returns
        -------
        int64 array of shape (candidates,)
        """
        ranked = ranked_ballots(ballots, self.candidates)
        points = np.broadcast_to(self.points, ranked.shape)
        found = np.zeros(self.candidates, np.int64)
        np.add.at(found, ranked, points)
        return found

    def probabilities(self, ballots: Any) -> _Floats:
        """Return the probability of each winner: private, for tests and for `distortion`.

        Parameters
        ----------
        ballots : array of shape (voters, candidates)
            Each voter's candidates, the best first.

        Returns
        -------
        float64 array of shape (candidates,)
        """
        return self._mechanism().probabilities(self.scores(ballots))

    def _draw(self, ballots: _Ballots, source: RandomSource) -> int:
        return int(self._mechanism().release(self.scores(ballots), source).value)

    def _mechanism(self) -> Exponential:
        points = self.points
        return Exponential.calibrated(
            sensitivity=int(points[0] - points[-1]),
            epsilon=self.epsilon,  # type: ignore[arg-type]
            candidates=tuple(range(self.candidates)),
            neighboring=Neighboring.REPLACE_ONE,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateDictator(VotingRule):
    r"""A random dictator's first choice, where all candidates have some further ballots of nobody.

    Parameters
    ----------
    candidates : int
        How many, from 2 to 1,000.
    epsilon : int, float or Fraction
        Of the winner.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: epsilon-DP under replacing one ballot. With :math:`n_x` first places a candidate wins with
    probability :math:`(n_x + c) / (n + m c)`. A replaced ballot leaves the denominator and moves each
    :math:`n_x` by at most 1, so no probability grows by more than :math:`1 + 1/c`, which is at most
    :math:`e^\epsilon` for :math:`c \ge 1 / (e^\epsilon - 1)`; c is rounded up to a multiple of 2^-40.

    *Truthfulness.* A ballot raises the chance of its first candidate and of no other, linearly: to put one's
    favorite first is a dominant strategy, exactly and whatever the epsilon.

    References
    ----------
    Gibbard (1977), "Manipulation of schemes that mix voting with chance", for the random dictator.

    Examples
    --------
    >>> vote = PrivateDictator(candidates=2, epsilon=1.0)
    >>> vote.probabilities([[0, 1]] * 9 + [[1, 0]]).round(3).tolist()
    [0.858, 0.142]
    """

    candidates: int
    epsilon: Number

    def __post_init__(self) -> None:
        _check_candidates(self.candidates)
        if not Fraction(1, 1 << 20) <= _check.fraction("epsilon", self.epsilon) <= 32:
            _check.refuse("epsilon", "be from 2**-20 to 32", self.epsilon, "pass 1.0, for one")

    @property
    def added(self) -> Fraction:
        """How many ballots of nobody each candidate has."""
        low = math.expm1(drawn_epsilon(self.epsilon)) * (1 - 1e-14)  # the platform's expm1 errs by less
        return Fraction(math.ceil(Fraction(1 << _DICTATOR_BITS) / Fraction(low)), 1 << _DICTATOR_BITS)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """That of one winner."""
        return PureDP(fraction_up(drawn_epsilon(self.epsilon)), neighboring=Neighboring.REPLACE_ONE)

    def probabilities(self, ballots: Any) -> _Floats:
        """Return the probability of each winner: private, for tests and for `distortion`.

        Parameters
        ----------
        ballots : array of shape (voters, candidates)
            Each voter's candidates, the best first.

        Returns
        -------
        float64 array of shape (candidates,)
        """
        weights = self._weights(ranked_ballots(ballots, self.candidates))
        total = sum(weights)
        return np.array([float(Fraction(weight, total)) for weight in weights])

    def _draw(self, ballots: _Ballots, source: RandomSource) -> int:
        first, (own, nobody) = ballots[:, 0], (len(ballots) << _DICTATOR_BITS, self._nobody())
        total = own + nobody * self.candidates
        drawn = _uniform_below(total, source)
        return int(first[drawn >> _DICTATOR_BITS]) if drawn < own else (drawn - own) // nobody

    def _weights(self, ballots: _Ballots) -> list[int]:
        counts = np.bincount(ballots[:, 0], minlength=self.candidates)
        return [(int(count) << _DICTATOR_BITS) + self._nobody() for count in counts]

    def _nobody(self) -> int:
        return int(self.added * (1 << _DICTATOR_BITS))


def _check_candidates(candidates: int) -> None:
    if _check.integer("candidates", candidates, minimum=2) > _MOST:
        _check.refuse("candidates", f"be at most {_MOST:,}", candidates, "hold a first round on fewer")


def _uniform_below(bound: int, source: RandomSource) -> int:
    """Draw a uniform integer below any bound, by refusing words of as many bits."""
    bits = (bound - 1).bit_length()
    while True:
        drawn, taken = 0, 0
        while taken < bits:
            width = min(62, bits - taken)
            drawn = drawn << width | int(uniform_integers(1 << width, 1, source)[0])
            taken += width
        if drawn < bound:
            return drawn
