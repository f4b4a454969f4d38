"""P-values and lower bounds on epsilon from the number of canaries that were guessed right in one run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, expit, gammaln

from sfumato import _check

__all__ = ["checked_counts", "one_run_bound", "one_run_p_value"]

# The incomplete beta function and the peaks below are good to about 1e-8 of their value.
_ALLOWANCE = 1e-6
_LARGEST = 700.0


def one_run_p_value(
    correct: int, guesses: int, *, canaries: int, epsilon: float, delta: float = 0.0
) -> float:
    """Return the greatest chance that so many coins are guessed if a claim holds.

    Parameters
    ----------
    correct : int
        How many of the guesses were right.
    guesses : int
        For how many canaries a guess was made: a number fixed before the run. The others abstain.
    canaries : int
        How many independent fair coins were tossed.
    epsilon, delta : float
        The claim, for one canary put in or left out.

    Returns
    -------
    float
        An upper bound on the probability of at least ``correct`` right guesses, at most 1.

    Notes
    -----
    Guarantee: let q be ``e^epsilon / (1 + e^epsilon)``, and W(k) binomial of k trials that succeed with
    probability q. The chance of v right guesses of r is at most ``P[W(r) >= v] + delta (1 - q) (m - r + H)``,
    where H is the sum over k < r of the greatest ``P[W(k) = j]`` for j from ``v - r + k`` to ``v - 1``.
    Conditions: (epsilon, delta)-DP when one canary is put in or left out; coins fair, independent of one
    another and of everything else; guesses that follow from what the mechanism gave out.

    *Proof.* Open the coins one by one. Before coin i is opened, let k be the number of guesses after it, and
    a the right ones that are still needed; take the expectation of ``P[W(k or k + 1) >= a]`` as its value,
    k + 1 where i is guessed. It starts at ``P[W(r) >= v]`` and ends at what is asked. Opening coin i changes
    it by the expectation of ``h (c - q)`` where i is guessed, c telling whether rightly, with ``h = P[W(k) =
    a - 1]``, a function of the guesses and the coins before. Given these coins, let P and Q be the
    distributions of the guesses for both sides of coin i, others averaged; they are (epsilon, delta)-close.
    Where the guess is "in" that expectation is half of ``(1 - q) (int h dP - e^epsilon int h dQ)``, at most
    ``(1 - q) delta max h / 2``, and so where it is "out". Of coin i, k is ``r - i`` at least, and the
    greatest h falls with k, as each h is a mean of two of one trial less; so the sum over coins is at most H,
    and 1 for each of m - r.

    For delta 0 this is Theorem 5.1 of Steinke, Nasr and Jagielski, which randomized response attains. For
    delta above 0 it is not their Theorem 5.2, but a bound of our own, which linear programs over all
    mechanisms confirm for few coins.

    References
    ----------
    Steinke, Nasr, Jagielski (2023), "Privacy auditing with one (1) training run".

    Examples
    --------
    >>> round(one_run_p_value(9, 10, canaries=10, epsilon=0.0), 4)  # 11 / 1024
    0.0107
    """
    correct, guesses, canaries = checked_counts(correct, guesses, canaries)
    epsilon = _check.non_negative("epsilon", epsilon)
    delta = _check.probability("delta", delta)
    if correct == 0:
        return 1.0
    tail = float(betaincc(guesses - correct + 1, correct, expit(-epsilon)))
    if delta:
        edges = canaries - guesses + float(_peaks(correct, guesses, epsilon).sum())
        tail += delta * float(expit(-epsilon)) * edges
    return min(1.0, tail * (1 + _ALLOWANCE))


def one_run_bound(
    correct: int, guesses: int, *, canaries: int, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Return the epsilon below which a claim is refuted by so many right guesses.

    Parameters
    ----------
    correct, guesses, canaries, delta
        As in `one_run_p_value`.
    confidence : float
        Probability that the bound holds.

    Returns
    -------
    float
        With probability ``confidence``, the mechanism is not (epsilon, delta)-DP for any smaller epsilon.

    Notes
    -----
    Guarantee: *Proof.* Let the mechanism be (e, delta)-DP; then it is so for every larger epsilon too. Each
    of these is refuted for counts of at least some v with a p-value of at most the risk, by a test whose
    p-value bounds the chance of such counts. The smallest of these v over all epsilon of at least e refutes
    one of them, so its chance is at most the risk; and a bound above e needs a count that reaches it.

    Examples
    --------
    >>> round(one_run_bound(100, 100, canaries=100), 3)
    3.493
    """
    correct, guesses, canaries = checked_counts(correct, guesses, canaries)
    risk = 1 - _check.unit_interval("confidence", confidence)

    def refuted(epsilon: float) -> bool:
        found = one_run_p_value(correct, guesses, canaries=canaries, epsilon=epsilon, delta=delta)
        return found <= risk

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < _LARGEST and refuted(high):
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def checked_counts(correct: int, guesses: int, canaries: int) -> tuple[int, int, int]:
    """Return numbers of right guesses, of guesses and of coins, or refuse them."""
    canaries = _check.integer("canaries", canaries, minimum=1)
    guesses = _check.integer("guesses", guesses, minimum=1)
    correct = _check.integer("correct", correct)
    if guesses > canaries:
        _check.refuse("guesses", f"be at most the {canaries} canaries", guesses, "guess each coin once")
    if correct > guesses:
        remedy = "count the right guesses among those that were made"
        _check.refuse("correct", f"be at most the {guesses} guesses", correct, remedy)
    return correct, guesses, canaries


def _peaks(correct: int, guesses: int, epsilon: float) -> NDArray[np.float64]:
    """Return the greatest P[W(k) = j] for each k below ``guesses``, over the j that v can still turn on."""
    trials = np.arange(float(guesses))
    mode = np.floor((trials + 1) * expit(epsilon))
    # A binomial distribution rises up to its mode, and falls from there.
    right = np.clip(mode, np.maximum(0, correct - guesses + trials), np.minimum(correct - 1, trials))
    ways = gammaln(trials + 1) - gammaln(right + 1) - gammaln(trials - right + 1)
    failing = -np.logaddexp(0.0, epsilon)
    return np.asarray(np.exp(ways + right * epsilon + trials * failing), dtype=np.float64)
