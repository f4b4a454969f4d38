"""Auditing in one run: canaries are included or left out at random, and the auditor guesses which."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato._display import html_facts
from sfumato.audit.one_run_bounds import one_run_bound
from sfumato.audit.verdict import verdict_facts
from sfumato.privacy._outward import text_below

__all__ = [
    "Guesses",
    "OneRunAudit",
    "audit_one_run",
    "best_guesses",
]

_SHARES = (0.05, 0.2, 1.0)
_TIES = 0x74696573


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """What the guesses of some coins prove.

    Parameters
    ----------
    epsilon_lower : float
        The best bound of all numbers of guesses that were tried.
    guesses, correct : int
        With how many guesses, and how many of them right.

    Examples
    --------
    >>> found = best_guesses([3.0, 2.0, -2.0, -3.0], [True, True, False, False], guesses=4)
    >>> found.guesses, found.correct
    (4, 4)
    """

    epsilon_lower: float
    guesses: int
    correct: int


def best_guesses(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    guesses: int | Sequence[int] | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Guesses:
    """Guess coins by scores, "in" for the highest and "out" for the lowest, and return what that proves.

    Parameters
    ----------
    scores : array of shape (canaries,)
        Higher for what looks included; computed without the coins. Ties are broken by a fixed lot.
    included : bool array of shape (canaries,)
        The coins: fair and independent.
    guesses : int or sequence of int, optional
        How many guesses to make. Several share the risk equally; a twentieth, a fifth and all by default.
    delta, confidence
        As in `one_run_bound`.

    Returns
    -------
    Guesses

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.concatenate([np.ones(100), -np.ones(100)])
    >>> round(best_guesses(scores, scores > 0, guesses=200).epsilon_lower, 2)
    4.19
    """
    values, coins = _scores(scores), np.asarray(included)
    if coins.dtype != np.bool_ or coins.shape != values.shape:
        remedy = "pass a bool array, True for canaries that were put in"
        _check.refuse_type("included", "be one bool for each score", coins, remedy)
    count = len(values)
    tried = _numbers(guesses, count)
    # Ties are broken by lot, not by position: listing the included ones last would make the guesses right.
    mixed = np.random.default_rng(_TIES).permutation(count)
    order = mixed[np.argsort(values[mixed], kind="stable")]
    level = 1 - (1 - _check.unit_interval("confidence", confidence)) / len(tried)
    found = []
    for number in tried:
        lowest, highest = order[: number // 2], order[count - (number - number // 2) :]
        correct = int((~coins[lowest]).sum() + coins[highest].sum())
        bound = one_run_bound(correct, number, canaries=count, delta=delta, confidence=level)
        found.append(Guesses(epsilon_lower=bound, guesses=number, correct=correct))
    return max(found, key=lambda one: one.epsilon_lower)


def _scores(scores: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not len(values) or np.isnan(values).any():
        remedy = "pass them in the order of the canaries"
        _check.refuse_type("scores", "be one number for each canary, none of them NaN", values, remedy)
    return values


def _numbers(guesses: int | Sequence[int] | None, canaries: int) -> list[int]:
    if guesses is None:
        return sorted({max(1, math.ceil(share * canaries)) for share in _SHARES})
    several = list(guesses) if isinstance(guesses, Sequence) else [guesses]
    if not several:
        remedy = "pass numbers of guesses to try, such as [100, 1000]"
        _check.refuse("guesses", "name at least one number", guesses, remedy)
    for number in several:
        if _check.integer("guesses", number, minimum=1) > canaries:
            _check.refuse(
                "guesses", f"be at most the {canaries} canaries", number, "guess each canary once at most"
            )
    return sorted(set(several))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneRunAudit:
    """What one run proved against a claim.

    Parameters
    ----------
    epsilon_lower : float
        With probability ``confidence``, the training is not (epsilon, delta)-DP for any smaller epsilon.
    epsilon, delta : float
        The claim.
    violated : bool
        Whether ``epsilon_lower`` exceeds the claim. Otherwise nothing is proved.
    canaries, guesses, correct : int
        The coins, how many were guessed, and how many of those rightly.
    confidence : float
        Of the bound.

    Examples
    --------
    >>> found = audit_one_run(lambda included: included * 1.0, canaries=100, epsilon=1.0, rng=1)
    >>> found.violated, found.canaries
    (True, 100)
    """

    epsilon_lower: float
    epsilon: float
    delta: float
    violated: bool
    canaries: int
    guesses: int
    correct: int
    confidence: float

    def _repr_html_(self) -> str:
        coins = f"{self.correct} of {self.guesses} guessed rightly, of {self.canaries}"
        return html_facts("Audit by one run", verdict_facts(self) | {"coins": coins})

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted"
        minimum = text_below(self.epsilon_lower, 4)
        return (
            f"epsilon {self.epsilon:g} at delta {self.delta:g}: {verdict}; at least {minimum} "
            f"with confidence {self.confidence:.12g}, by {self.correct} of {self.guesses} coins guessed "
            f"rightly, of {self.canaries}"
        )


def audit_one_run(
    train: Callable[[NDArray[np.bool_]], Any],
    *,
    canaries: int,
    epsilon: float,
    delta: float = 0.0,
    guesses: int | Sequence[int] | None = None,
    confidence: float = 0.999,
    rng: int | None = None,
) -> OneRunAudit:
    """Audit a training by one run with many canaries.

    Parameters
    ----------
    train : callable
        Takes which canaries to include, a bool array of shape ``(canaries,)``; trains on these (and on any
        other data); returns a score for every canary, higher for what looks included, computed from what the
        training *gives out*: the model (minus its loss, say), or all noisy gradients.
    canaries : int
        How many coins are tossed; some hundreds to say something.
    epsilon, delta : float
        The claim, under adding or removing one canary; epsilon may be infinite, to see what can be proved.
    guesses : int or sequence of int, optional
        As in `best_guesses`.
    confidence : float
        Probability, over coins and training, that the bound holds.
    rng : int, optional
        A seed for the coins, to see the same again; from the operating system unless given.

    Returns
    -------
    OneRunAudit

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or the scores are not one number for each canary.

    Notes
    -----
    Guarantee: if the training is (epsilon, delta)-DP for each canary, ``epsilon_lower`` exceeds epsilon with
    probability at most ``1 - confidence``, whatever the canaries, the other data and the scores are: see
    `one_run_bound`. The canaries are distinct, and a canary is all that one coin decides.

    One run proves less than many would: m coins, all guessed, prove about ``log(m / log(1 / risk))``.

    References
    ----------
    Steinke, Nasr, Jagielski (2023), "Privacy auditing with one (1) training run", Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(1)
    >>> def one_step(included):  # a gradient in 500 dimensions, a canary in each, with too little noise
    ...     return included + noise.normal(0.0, 0.2, 500)
    >>> found = audit_one_run(one_step, canaries=500, epsilon=1.0, delta=1e-5, rng=1)
    >>> found.violated, found.epsilon_lower > 2.5
    (True, True)
    """
    canaries = _check.integer("canaries", canaries, minimum=1)
    if epsilon != math.inf:
        epsilon = _check.non_negative("epsilon", epsilon)
    delta = _check.probability("delta", delta)
    level = _check.unit_interval("confidence", confidence)
    _numbers(guesses, canaries)
    # Not the seed's own stream: the trainer may well use that.
    seed = None if rng is None else [_check.integer("rng", rng), 0x6F6E652D72756E]
    coins = np.random.default_rng(seed).random(canaries) < 0.5
    scores = _scores(train(coins.copy()))
    if len(scores) != canaries:
        rule = f"return {canaries} scores, one for each canary"
        remedy = "return them in the order of the canaries"
        _check.refuse_state("train", rule, f"it returned {len(scores)}", remedy)
    found = best_guesses(scores, coins, guesses=guesses, delta=delta, confidence=level)
    return OneRunAudit(
        epsilon_lower=found.epsilon_lower,
        epsilon=epsilon,
        delta=delta,
        violated=found.epsilon_lower > epsilon,
        canaries=canaries,
        guesses=found.guesses,
        correct=found.correct,
        confidence=level,
    )
