"""Many hypothesis tests on the same rows, each chosen by which of the earlier ones rejected."""

from __future__ import annotations

import math
import threading
from typing import final

from sfumato import _check
from sfumato.errors import RunExhausted
from sfumato.numerics.randomness.one_process import OneProcess

__all__ = ["AdaptiveTests"]


@final
class AdaptiveTests(OneProcess):
    r"""Reject or not, one hypothesis after another, with few false rejections however the next one is chosen.

    The analyst learns whether a hypothesis was rejected, and nothing else: no p-value, no statistic. It is
    not private: it has no ``privacy_loss``.

    Parameters
    ----------
    level : float
        The probability that any true hypothesis is ever rejected, at most.
    rejections : int
        How many rejections the stream may have.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    *Theorem.* Let every p-value be valid for a test that is fixed beforehand: at most t with probability at
    most t under its hypothesis. Then for any strategy that sees only the decisions, and may toss coins of its
    own, all rejected hypotheses are false with probability at least ``1 - level``. *Proof.*
    The i-th test after f rejections is fixed by which ones rejected, :math:`\binom{i-1}{f}` ways; each way
    has the threshold :math:`\text{level} \cdot (f+1) / (B \, i (i+1) \binom{i-1}{f})` for a stream of at most
    B rejections, and these add up to the level over all i > f and all f < B.

    References
    ----------
    Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), Generalization in Adaptive Data Analysis and
    Holdout Reuse: description length.

    Examples
    --------
    >>> tests = AdaptiveTests(level=0.05, rejections=3)
    >>> round(tests.threshold, 6)
    0.008333
    >>> tests.test(1e-4), tests.test(0.5), tests.rejected
    (True, False, 1)
    """

    _name, _remedy = "tests", "test where they were made"

    def __init__(self, *, level: float = 0.05, rejections: int = 5) -> None:
        self.level = _check.unit_interval("level", level)
        self.rejections = _check.integer("rejections", rejections, minimum=1)
        self.tested = self.rejected = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"AdaptiveTests({self.tested} tested, {self.rejected} of {self.rejections} rejections)"

    @property
    def threshold(self) -> float:
        """What the next p-value must be at most to reject; 0 when the rejections are used up."""
        if self.rejected >= self.rejections:
            return 0.0
        number = self.tested + 1
        ways = math.comb(self.tested, self.rejected) * number * (number + 1) * self.rejections
        shared = math.log(self.level * (self.rejected + 1)) - math.log(ways)
        return math.exp(shared) * (1 - 1e-12)

    def test(self, p: float) -> bool:
        """Decide on the next hypothesis.

        Parameters
        ----------
        p : float
            Its p-value on the shared rows, of a test that was chosen by the decisions so far.

        Returns
        -------
        bool
            Whether it is rejected.

        Raises
        ------
        ParameterError
            If the p-value is not in [0, 1].
        RunExhausted
            If all rejections are used up.
        """
        value = _check.share("p", p)
        self._check_process()
        with self._lock:
            return self._decided(value)

    def _decided(self, value: float) -> bool:
        if self.rejected >= self.rejections:
            left = f"rejections must be left for another test, but all {self.rejections} are used up"
            raise RunExhausted(f"{left}; test on fresh rows")
        reject = value <= self.threshold
        self.tested += 1
        self.rejected += reject
        return reject
