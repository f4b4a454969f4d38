"""Private selection from private candidates: the best of a random number of private runs, for tuning."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.selection.selection import as_candidates, failure_probability, require_candidates
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.numerics.sampling.run_counts import poisson, truncated_negative_binomial
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.random_stopping import PoissonStopping, RandomStopping

__all__ = ["BestRun", "PrivateCandidates"]

Stopping: TypeAlias = RandomStopping | PoissonStopping


class BestRun(NamedTuple):
    """The best of several private runs.

    Attributes
    ----------
    score, output
        What the run returned.
    candidate
        What it was run with, where candidates were given.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> from sfumato.privacy import RandomStopping
    >>> noisy = Laplace(sensitivity=1, scale=10)
    >>> best = PrivateCandidates(
    ...     run=lambda counts, source: (noisy.release(max(counts), rng=source).value, "a model"),
    ...     loss=RandomStopping(noisy.privacy_loss, 1.0, 0.1),
    ... )
    >>> isinstance(best.release([5, 900], rng=1).value, BestRun)
    True
    """

    score: Any
    output: Any
    candidate: Any = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateCandidates(Mechanism):
    r"""The best of a random number of runs of a private mechanism, such as training with random settings.

    Parameters
    ----------
    run : callable
        ``run(value, source)``, or ``run(value, candidate, source)`` where candidates are given, returns
        ``(score, output)``: both private already, at the loss of one run, whichever the candidate. It draws
        all randomness from ``source`` (pass it on as ``rng``).
    loss : RandomStopping or PoissonStopping
        From `sfumato.privacy`: the loss of one run, and the distribution of the number of runs.
    candidates : sequence, optional
        Settings to choose from, public; each run takes a uniform one.

    Notes
    -----
    Guarantee: that of ``loss``, under its neighboring relation. Conditions beyond the loss of one run: the
    number of runs stays secret, and so does the time that they take; ``run`` keeps nothing from one run to
    the next, and does not fail where data decides it.

    Runs with one score are ordered by which came first. That is the order by score and then by an
    independent uniform number of each run, which costs nothing and makes the order total, as the theorem
    asks: given their number, runs are exchangeable. NaN is the worst score.

    *Utility.* A run that is among the best share q of one run's distribution is among k runs but with
    probability :math:`(1-q)^k`, and so among all but with probability f(1 - q), f the generating function of
    the number of runs: :math:`((\gamma + (1-\gamma)q)^{-\eta} - 1)/(\gamma^{-\eta} - 1)`, for :math:`\eta =
    0` the quotient of the logs of :math:`\gamma + (1-\gamma)q` and :math:`\gamma`; for the Poisson
    distribution :math:`e^{-\mu q}`.

    References
    ----------
    Liu, Talwar, "Private selection from private candidates" (STOC 2019); Papernot, Steinke, "Hyperparameter
    tuning with Rényi differential privacy" (ICLR 2022).

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> from sfumato.privacy import RandomStopping
    >>> noisy = Laplace(sensitivity=1, scale=10)
    >>> def run(counts, candidate, source):
    ...     return noisy.release(counts[candidate], rng=source).value, None
    >>> best = PrivateCandidates(
    ...     run=run, loss=RandomStopping(noisy.privacy_loss, 1.0, 0.1), candidates=("red", "green")
    ... )
    >>> best.release({"red": 5, "green": 900}, rng=1).value.candidate, round(best.privacy_loss.epsilon(0), 6)
    ('green', 0.3)
    """

    run: Callable[..., tuple[Any, Any]]
    loss: Stopping
    candidates: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        if not callable(self.run):
            _check.refuse_type("run", "be callable", self.run, "pass a function that returns (score, output)")
        loss: object = self.loss
        if not isinstance(loss, RandomStopping | PoissonStopping):
            remedy = "pass RandomStopping(loss of one run, shape, stopping_probability)"
            _check.refuse_type("loss", "be a RandomStopping or PoissonStopping", loss, remedy)
        self._runs(random_source(0))  # refuses distributions that cannot be drawn
        if self.candidates is not None:
            object.__setattr__(self, "candidates", as_candidates(self.candidates))
            require_candidates(len(self.candidates))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release, all runs together."""
        return self.loss

    @property
    def neighboring(self) -> Neighboring:
        """Who is protected: that of one run."""
        relation = self.loss.neighboring
        return Neighboring.ADD_REMOVE if relation is None else relation

    @property
    def mean_runs(self) -> float:
        """The mean number of runs, rounded up."""
        loss = self.loss
        return loss.mean if isinstance(loss, PoissonStopping) else math.exp(loss.log_mean)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Run, and release the best run.

        Parameters
        ----------
        value
            The private data, handed to ``run`` as it is.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Its value is a `BestRun`, or None where a Poisson number of runs was 0.

        Raises
        ------
        ParameterError
            If a run returns something else than a pair of a real score and an output.
        """
        source = random_source(rng)
        best: BestRun | None = None
        for _ in range(self._runs(source)):
            made = self._once(value, source)
            if best is None or _rank(made) > _rank(best):
                best = made
        return self._release_as(Release, best, source)

    def utility_bound(self, beta: float) -> float:
        """Return the share of one run's distribution that the best run is in.

        Parameters
        ----------
        beta : float
            From 1e-200 to below 1.

        Returns
        -------
        float
            With probability at least ``1 - beta`` the released run is among this share of the best runs: its
            score reaches every score that one run reaches with at least this probability. 1 where nothing
            can be promised.
        """
        beta = failure_probability(beta)
        loss = self.loss
        if isinstance(loss, PoissonStopping):
            share = -math.log(beta) / loss.mean
        else:
            eta, gamma = loss.shape, loss.stopping_probability
            hazard = -math.log(gamma)
            if eta == 0:
                exponent = beta * hazard
            elif eta * hazard < 700:
                exponent = math.log1p(beta * math.expm1(eta * hazard)) / eta
            else:
                exponent = float(np.logaddexp(math.log1p(-beta), math.log(beta) + eta * hazard)) / eta
            share = (math.exp(-exponent) - gamma) / (1 - gamma)
        return min(1.0, share * (1 + 1e-9) + 1e-12)

    def _runs(self, source: RandomSource) -> int:
        loss = self.loss
        if isinstance(loss, PoissonStopping):
            return poisson(loss.mean, source)
        return truncated_negative_binomial(loss.shape, loss.stopping_probability, source)

    def _once(self, value: Any, source: RandomSource) -> BestRun:
        if self.candidates is None:
            candidate = None
            made: object = self.run(value, source)
        else:
            candidate = self.candidates[int(uniform_integers(len(self.candidates), 1, source)[0])]
            made = self.run(value, candidate, source)
        if not isinstance(made, tuple) or len(made) != 2 or not isinstance(made[0], Real):
            # The type is shown, never the value.
            rule = "return a pair of a real score and an output"
            remedy = "return (score, output)"
            _check.refuse_state("run", rule, f"it returned a value of type {type(made).__name__}", remedy)
        return BestRun(made[0], made[1], candidate)


def _rank(made: BestRun) -> Any:
    score = made.score
    return -math.inf if isinstance(score, float | np.floating) and math.isnan(score) else score
