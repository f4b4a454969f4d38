"""The exponential mechanism over the alternatives of a game."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.arrays import as_numbers
from sfumato.games.social_choice import SocialChoice
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import read_only
from sfumato.numerics.certified.exponentials import powers
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.choice import choose
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["ExponentialChoice"]

_BITS: Final = 30
_LIMIT: Final = 1 << 61


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExponentialChoice(SocialChoice):
    r"""An alternative with probability proportional to the exponential of the sum of its agents' scores.

    Parameters
    ----------
    game : Game
        What is played.
    epsilon : int, float or Fraction
        Of one choice.
    scores : array, optional
        What a reported type adds to the score of an alternative: of shape (types, alternatives), or one such
        array for each agent. The agents' utilities unless given: the score is the welfare then.

    Attributes
    ----------
    steps : int64 array
        The scores, in whole steps.
    step : float
        A power of two.
    range : int
        By how many steps one report moves the difference of two alternatives' scores at most.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or no report changes any choice.

    Notes
    -----
    Guarantee: epsilon-DP of bounded range under replacing one report. Let :math:`R` be the largest, over
    agents and pairs of types, of :math:`\max_s \Delta_s - \min_s \Delta_s`, where :math:`\Delta` is how
    their scores differ. Alternatives weigh :math:`\exp(\epsilon \cdot score/R)`, so that the log odds of any
    two move by at most epsilon: the loss is `sfumato.privacy.Exponential`. Scores are rounded to 2^-30 of
    the largest first; R is that of the rounded ones, and the draw is exact.

    References
    ----------
    McSherry, Talwar (2007), "Mechanism design via differential privacy". Durfee, Rogers (2019), for bounded
    range.

    Examples
    --------
    >>> from sfumato.games import Game
    >>> game = Game(types="ab", alternatives=("left", "right"), utilities=[[0, 1], [1, 0]], agents=3)
    >>> choice = ExponentialChoice(game=game, epsilon=1.0)
    >>> choice.privacy_loss
    Exponential(epsilon=1.0, neighboring=<Neighboring.REPLACE_ONE: 'replace-one'>)
    >>> choice.release("aaa", rng=1).value
    'right'
    """

    epsilon: Number
    scores: Any = None
    steps: NDArray[np.int64] = field(init=False, repr=False)
    range: int = field(init=False, repr=False)
    step: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_number("epsilon", self.epsilon))
        game = self.game
        shape = (len(game.types), len(game.alternatives))
        remedy = "axes are agents if they differ, types and alternatives"
        given = game.free_utilities if self.scores is None else self.scores
        scores = as_numbers("scores", given, remedy)
        if scores.shape not in (shape, (game.agents, *shape)):
            _check.refuse_state("scores", f"have the shape {shape}", f"it is {scores.shape}", remedy)
        if not np.isfinite(scores).all():
            _check.refuse_state("scores", "be finite", "some are not", "bound them")
        object.__setattr__(self, "scores", read_only(scores))
        step, steps = _steps(scores, game.agents)
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "steps", read_only(steps))
        object.__setattr__(self, "range", _range(self.steps))
        if not self.range:
            found = "each report adds the same to all alternatives"
            _check.refuse_state("scores", "depend on the report", found, "choose by them without privacy")

    @property
    def rate(self) -> Fraction:
        """By how much one step of the score raises the logarithm of a weight."""
        return drawn_epsilon(self.epsilon) / self.range

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one choice."""
        return Exponential(self.epsilon, neighboring=self.neighboring)  # type: ignore[arg-type]

    @property
    def anonymous(self) -> bool:
        """Whether all agents have the same scores."""
        return self.steps.ndim == 2

    @property
    def log_factors(self) -> NDArray[np.float64] | None:
        """The log of what a report multiplies each weight by; None if agents' scores differ."""
        return np.multiply(self.steps, float(self.rate), dtype=np.float64) if self.anonymous else None

    def totals(self, profiles: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the score of each alternative in steps: (m, alternatives) for (m, agents) reports.

        Parameters
        ----------
        profiles : int64 array of shape (m, agents)
            Positions of reported types.

        Returns
        -------
        int64 array of shape (m, alternatives)
        """
        table = self.steps
        kinds = len(self.game.types)
        if self.anonymous and kinds < profiles.shape[1]:
            counts = [np.count_nonzero(profiles == kind, axis=1) for kind in range(kinds)]
            return np.asarray(np.stack(counts, axis=1) @ table, np.int64)
        found = np.zeros((len(profiles), table.shape[-1]), np.int64)
        for agent, reports in enumerate(profiles.T):
            found += (table if table.ndim == 2 else table[agent])[reports]
        return found

    def distributions(self, profiles: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the distribution for each row of reports; see `SocialChoice.distributions`.

        Parameters
        ----------
        profiles : int64 array of shape (m, agents)
            Positions of reported types.

        Returns
        -------
        float64 array of shape (m, alternatives)
        """
        totals = self.totals(profiles)
        gaps = totals.max(axis=1, keepdims=True) - totals
        weights = powers(self.rate).floats(gaps.ravel()).reshape(gaps.shape)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def draw(self, profile: NDArray[np.int64], source: RandomSource) -> tuple[int, bool]:
        """Draw an alternative exactly; see `SocialChoice.draw`.

        Parameters
        ----------
        profile : int64 array of shape (agents,)
            Positions of reported types.
        source : RandomSource

        Returns
        -------
        (int, bool)
        """
        return choose(-self.totals(profile[None])[0], self.rate, rng=source), False


def _steps(scores: NDArray[np.float64], agents: int) -> tuple[float, NDArray[np.int64]]:
    """Return a power of two and scores in whole steps of it: 2^30 of them or fewer for the largest."""
    largest = float(np.abs(scores).max())
    if not largest:
        return 1.0, np.zeros(scores.shape, np.int64)
    bits = min(_BITS, (_LIMIT // agents).bit_length() - 1)
    exponent = math.frexp(largest)[1] - bits
    return math.ldexp(1.0, exponent), np.rint(np.ldexp(scores, -exponent)).astype(np.int64)


def _range(table: NDArray[np.int64]) -> int:
    """Return by how many steps one report moves the difference of two scores at most."""
    most = 0
    for report in range(table.shape[-2]):
        apart = table - table[..., report : report + 1, :]
        most = max(most, int((apart.max(axis=-1) - apart.min(axis=-1)).max()))
    return most
