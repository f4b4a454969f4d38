"""Private choice of settings, charged before the first run; how many runs there are stays secret."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

from sfumato import _check
from sfumato.ledger.ledger import Ledger
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.selection.private_candidates import PrivateCandidates
from sfumato.mechanisms.selection.selection import as_candidates
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.choice import AdaptiveChoice
from sfumato.privacy.nodes.random_stopping import PoissonStopping, RandomStopping

__all__ = ["Runs", "tune"]


_MAX_MEAN: Final = 1e9


@final
@dataclass(frozen=True, slots=True)
class Runs:
    r"""The distribution of the number of runs; made by one of the constructors.

    Parameters
    ----------
    mean : float
        The mean number of runs, above 1 (for a Poisson distribution above 0).
    shape : float or None
        :math:`\eta` of the truncated negative binomial distribution; None is the Poisson distribution.

    Notes
    -----
    Guarantee: none by itself; `loss` is the loss of the best run (Papernot, Steinke 2022). The smaller the
    shape the cheaper the search and the larger the variance of the number of runs: 1 is geometric, 0 the
    logarithmic one. The Poisson distribution is the most even, and cheap where one run's delta at a small
    epsilon is tiny; it makes no run at all with probability :math:`e^{-\mu}`.

    Examples
    --------
    >>> from sfumato.privacy import PureDP, ZCDP
    >>> round(Runs.geometric(10).loss(PureDP(0.1)).epsilon(0.0), 9)
    0.3
    >>> one, best = ZCDP(0.005), Runs.logarithmic(10).loss(ZCDP(0.005))
    >>> round(one.epsilon(1e-6), 2), round(best.epsilon(1e-6), 2)
    (0.43, 0.74)
    """

    mean: float
    shape: float | None = 1.0

    def __post_init__(self) -> None:
        remedy = "pass the mean number of runs"
        mean = _check.positive("mean", self.mean, remedy)
        if not (0.0 if self.shape is None else 1.0) < mean <= _MAX_MEAN:
            rule = "be above 1, and at most 1e9" if self.shape is not None else "be at most 1e9"
            _check.refuse("mean", rule, self.mean, remedy)
        object.__setattr__(self, "mean", mean)
        if self.shape is not None:
            shape = _check.finite("shape", self.shape)
            if not -1 < shape <= 100:
                remedy = "1 is the geometric distribution"
                _check.refuse("shape", "be above -1, and at most 100", shape, remedy)
            object.__setattr__(self, "shape", shape)

    @classmethod
    def geometric(cls, mean: float) -> Runs:
        """Stop after each run with one probability (Liu, Talwar 2019).

        Parameters
        ----------
        mean : float
            The mean number of runs.

        Returns
        -------
        Runs
        """
        return cls(mean, 1.0)

    @classmethod
    def logarithmic(cls, mean: float) -> Runs:
        """Return the cheaper distribution of the two that are used most.

        Parameters
        ----------
        mean : float
            The mean number of runs.

        Returns
        -------
        Runs
        """
        return cls(mean, 0.0)

    @classmethod
    def negative_binomial(cls, mean: float, shape: float) -> Runs:
        """Return a truncated negative binomial distribution.

        Parameters
        ----------
        mean : float
            The mean number of runs.
        shape : float
            Of the distribution: the smaller, the cheaper the search.

        Returns
        -------
        Runs
        """
        return cls(mean, shape)

    @classmethod
    def poisson(cls, mean: float) -> Runs:
        """Return the Poisson distribution, which may make no run.

        Parameters
        ----------
        mean : float
            The mean number of runs.

        Returns
        -------
        Runs
        """
        return cls(mean, None)

    def loss(self, base_loss: PrivacyLoss) -> RandomStopping | PoissonStopping:
        """Return the loss of the best run.

        Parameters
        ----------
        base_loss : PrivacyLoss
            Of one run: of all that it releases, its score too.

        Returns
        -------
        RandomStopping or PoissonStopping
        """
        if self.shape is None:
            return PoissonStopping(base_loss, self.mean)
        return RandomStopping(base_loss, self.shape, self.stopping_probability)

    @property
    def stopping_probability(self) -> float:
        """Of a negative binomial with this mean, to 15 digits or so; the loss is of what is drawn."""
        if self.shape == 1.0:
            return 1 / self.mean
        shape = 1.0 if self.shape is None else self.shape
        low, high = math.log(1e-18), -1e-15
        wanted = math.log(self.mean)
        for _ in range(80):
            middle = (low + high) / 2
            longer = RandomStopping(PureDP(0.0), shape, math.exp(middle)).log_mean > wanted
            low, high = (middle, high) if longer else (low, middle)
        return math.exp(high)


Train = Callable[[Any, RandomSource], tuple[Any, Any]]


def tune(
    train: Train,
    candidates: Sequence[Any],
    base_loss: PrivacyLoss | Sequence[PrivacyLoss],
    *,
    runs: Runs,
    ledger: Ledger | None = None,
    delta: float = 0.0,
    description: str = "tuning",
    rng: Rng = None,
) -> Release:
    """Train with random settings, a secret number of times, and return the best run.

    Parameters
    ----------
    train : callable
        ``train(candidate, source)`` trains once and returns ``(score, output)``. Both are released for the
        best run: the score must be private too, such as the accuracy on public data or a noisy count. It
        draws all randomness from ``source`` (pass it on as ``rng``), charges no ledger, prints nothing, and
        keeps nothing from one run to the next.
    candidates : sequence
        Settings to choose from, fixed before the data is seen.
    base_loss : PrivacyLoss or sequence of PrivacyLoss
        Of one run, score included; or one for each candidate, of which the worst counts.
    runs : Runs
        The distribution of the number of runs.
    ledger : Ledger, optional
        Charged the whole search before the first run. Without one nobody keeps the account but the caller.
    delta : float
        Where the ledger reads the charge's own guarantee.
    description : str
        For people who read the ledger.
    rng : None, int, numpy Generator or RandomSource
        None draws from the operating system's entropy; anything seeded only simulates.

    Returns
    -------
    Release
        Of a `sfumato.mechanisms.BestRun` with the score, output and candidate of the best run; of None where
        a Poisson number of runs was 0.

    Raises
    ------
    BudgetExceeded
        The search does not fit; nothing was run.
    ParameterError
        A parameter breaks its rule, or a run returns no pair of a real score and an output.

    Notes
    -----
    Guarantee: ``runs.loss(base_loss)``, under its relation (Papernot, Steinke 2022, Theorem 2; proofs at
    `sfumato.privacy.RandomStopping`). Conditions: those of ``train`` above; that how many runs there were,
    and how long they took, is not released; that no other run's result is. A search over all candidates in
    turn, a look at a learning curve, or a second search after a bad first one has no such price: each is
    charged in full.

    References
    ----------
    Liu, Talwar, "Private selection from private candidates" (STOC 2019); Papernot, Steinke, "Hyperparameter
    tuning with Rényi differential privacy" (ICLR 2022).

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> counts = {"small": 40, "large": 900}
    >>> score = Laplace(sensitivity=1, scale=10)
    >>> def train(candidate, source):
    ...     noisy = score.release(counts[candidate], rng=source).value
    ...     return noisy, f"a model with {candidate} steps"
    >>> best = tune(train, ["small", "large"], score.privacy_loss, runs=Runs.geometric(10), rng=1)
    >>> best.value.candidate, best.value.output, round(best.loss.epsilon(0.0), 6)
    ('large', 'a model with large steps', 0.3)
    """
    trainer: object = train
    given: object = runs
    if not callable(trainer):
        remedy = "pass a function of a candidate and a source that returns (score, output)"
        _check.refuse_type("train", "be callable", trainer, remedy)
    _check.instance("runs", given, Runs, "pass Runs.logarithmic(10), say")
    _check.ledger(ledger)
    choices = as_candidates(candidates)
    search = PrivateCandidates(
        run=lambda _, candidate, source: train(candidate, source),
        loss=runs.loss(_of_one_run(base_loss, len(choices))),
        candidates=choices,
    )
    source = random_source(rng)
    receipt = None
    if ledger is not None:
        receipt = ledger.charge(
            search.privacy_loss, delta=delta, description=description, simulated=source.simulated
        )
    return replace(search.release(None, source), receipt=receipt)


def _of_one_run(base_loss: object, count: int) -> PrivacyLoss:
    """Return the loss of a run whatever its candidate."""
    if isinstance(base_loss, PrivacyLoss):
        return base_loss
    remedy = "pass the loss of one run, or one for each candidate"
    if not isinstance(base_loss, list | tuple) or not all(
        isinstance(loss, PrivacyLoss) for loss in base_loss
    ):
        _check.refuse_type("base_loss", "be a PrivacyLoss or a list of them", base_loss, remedy)
    if len(base_loss) != count:
        rule = f"be one loss, or one for each of the {count} candidates"
        _check.refuse_state("base_loss", rule, f"there are {len(base_loss)}", remedy)
    return AdaptiveChoice(tuple(base_loss))
