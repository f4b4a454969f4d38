"""The gap mechanism: exactly truthful, nearly optimal for many agents, and private."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.arrays import as_numbers
from sfumato.games.exponential_choice import ExponentialChoice
from sfumato.games.game import Game
from sfumato.games.social_choice import Commitment, SocialChoice
from sfumato.games.truthful.gap_parameters import (
    SCALE,
    best_lottery,
    least_probability,
    lie_losses,
    require_separation,
    separating_lottery,
    sufficient_probability,
    up_to_scale,
)
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.base.release import read_only
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.numerics.rounding import up
from sfumato.numerics.sampling.choice import choose
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["GapMechanism", "LotteryProbabilities"]

_EPSILONS: Final = tuple(2.0 ** (power / 4) for power in range(-100, 17))


class LotteryProbabilities(NamedTuple):
    """How likely the lottery must be for the truth to be a dominant strategy.

    Attributes
    ----------
    least : float or None
        The smallest on this instance, by enumeration; None if there are too many reports.
    sufficient : float
        By the loss's theorem: gains are at most the total variation. Sufficient, not necessary.
    paper : float
        By the paper's condition, ``2 epsilon / (gap * smallest probability)``, for its even lottery over
        alternatives that separate types; 1 where the condition cannot be met. Sufficient, not necessary.
    """

    least: float | None
    sufficient: float
    paper: float


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GapMechanism(SocialChoice):
    r"""A private choice, or with some probability a lottery in which actions are imposed by reports.

    Parameters
    ----------
    game : Game
        What is played; types must be separated by the actions that are best for them.
    epsilon : int, float or Fraction
        Of the choice.
    probability : int, float or Fraction
        Of the lottery; rounded up to a multiple of 2^-40.
    scores : array, optional
        What a reported type adds to the score of an alternative; its utility unless given. See
        `ExponentialChoice`.
    distribution : array of shape (alternatives,), optional
        The lottery's; the one under which lies lose most unless given. Rounded to multiples of 2^-40.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or some lie loses nothing at any alternative.

    Notes
    -----
    Guarantee: epsilon-DP of bounded range under replacing one report, for what is public: the alternative,
    and whether the lottery was played. The lottery and its coin do not read reports, so given the coin the
    losses of outputs are those of `ExponentialChoice` or 0, and 0 is between them. What is imposed on an
    agent follows from the public alternative and its own report.

    *Truthfulness* is a fact about an instance, which ``regret(mechanism, game).dominant`` checks: for every
    type t, report b and reports of the others, :math:`(1-q)` times the gain of b under the choice is at most
    q times :math:`\sum_s P(s)(u(t, s, a_t(s)) - u(t, s, a_b(s)))`, where :math:`a_b(s)` is what b's best
    action is. `calibrated` takes q so that it holds by the loss's theorem or by enumeration. It must be
    possible to impose actions; under the choice agents take their best action by themselves.

    *Utility.* With :math:`c = \epsilon/R` the choice falls short of the best score by at most :math:`\ln
    |S|/c` in expectation: :math:`E_P q \ge \ln(\frac{1}{|S|}\sum_s e^{c q(s)})/c` as relative entropy to the
    even distribution is not negative. The lottery costs at most its probability times the scores' range.

    References
    ----------
    Nissim, Smorodinsky, Tennenholtz (2012), "Approximately optimal mechanism design via differential
    privacy".

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.games import facility_location, regret
    >>> points = np.array([0.0, 1.0, 2.0, 3.0])
    >>> game = facility_location(points, np.abs(points[:, None] - points), agents=6)
    >>> mechanism = GapMechanism.calibrated(game, epsilon=0.5)
    >>> regret(mechanism, game).dominant
    True
    """

    epsilon: Number
    probability: Number
    scores: Any = None
    distribution: Any = None
    choice: ExponentialChoice = field(init=False, repr=False)
    _weights: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        choice = ExponentialChoice(game=self.game, epsilon=self.epsilon, scores=self.scores)
        object.__setattr__(self, "choice", choice)
        object.__setattr__(self, "epsilon", choice.epsilon)
        object.__setattr__(self, "scores", choice.scores)
        share = _check.share("probability", self.probability, "call calibrated to have it chosen")
        object.__setattr__(self, "probability", up_to_scale(share))
        weights = best_lottery(self.game) if self.distribution is None else self._given()
        object.__setattr__(self, "_weights", read_only(weights))
        object.__setattr__(self, "distribution", read_only(weights / weights.sum()))

    @classmethod
    def calibrated(
        cls,
        game: Game,
        *,
        epsilon: Number | None = None,
        scores: Any = None,
        distribution: Any = None,
        least: bool = False,
    ) -> Self:
        """Return the mechanism with the smallest probability of the lottery that is proved to suffice.

        Parameters
        ----------
        game : Game
        epsilon : int, float or Fraction, optional
            Of the choice; chosen so that `shortfall_bound` is smallest unless given.
        scores, distribution
            As in the class.
        least : bool
            Take the least probability for this instance, by enumeration, in place of the theorem's.

        Returns
        -------
        Self

        Raises
        ------
        ParameterError
            As the class; and if ``least`` is asked for and there are too many reports to enumerate.
        """
        start = 1.0 if epsilon is None else epsilon
        first = cls(game=game, epsilon=start, probability=0.0, scores=scores, distribution=distribution)
        losses = first._losses

        def made(value: Number, find: Any = sufficient_probability) -> Self:
            choice = ExponentialChoice(game=game, epsilon=value, scores=scores)
            enough = find(game, choice, losses)
            if enough is None:
                remedy = "leave least out: the theorem's probability is for any number of agents"
                _check.refuse_state("game", "be small enough to enumerate", "it is too large", remedy)
            weights = first.distribution
            return cls(game=game, epsilon=value, probability=enough, scores=scores, distribution=weights)

        options = [made(value) for value in (_EPSILONS if epsilon is None else (epsilon,))]
        best = min(options, key=lambda option: option.shortfall_bound)
        return made(best.epsilon, least_probability) if least else best

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of the alternative and the coin."""
        return self.choice.privacy_loss

    @property
    def anonymous(self) -> bool:
        """Whether only the multiset of reports matters."""
        return self.choice.anonymous

    @property
    def log_factors(self) -> NDArray[np.float64] | None:
        """Those of the choice."""
        return self.choice.log_factors

    @property
    def commitment(self) -> Commitment:
        """The lottery."""
        return Commitment(float(self.probability), self.distribution)

    @property
    def lie_losses(self) -> NDArray[np.float64]:
        """What each lie loses under the lottery, by type and report; of the agents, who loses least."""
        return np.asarray(self._losses.min(axis=0))

    @property
    def _losses(self) -> NDArray[np.float64]:
        return lie_losses(self.game, self.distribution)

    @property
    def shortfall_bound(self) -> float:
        """By how much the score for each agent falls short of the best at most, in expectation; see Notes."""
        worst, choice = self._worst(), self.choice
        # Rounded scores are off by at most half a step each, for the best alternative and the chosen one.
        steps = float(1 / choice.rate) * math.log(len(self.game.alternatives)) / self.game.agents + 1
        lottery = float(self.probability)
        return min(worst, ((1 - lottery) * steps * choice.step + lottery * worst) * (1 + 2.0**-40))

    def probabilities_of_truth(self) -> LotteryProbabilities:
        """Return how likely the lottery must be: on this instance, by theorem, and by the paper's.

        Returns
        -------
        LotteryProbabilities
        """
        choice, losses = self.choice, self._losses
        lottery = separating_lottery(self.game)
        even = float(lottery.gap) / int(lottery.weights.sum()) / self.game.range_length
        return LotteryProbabilities(
            least_probability(self.game, choice, losses),
            sufficient_probability(self.game, choice, losses),
            min(1.0, 2 * float(self.epsilon) / even) if even and float(self.epsilon) <= 1 else 1.0,
        )

    def expected_shortfall(self, reports: Any) -> float:
        """Return by how much the score for each agent falls short of the best, in expectation: private.

        Parameters
        ----------
        reports : sequence of shape (agents,)

        Returns
        -------
        float
            Where actions are imposed, truthful agents do what is best for them, so scores are the same.
        """
        profile = self.game.positions(reports)[None]
        totals = self.choice.totals(profile)[0]
        gaps = (totals.max() - totals) * self.choice.step
        return float(self.probabilities(reports) @ gaps) / self.game.agents

    def distributions(self, profiles: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the distribution of the choice for each row; see `SocialChoice.distributions`.

        Parameters
        ----------
        profiles : int64 array of shape (m, agents)
            Positions of reported types.

        Returns
        -------
        float64 array of shape (m, alternatives)
        """
        return self.choice.distributions(profiles)

    def draw(self, profile: NDArray[np.int64], source: RandomSource) -> tuple[int, bool]:
        """Draw an alternative and whether actions are imposed; see `SocialChoice.draw`.

        Parameters
        ----------
        profile : int64 array of shape (agents,)
            Positions of reported types.
        source : RandomSource

        Returns
        -------
        (int, bool)
        """
        coin = int(uniform_integers(SCALE, 1, source)[0])
        if coin >= Fraction(self.probability) * SCALE:
            return self.choice.draw(profile, source)
        return choose(np.zeros_like(self._weights), 1, multiplicity=self._weights, rng=source), True

    def _given(self) -> NDArray[np.int64]:
        require_separation(self.game)
        remedy = "pass a weight of at least 0 for each alternative"
        given = as_numbers("distribution", self.distribution, remedy)
        if given.shape != (len(self.game.alternatives),) or not (given >= 0).all() or not given.any():
            _check.refuse_type("distribution", "be weights of alternatives", self.distribution, remedy)
        if not np.isfinite(given).all():
            _check.refuse_state("distribution", "be finite", "some weights are not", "pass probabilities")
        given /= given.max()  # a sum may be no float
        return np.asarray(np.rint(given / given.sum() * SCALE), np.int64)

    def _worst(self) -> float:
        """Return by how much scores of alternatives differ at most, for one report; rounded up."""
        scores = self.scores
        return up(float((scores.max(axis=-1) - scores.min(axis=-1)).max()))
