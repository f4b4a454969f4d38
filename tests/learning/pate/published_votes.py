"""The published account of PATE, in mpmath, and made-up votes on which it can be run beside ours.

The parameters are those of `generate_table.sh` beside the paper of 2018 (checks, noise, questions, delta);
the numbers of answers and the orders are those of its tables. The votes behind its figures are binary files
of its authors, so here are votes of our own, with as many answers as it had.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from sfumato.learning.pate.confident import ConfidentGNMax

__all__ = ["CONFIDENT", "ConfidentRun", "expected_divergence", "theorem_6"]

_QUESTIONS: Final = 128
_CLASSES: Final = 10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidentRun:
    """One line of the paper's table."""

    data: str
    teachers: int
    threshold: int
    check_stddev: int
    stddev: int
    questions: int
    answers: int
    delta: float
    order: float
    published: float

    @property
    def aggregator(self) -> ConfidentGNMax:
        return ConfidentGNMax(threshold=self.threshold, check_stddev=self.check_stddev, stddev=self.stddev)

    @property
    def by_moments(self) -> float:
        """The data-independent epsilon, by Rényi divergences and the conversion of the paper."""
        rho = self.questions / (2 * self.check_stddev**2) + self.answers / self.stddev**2
        return min(rho * order + math.log(1 / self.delta) / (order - 1) for order in np.arange(1.5, 200, 0.5))

    def votes(self) -> tuple[NDArray[np.int64], float]:
        """Return votes, and how many questions each of them stands for: as many are answered as were.

        The shares that agree are quantiles of a beta distribution, its mean found by bisection; of the other
        votes half are for the second class.
        """
        low, high = 0.02, 0.999
        for _ in range(40):
            mean = (low + high) / 2
            quantiles = (np.arange(_QUESTIONS) + 0.5) / _QUESTIONS
            share = betaincinv(4 * mean, 4 * (1 - mean), quantiles)
            votes = self._of_shares(share)
            passed = ndtr((votes.max(1) - self.threshold) / self.check_stddev).mean()
            low, high = (mean, high) if passed < self.answers / self.questions else (low, mean)
        return votes, self.questions / _QUESTIONS

    def _of_shares(self, share: NDArray[np.float64]) -> NDArray[np.int64]:
        votes = np.zeros((_QUESTIONS, _CLASSES), np.int64)
        votes[:, 0] = np.rint(self.teachers * share)
        votes[:, 1] = (self.teachers - votes[:, 0]) // 4
        votes[:, 2:] = ((self.teachers - votes[:, 0] - votes[:, 1]) // (_CLASSES - 2))[:, None]
        votes[:, 2] += self.teachers - votes.sum(1)
        return votes


CONFIDENT: Final = (
    ConfidentRun(
        data="MNIST",
        teachers=250,
        threshold=200,
        check_stddev=150,
        stddev=40,
        questions=640,
        answers=286,
        delta=1e-5,
        order=14.0,
        published=1.97,
    ),
    ConfidentRun(
        data="SVHN",
        teachers=250,
        threshold=300,
        check_stddev=200,
        stddev=40,
        questions=8500,
        answers=3098,
        delta=1e-6,
        order=7.5,
        published=4.96,
    ),
    ConfidentRun(
        data="Glyph",
        teachers=5000,
        threshold=1000,
        check_stddev=500,
        stddev=100,
        questions=12000,
        answers=10762,
        delta=1e-8,
        order=20.5,
        published=2.03,
    ),
)


def theorem_6(q: mpmath.mpf, variance: float, order: float) -> mpmath.mpf:
    """Return Theorem 6 with Proposition 10's orders; the worst votes' divergence where it does not apply.

    Parameters
    ----------
    q : mpf
        The chance that the likeliest outcome is missed.
    variance : float
        The divergence of order ``order`` is ``order / variance`` whatever the votes.
    order : float
    """
    worst = mpmath.mpf(order) / variance
    second = mpmath.sqrt(-variance * mpmath.log(q))
    first = second + 1
    if not (first > order and second > 1):
        return worst
    at_first, at_second = first / variance, second / variance
    turning = mpmath.exp((second - 1) * at_second) / (first / (first - 1) * second / (second - 1)) ** second
    if q > turning or -mpmath.log(q) <= at_second:
        return worst
    a = (1 - q) / (1 - (q * mpmath.exp(at_second)) ** ((second - 1) / second))
    b = mpmath.exp(at_first) / q ** (1 / (first - 1))
    moment = (1 - q) * a ** (order - 1) + q * b ** (order - 1)
    return min(worst, mpmath.log(moment) / (order - 1))


def expected_divergence(run: ConfidentRun, votes: NDArray[np.int64]) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return what the paper's scripts add up for one question, and the chance of an answer.

    It is the check's divergence plus an answer's times the chance of one: a mean over the check's noise.
    """
    ordered = sorted(votes.tolist(), reverse=True)
    passes = _above(run.threshold - ordered[0], run.check_stddev)
    check = theorem_6(min(passes, 1 - passes), 2 * run.check_stddev**2, run.order)
    missed = sum(_above(ordered[0] - other, run.stddev * mpmath.sqrt(2)) for other in ordered[1:])
    answer = theorem_6(min(missed, mpmath.mpf(1) - mpmath.mpf(1) / len(ordered)), run.stddev**2, run.order)
    return check + passes * answer, passes


def _above(distance: int, stddev: mpmath.mpf | int) -> mpmath.mpf:
    """Return the chance that continuous Gaussian noise is at least ``distance``."""
    return mpmath.erfc(distance / (stddev * mpmath.sqrt(2))) / 2
