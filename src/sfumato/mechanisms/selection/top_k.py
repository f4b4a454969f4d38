"""Top-k selection: by one-shot Gumbel noise, or by noise on all scores where a unit moves few of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal, Self, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound
from sfumato.mechanisms.base.calibration import PrivacyTarget
from sfumato.mechanisms.base.rational import Number, drawn_epsilon, plain
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.selection.gaussian_noisy_max import gaussian_shortfall
from sfumato.mechanisms.selection.key_counts import descending_order
from sfumato.mechanisms.selection.noisy_max import laplace_shortfall
from sfumato.mechanisms.selection.selection import Selection, Steps, steps_of_log_odds
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.choice import choose
from sfumato.numerics.sampling.exponential_race import choose_distinct
from sfumato.privacy.leaves import exponential as leaf
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["TopK"]

_ORDERED: Final = {"gumbel": 4.6, "laplace": 5.2, "gaussian": 3.29}
"""At how many scales two candidates are ordered rightly with probability 0.99."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TopK(Selection):
    r"""So many candidates, the best first: those whose scores are largest after noise.

    Parameters
    ----------
    sensitivity, scale, candidates, monotone, grid, neighboring, integral
        As in `Selection`; ``scale`` is that of the noise, of Gaussian noise its standard deviation.
    count : int
        How many candidates are released.
    l0 : int, optional
        The most scores that one unit moves: 1 for counts where a unit has one key. Needed for Laplace and
        Gaussian noise.
    noise : {"gumbel", "laplace", "gaussian"}
        Gumbel noise pays for ``count`` choices, whatever scores one unit moves; Laplace and Gaussian noise
        pay for the ``l0`` scores that it does move, whatever is released. `calibrated` takes the one that
        orders two candidates rightly at the smaller distance.

    Raises
    ------
    ParameterError
        If there are fewer candidates.

    Notes
    -----
    Guarantee: that of ``count`` exponential mechanisms, each of which chooses from what the others left:
    ``Exponential(2 s / scale) * count``, or half that range if monotone, with the sensitivity s in steps,
    rounding counted, under ``neighboring``. Each choice is of bounded range whatever was chosen before.
    With Laplace or Gaussian noise it is that of `Laplace` or `Gaussian` on ``l0`` scores: the order is
    post-processing of all noisy scores, with ties broken at random.

    *Proof that one round of noise is enough.* Scores with independent Gumbel noise of scale b are the logs of
    the inverse times, times b, of an exponential race with rates :math:`e^{score/b}`. Which of the
    remaining comes next is independent of the past and has the exponential mechanism's distribution among
    them.

    *Utility.* Before the j-th choice one of the j best is left, so that the j-th choice falls short of the
    j-th best score by more than the bound with probability at most ``beta / count`` (see `Exponential`).
    With noise on all scores some candidate that falls short is above one of the j best: a union over pairs.

    References
    ----------
    Durfee, Rogers, "Practical differentially private top-k selection with pay-what-you-get composition"
    (NeurIPS 2019), one-shot Gumbel noise.

    Examples
    --------
    >>> mechanism = TopK.calibrated(sensitivity=1, epsilon=1.0, count=2, candidates=("red", "green", "blue"))
    >>> mechanism.release([40, 90, 10], rng=1).value
    ('green', 'red')

    Where a unit has one key, the noise need not grow with how many are released:

    >>> few = TopK.calibrated(sensitivity=1, epsilon=1.0, count=10, l0=1, monotone=True)
    >>> any_keys = TopK.calibrated(sensitivity=1, epsilon=1.0, count=10, monotone=True)
    >>> few.noise, few.scale, any_keys.noise, round(any_keys.scale)
    ('laplace', 1, 'gumbel', 10)
    """

    count: int
    l0: int | None = None
    noise: Literal["gumbel", "laplace", "gaussian"] = "gumbel"

    @classmethod
    def calibrated(
        cls,
        *,
        sensitivity: Number,
        epsilon: float,
        delta: float = 0.0,
        noise: Literal["gumbel", "laplace", "gaussian"] | None = None,
        **parameters: Any,
    ) -> Self:
        """Return the mechanism with the smallest scale whose loss meets (epsilon, delta).

        Parameters
        ----------
        sensitivity : int, float or Fraction
            The most that one unit moves any score.
        epsilon : float
        delta : float
            Used only where it buys a smaller scale, by a thousandth or more.
        noise : {"gumbel", "laplace", "gaussian"}, optional
            Unless given, the one with which two candidates are ordered rightly with probability 0.99 at the
            smallest distance; Gumbel noise where ``l0`` is not given.
        **parameters
            The others of the class, but for ``scale``.

        Returns
        -------
        Self
        """
        if noise == "gaussian":
            PrivacyTarget.approximate(epsilon, delta, "use Laplace or Gumbel noise without a delta")
        possible: list[Any] = [noise]
        if noise is None:
            possible = ["gumbel"]
            if parameters.get("l0") is not None:
                possible += ["laplace", *(["gaussian"] if delta else [])]
        asked = {"sensitivity": sensitivity, "epsilon": epsilon, "delta": delta} | parameters
        # Slots make a new class, which a bare super() does not know.
        smallest = super(TopK, cls).calibrated
        found = [
            cls._gaussian(**asked) if each == "gaussian" else smallest(**asked, noise=each)
            for each in possible
        ]
        return min(found, key=lambda one: float(one.scale) * _ORDERED[one.noise])

    @classmethod
    def _gaussian(cls, *, sensitivity: Number, epsilon: float, delta: float, **parameters: Any) -> Self:
        start = Fraction(as_bound("sensitivity", sensitivity)) / drawn_epsilon(epsilon)
        template = cls(sensitivity=sensitivity, scale=plain(start), noise="gaussian", **parameters)
        moved: dict[str, Any] = {"l0": template.l0, "neighboring": template.neighboring}
        least = Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=template.shift, **moved)
        return replace(template, scale=plain(Fraction(least.stddev) * template.grid.step))

    def _check_own(self) -> None:
        _check.integer("count", self.count, minimum=1)
        if self.noise not in _ORDERED:
            _check.refuse("noise", "be 'gumbel', 'laplace' or 'gaussian'", self.noise, "leave it out")
        if self.l0 is not None:
            _check.integer("l0", self.l0, minimum=1)
        elif self.noise != "gumbel":
            remedy = "pass the most scores that one unit moves, or use Gumbel noise"
            _check.refuse_state("l0", f"be given for {self.noise} noise", "it is None", remedy)

    def _check_number(self, candidates: int) -> None:
        if candidates < _check.integer("count", self.count, minimum=1):
            rule = f"be at most {candidates}, the number of candidates"
            _check.refuse("count", rule, self.count, "ask for fewer, or name more candidates")

    def _total(self) -> int:
        return self.range * self.count if self.noise == "gumbel" else self.shift * (self.l0 or 1)

    def as_additive(self, scale: Fraction) -> Laplace | Gaussian:
        """Return the mechanism that adds noise to all scores in steps, Laplace or Gaussian.

        Parameters
        ----------
        scale : Fraction
            In steps.

        Returns
        -------
        Laplace or Gaussian
        """
        moved: dict[str, Any] = {"sensitivity": self.shift, "l0": self.l0, "neighboring": self.neighboring}
        return Laplace(scale=scale, **moved) if self.noise == "laplace" else Gaussian(stddev=scale, **moved)

    def _price(self, scale: Fraction) -> PrivacyLoss:
        if self.noise != "gumbel":
            return self.as_additive(scale).privacy_loss
        one = leaf.Exponential(self.range / scale, neighboring=self.neighboring)  # type: ignore[arg-type]
        return one * self.count

    def _draw(self, steps: Steps, size: int, source: RandomSource) -> Steps:
        released = np.zeros((size, self.count), np.int64)
        if self.noise != "gumbel":
            distribution = self.as_additive(1 / self._rate).distribution
            for row in released:
                noisy = steps + np.asarray(distribution.sample(steps.size, source))
                row[:] = descending_order(noisy, source.words(steps.size))[: self.count]
            return released
        # Runs that began alike, what is left for them, and how many they have released.
        alike = [(np.arange(size), np.arange(steps.size), 0)]
        while alike:
            runs, left, rank = alike.pop()
            if len(runs) == 1:
                rest = choose_distinct(-steps[left], self._rate, self.count - rank, rng=source)
                released[runs[0], rank:] = left[rest]
                continue
            chosen = choose(-steps[left], self._rate, size=len(runs), rng=source)
            released[runs, rank] = left[chosen]
            if rank + 1 < self.count:
                alike.extend(
                    (runs[chosen == index], np.delete(left, index), rank + 1)
                    for index in np.unique(chosen).tolist()
                )
        return released

    def _shortfall(self, beta: float, candidates: int, scale: Fraction) -> int:
        share = beta / self.count
        if self.noise == "laplace":
            return laplace_shortfall((candidates - 1) / share, scale)
        if self.noise == "gaussian":
            return gaussian_shortfall((candidates - 1) / share, scale)
        return steps_of_log_odds(scale, (candidates - 1) * (1 - share) / share)
