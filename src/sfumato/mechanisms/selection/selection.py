"""The base class of mechanisms that choose among public candidates by private scores."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self, cast, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound, as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, cheapest_noise
from sfumato.mechanisms.base.columns import read_column
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = [
    "Selection",
    "Steps",
    "as_candidates",
    "candidate_count",
    "failure_probability",
    "random_true_index",
    "require_candidates",
    "score_steps",
    "steps_of_log_odds",
]

Steps = NDArray[np.int64]

_CHUNK = 1 << 15
_LIMIT = 1 << 61  # differences of scores then fit into int64, with noise on top


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Mechanism):
    """A choice among candidates that are fixed before the data is seen, by one private score for each.

    Parameters
    ----------
    sensitivity : int, float or Fraction
        The most that one unit moves any score.
    scale : int, float or Fraction
        Of the randomness, in the unit of the scores.
    candidates : sequence, optional
        What is chosen from; public. Unless given, the release is the chosen index.
    monotone : bool
        Whether between any two neighbors all scores move in the same direction, as counts do under add/remove
        and zero-out. The choice costs half then.
    grid : Grid, optional
        What scores are rounded to; chosen from ``sensitivity`` and ``scale`` unless given.
    neighboring : Neighboring
        The relation under which the sensitivity is stated.
    integral : bool, optional
        Whether scores are whole numbers. Unless given: whether the sensitivity is an int and no grid is
        given.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule; in particular if there is no candidate, or ``monotone`` is claimed
        under replace-one, where some counts fall while others rise.
    UnboundedSensitivity
        If the sensitivity is infinite.

    Notes
    -----
    One fixed rule covers odd scores: NaN is the worst score of all, infinities and what lies beyond 2^61
    steps count as 2^61 steps. The stated sensitivity must hold for scores after that rule. Rounding to the
    grid is monotone, so what moves in one direction still does, by at most ``Grid.shift``.

    Examples
    --------
    >>> from sfumato.mechanisms import Exponential
    >>> choice = Exponential.calibrated(sensitivity=1, epsilon=1.0, candidates=("red", "green"))
    >>> isinstance(choice, Selection), choice.release([5, 900], rng=1).value
    (True, 'green')
    """

    sensitivity: Number
    scale: Number
    candidates: Sequence[Any] | None = None
    monotone: bool = False
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    integral: bool = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", as_bound("sensitivity", self.sensitivity))
        remedy = f"pass epsilon= to {type(self).__name__}.calibrated to have it chosen"
        object.__setattr__(self, "scale", as_number("scale", self.scale, remedy))
        Lattice.settle_in(self, Fraction(self.scale)).check_noise("scale", Fraction(self.scale))
        _check.instance(
            "neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another"
        )
        if not isinstance(self.monotone, bool):
            _check.refuse(
                "monotone", "be True or False", self.monotone, "pass True if all scores move one way"
            )
        if self.monotone and self.neighboring is Neighboring.REPLACE_ONE:
            remedy = "a replaced unit may raise one score and lower another"
            remedy = "leave it out: a replaced unit may raise one score and lower another"
            _check.refuse("monotone", "be False under replace-one", self.monotone, remedy)
        if self.candidates is not None:
            object.__setattr__(self, "candidates", as_candidates(self.candidates))
            self._check_number(len(self.candidates))
        self._check_own()

    @classmethod
    def calibrated(
        cls, *, sensitivity: Number, epsilon: float, delta: float = 0.0, **parameters: Any
    ) -> Self:
        """Return the mechanism with the smallest scale whose loss meets (epsilon, delta).

        Parameters
        ----------
        sensitivity : int, float or Fraction
            The most that one unit moves any score.
        epsilon : float
        delta : float
            Used only where it buys a smaller scale, by a thousandth or more.
        **parameters
            The others of the class, but for ``scale``.

        Returns
        -------
        Self
        """
        request = PrivacyTarget(epsilon=epsilon, delta=delta)
        start = Fraction(as_bound("sensitivity", sensitivity)) / request.exact_epsilon
        probe = cls(sensitivity=sensitivity, scale=start, **parameters)
        start = probe._total() * probe.grid.step / request.exact_epsilon
        template = cls(sensitivity=sensitivity, scale=start, **parameters)
        steps = cheapest_noise(template._price, request, template._total() / request.exact_epsilon)
        return replace(template, scale=plain(steps * template.grid.step))

    @property
    def range(self) -> int:
        """Epsilon of one choice times the scale in steps: twice the sensitivity, or once if monotone."""
        return self.shift * (1 if self.monotone else 2)

    @property
    def shift(self) -> int:
        """The most steps that one unit moves a score."""
        return self._lattice.shift(self.sensitivity)

    @property
    @final
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return self._price(Fraction(self.scale) / self.grid.step)

    @final
    def release(self, value: Any, rng: Rng = None) -> Release:
        """Choose.

        Parameters
        ----------
        value : sequence or array of shape (n,)
            One private score for each candidate, larger is better; ints where the mechanism works on whole
            numbers.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Its value is the chosen candidate, or its index.

        Raises
        ------
        ParameterError
            If types or the number of scores do not fit; never for a score.
        """
        steps, source = self._steps(value), random_source(rng)
        return self._release_as(Release, self._released(self._draw(steps, 1, source))[0], source)

    @final
    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw many choices at once; see `Mechanism.outputs`.

        Parameters
        ----------
        value
            As in `release`; private.
        size : int
            How many independent releases are drawn.
        rng : int, numpy Generator or None
            None for the operating system's randomness; a seed is for simulation only.

        Returns
        -------
        array or list of length size
            Candidates, or their indices.
        """
        return self._released(
            self._draw(self._steps(value), _check.integer("size", size, minimum=1), random_source(rng))
        )

    @final
    def utility_bound(self, beta: float, *, candidates: int | None = None) -> float:
        """Return how far the chosen score may fall short of the best one.

        Parameters
        ----------
        beta : float
            From 1e-200 to below 1.
        candidates : int, optional
            How many there are, where the mechanism was not given them.

        Returns
        -------
        float
            With probability at least ``1 - beta`` the chosen score is within it of the best, whatever the
            scores (as long as they are in range); rounding counted.
        """
        beta = failure_probability(beta)
        number = candidate_count(self.candidates, candidates)
        self._check_number(number)
        steps = self._shortfall(beta, number, Fraction(self.scale) / self.grid.step)
        # Two rounded scores are together off by at most one step.
        return fraction_up((steps + (0 if self.integral else 1)) * self.grid.step)

    def _total(self) -> int:
        """Return epsilon of a release times the scale in steps."""
        return self.range

    @abstractmethod
    def _price(self, scale: Fraction) -> PrivacyLoss:
        """Return the loss of a scale in steps."""

    @abstractmethod
    def _draw(self, steps: Steps, size: int, source: RandomSource) -> Steps:
        """Return that many independent choices for scores in steps: an index each, or a row of them."""

    @abstractmethod
    def _shortfall(self, beta: float, candidates: int, scale: Fraction) -> int:
        """Return by how many steps the choice falls short at most, but with probability ``beta``."""

    def _check_own(self) -> None:
        """Check a subclass's own parameters."""

    def _check_number(self, candidates: int) -> None:
        """Refuse a number of candidates that nothing can be chosen from."""
        require_candidates(candidates)

    @property
    def _lattice(self) -> Lattice:
        return Lattice(self.grid, self.integral)

    @property
    def _rate(self) -> Fraction:
        """The inverse scale, in steps."""
        return self.grid.step / Fraction(self.scale)

    def _released(self, chosen: Steps) -> list[Any]:
        """Return what is released for each choice."""
        listed = chosen.tolist()
        if chosen.ndim > 1:
            return [tuple(self._name(index) for index in row) for row in listed]
        return listed if self.candidates is None else [self._name(index) for index in listed]

    def _name(self, index: int) -> Any:
        return index if self.candidates is None else self.candidates[index]

    def _steps(self, scores: Any) -> Steps:
        """Return scores in steps, by the rule in the class's notes."""
        steps = score_steps(self._lattice, scores, self.candidates)
        self._check_number(len(steps))
        return steps


def score_steps(lattice: Lattice, scores: Any, candidates: Sequence[Any] | None) -> Steps:
    """Return one score for each candidate in steps; NaN is the worst, what is out of range is clamped."""
    if isinstance(scores, list | tuple):
        steps = np.array([lattice.steps(_worst(score), name="scores") for score in scores], np.int64)
    else:
        array, nulls = read_column(scores) or (np.asarray(scores), None)
        if array.ndim != 1:
            _check.refuse_state(
                "scores", "have one axis", f"they have {array.ndim}", "pass one score for each candidate"
            )
        steps = np.empty(array.size, np.int64)
        for start in range(0, max(1, array.size), _CHUNK):  # the temporaries stay in the cache
            part = slice(start, start + _CHUNK)
            steps[part] = lattice.steps(_worst(array[part]), name="scores")
        if nulls is not None:
            steps[nulls] = -_LIMIT
    if candidates is not None and len(candidates) != steps.size:
        rule = f"be {len(candidates)}, one for each candidate"
        remedy = "pass the scores in the order of the candidates"
        _check.refuse_state("scores", rule, f"there are {steps.size}", remedy)
    return np.clip(steps, -_LIMIT, _LIMIT, out=steps)


def as_candidates(given: Sequence[Any]) -> Sequence[Any]:
    """Return candidates that nobody can change, or refuse what is no sequence."""
    if isinstance(given, str | bytes | Mapping | Set) or not hasattr(given, "__iter__"):
        _check.refuse_type("candidates", "be a sequence", given, "pass a list")  # in a known order
    return given if isinstance(given, range) else tuple(given)


def random_true_index(mask: NDArray[np.bool_], source: RandomSource) -> Steps:
    """Return of each row of a mask a uniform one of those that are true."""
    counts = mask.sum(axis=1)
    order = np.empty(len(mask), np.int64)
    for count in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == count)
        order[rows] = uniform_integers(count, rows.size, source)
    return np.asarray(np.nonzero(mask)[1][counts.cumsum() - counts + order], np.int64)


def candidate_count(given: Sequence[Any] | None, stated: int | None) -> int:
    """Return the number of candidates, or refuse where it is nowhere stated."""
    if given is not None:
        return len(given)
    return _check.integer("candidates", stated, minimum=1, remedy="say how many there are")


def failure_probability(beta: float) -> float:
    """Return a chance that floats can distinguish from zero, also after a product."""
    beta = _check.unit_interval("beta", beta)
    return (
        beta
        if beta >= 1e-200
        else _check.refuse("beta", "be at least 1e-200", beta, "pass a chance such as 0.05")
    )


def require_candidates(candidates: int) -> None:
    """Refuse an empty list of candidates."""
    if not candidates:
        _check.refuse_state("candidates", "hold at least one", "there is none", "pass what may be chosen")


def steps_of_log_odds(scale: Fraction, odds: float) -> int:
    """Return the smallest whole g of at least 0 with ``exp(-(g + 1) / scale) <= 1 / odds``, or one more."""
    if odds <= 1:
        return 0
    # The odds are right to a few units of 2^-53, and so is the log of what they are.
    exponent = math.log(odds) * (1 + 2.0**-50) + 2.0**-50
    return max(0, math.ceil(scale * Fraction(exponent)) - 1)


def _worst(score: Any) -> Any:
    """Return a score, or an array of them, with minus infinity for NaN."""
    if isinstance(score, np.ndarray) and score.dtype.kind == "f":
        return np.where(np.isnan(score), -np.inf, score)
    real = isinstance(score, float | np.floating)
    return -math.inf if real and math.isnan(score) else cast("Any", score)
