"""Tests of chance: what is drawn follows the right law, and does not follow a wrong one that the test names.

A test that draws can pass because it is right, or because it draws too little to see anything.
``accepts_only`` makes both runs on the same draws: its check must hold for the right law and fail for each
wrong one.

>>> counts = {"heads": 5_040, "tails": 4_960}
>>> accepts_only(frequencies(counts), {"heads": 0.5, "tails": 0.5}, biased={"heads": 0.55, "tails": 0.45})

Name the wrong law that a fault would make: a scale off by a factor, a neighbor's law, a dropped term. Draws
have a fixed seed. Each check rejects a right law with a chance of at most `FALSE_ALARM` over all seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, gammaincc

__all__ = [
    "FALSE_ALARM",
    "accepts_only",
    "at_least",
    "at_most",
    "frequencies",
    "mean_at_most",
    "moments",
    "pearson",
    "rate",
    "unrefuted",
]

FALSE_ALARM = 1e-9
"""The chance that a check rejects a right law."""

_ERRORS = 7.0
"""So many standard errors a mean of draws is off with a chance of 2.6e-12, by the normal law."""


def accepts_only(check: Callable[[Any], object], right: Any, /, **wrong: Any) -> None:
    """Assert that a check holds for the right law, and for none of the wrong ones.

    Parameters
    ----------
    check
        What compares draws with a law, by assertions: one of the functions below, or a test's own.
    right
        The law that the draws have.
    **wrong
        The laws that a fault would make, by what is wrong with them; one at least.

    Raises
    ------
    AssertionError
        If the check fails for the right law, or holds for a wrong one.
    """
    assert wrong, "a test of chance must name a law that it rejects"
    check(right)
    accepted = [name for name, law in wrong.items() if _holds(check, law)]
    assert not accepted, f"these draws do not tell the right law from: {', '.join(accepted)}"


def frequencies(counts: Mapping[Any, int]) -> Callable[[Any], None]:
    """Return a check of counts of outcomes against a law: a mapping of outcomes to probabilities.

    Each outcome's count is compared with its binomial law, exactly. A law may leave out outcomes that are
    rare: what it lacks of 1 is the probability of all others together, and is compared as one outcome.
    """
    total = sum(counts.values())

    def check(law: Mapping[Any, Any]) -> None:
        chances = {outcome: float(chance) for outcome, chance in law.items()}
        rest = 1.0 - sum(chances.values())
        assert rest > -1e-9, f"a law must sum to at most 1, not {1 - rest}"
        seen: dict[Hashable, int] = {outcome: counts.get(outcome, 0) for outcome in chances}
        others = total - sum(seen.values())
        level = FALSE_ALARM / (len(chances) + 1)
        for outcome, chance in chances.items():
            _near(seen[outcome], total, chance, level, outcome)
        _near(others, total, rest if rest > 1e-13 else 0.0, level, "all others")

    return check


def pearson(counts: Mapping[Any, int]) -> Callable[[Any], None]:
    """Return a check of counts of outcomes against their whole law, by Pearson's test.

    It sees many small differences, where ``frequencies`` sees a large one. Outcomes of less than 8 expected
    counts are taken together, as the chi-square law is off for them; what cannot come may not come.
    """
    total = sum(counts.values())

    def check(law: Mapping[Any, Any]) -> None:
        impossible = set(counts) - {outcome for outcome, chance in law.items() if chance > 0}
        assert not impossible, f"{impossible} came, which cannot come"
        expected = np.array([float(chance) * total for chance in law.values()])
        assert abs(expected.sum() - total) < 1e-9 * total, (
            f"a law must sum to 1, not {expected.sum() / total}"
        )
        seen = np.array([counts.get(outcome, 0) for outcome in law], float)
        rare = expected < 8
        expected, seen = (np.append(x[~rare], x[rare].sum()) for x in (expected, seen))
        possible = expected > 0
        squares = float((np.square(seen - expected)[possible] / expected[possible]).sum())
        chance = float(gammaincc(max(1, possible.sum() - 1) / 2, squares / 2))
        assert chance > FALSE_ALARM, f"chi-square is {squares:.6g} for {possible.sum()} groups of outcomes"

    return check


def rate(hits: int, total: int) -> Callable[[Any], None]:
    """Return a check of how often something happened against its probability, by the exact binomial law."""
    return lambda chance: _near(hits, total, float(chance), FALSE_ALARM, "hits")


def at_least(hits: int, total: int) -> Callable[[Any], None]:
    """Return a check that something happens with at least a probability, such as that an interval covers."""

    def check(chance: Any) -> None:
        assert _at_most(hits, total, chance) > FALSE_ALARM, f"{hits} of {total} are too few for {chance}"

    return check


def at_most(hits: int, total: int) -> Callable[[Any], None]:
    """Return a check that something happens with at most a probability, such as that a bound fails."""

    def check(chance: Any) -> None:
        assert _from(hits, total, chance) > FALSE_ALARM, f"{hits} of {total} are too many for {chance}"

    return check


def moments(draws: npt.ArrayLike, *, kurtosis: float = 3.0) -> Callable[[Any], None]:
    """Return a check of draws against a pair: their mean and their variance.

    Parameters
    ----------
    draws
        Independent draws, of shape (n,) or (n, ...); each column is compared.
    kurtosis
        The law's fourth central moment over its squared variance, at most: 3 for normal draws and their
        limits, 6 for Laplace's law. It sets how far the variance of the draws may be off.
    """
    drawn = np.asarray(draws, float)

    def check(law: tuple[Any, Any]) -> None:
        mean, variance = (np.asarray(value, float) for value in law)
        count = len(drawn)
        off = np.abs(drawn.mean(axis=0) - mean)
        assert (off <= _ERRORS * np.sqrt(variance / count)).all(), f"the mean is off by {off.max()}"
        spread = np.abs(drawn.var(axis=0) - variance)
        slack = _ERRORS * np.sqrt((kurtosis - 1) / count) + 1 / count
        assert (spread <= slack * variance).all(), f"the variance is off by {spread.max()} from {variance}"

    return check


def mean_at_most(draws: npt.ArrayLike) -> Callable[[Any], None]:
    """Return a check that independent draws, in one dimension, have a mean of at most some number.

    It may be 6 of their standard errors below what they show: more has a chance of 1e-9, by the normal law.
    """
    drawn = np.asarray(draws, float)
    least = drawn.mean() - 6 * drawn.std() / np.sqrt(len(drawn))

    def check(mean: Any) -> None:
        assert least <= float(mean), f"the mean of the draws is at least {least:.6g}, not at most {mean}"

    return check


def unrefuted(proved: float) -> Callable[[Any], None]:
    """Return a check of a claim, such as an epsilon, that an audit proved to be at least some number."""

    def check(claim: Any) -> None:
        assert proved <= claim, f"at least {proved:.6g} is proved, but {claim} is claimed"

    return check


def _holds(check: Callable[[Any], object], law: Any) -> bool:
    """Whether a check holds for a law."""
    try:
        check(law)
    except AssertionError:
        return False
    return True


def _near(hits: int, total: int, chance: float, level: float, what: object) -> None:
    """Assert that a count is none that comes with less than a chance, in either direction."""
    tail = min(_at_most(hits, total, chance), _from(hits, total, chance))
    assert 2 * tail > level, f"{what!r} came {hits} times of {total}, expected {chance * total:.6g}"


def _at_most(hits: int, total: int, chance: float) -> float:
    """The probability that a binomial count is at most some number."""
    return 1.0 if hits >= total else float(betainc(total - hits, hits + 1, 1.0 - float(chance)))


def _from(hits: int, total: int, chance: float) -> float:
    """The probability that a binomial count is at least some number."""
    return 1.0 if hits <= 0 else float(betainc(hits, total - hits + 1, float(chance)))
