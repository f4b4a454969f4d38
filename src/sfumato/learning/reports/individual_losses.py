r"""What a run costs each example, by the gradients that it had: for the curator's eyes.

A step with Gaussian noise costs an example by the norm of its own clipped gradient, and a clip norm is what
the largest ones cost. Examples that are learned easily pay less.

*What such a number means.* Fix one example, and for each step t a number :math:`r_t`. If the norm of its
clipped gradient in step t were at most :math:`r_t` times the sensitivity *whatever the steps before had
released*, then the run with and without it would have the loss of steps with the noise multipliers
:math:`\sigma / r_t`. Proof. Given what was released before, the step's two distributions differ by the
presence of a vector of that norm (with the sampling probability, where the batch is a Poisson sample), so
that step's pair is the declared one or less: noise can be added to a shorter vector's answer until it has the
distribution of the longer one's, scaled. Adaptive composition of such pairs is bounded by their product
(Dong, Roth, Su 2022).

Here :math:`r_t` is what was observed on the one path that the run took. On other paths it may have been more:
these numbers say what this run would have cost had the norms been known to stay so, and are *no guarantee*.
An adversary who ends the gradients of an example just when the answers revealed enough passes them more often
than delta says. A limit that holds whatever happens is a filter, which leaves an example out before its own
limit is passed (`sfumato.ledger.IndividualFilter`).

The norms, and so the numbers, follow from the data: an example's number may reveal it, and all others.
None may be published.

References
----------
Feldman, Zrnic (2021), "Individual privacy accounting via a Rényi filter".
Yu, Kamath, Kulkarni, Liu, Yin, Zhang (2023), "Individual privacy accounting for differentially private
stochastic gradient descent".
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.errors import NeighboringMismatch
from sfumato.learning.pate.partition import column
from sfumato.learning.sampling.full_batch import FullBatchSampler
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.numerics.rounding import fraction_down
from sfumato.privacy._outward import text_above
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.privacy.neighboring import Neighboring

__all__ = ["IndividualLosses", "IndividualSummary"]

_LEVELS: Final = 32
"""A power of two, so that products with it are exact."""
_SHARES: Final = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IndividualSummary:
    """Individual epsilons, summed up; the curator's alone.

    Parameters
    ----------
    delta : float
        Where epsilon was read.
    run : float
        The epsilon of the run, which holds for everybody.
    quantiles : mapping of float to float
        Of the examples' epsilons.
    groups : mapping of group to (float, float)
        The mean and the largest epsilon in each group.

    Examples
    --------
    >>> summary = IndividualSummary(delta=1e-5, run=2.0, quantiles={0.5: 0.4, 1.0: 2.0})
    >>> summary
    <IndividualSummary at delta 1e-05; print it for the curator>
    """

    delta: float
    run: float
    quantiles: Mapping[float, float]
    groups: Mapping[Hashable, tuple[float, float]] = field(default_factory=dict)

    def __str__(self) -> str:
        run = text_above(self.run, 4)
        lines = [f"curator only: individual epsilon at delta {self.delta:g}; the run's is {run}"]
        lines += [
            f"{share:.0%} of examples: at most {text_above(value, 4)}"
            for share, value in self.quantiles.items()
        ]
        lines += [
            f"group {group}: mean {mean:.4g}, at most {text_above(maximum, 4)}"
            for group, (mean, maximum) in self.groups.items()
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        # A repr ends up in logs and notebooks.
        return f"<IndividualSummary at delta {self.delta:g}; print it for the curator>"


@final
class IndividualLosses:
    """What each example's own gradient norms cost, counted step by step; the curator's alone.

    Parameters
    ----------
    sampler : PoissonSampler or FullBatchSampler
        Whose steps are independent of one another, under add/remove or zero-out.
    noise_multiplier : float
        Of the run: standard deviation of the noise over the clipping's sensitivity.

    Notes
    -----
    Guarantee: none for the run, see the module: each loss is that of an example whose gradients never had, on
    any path, larger norms than were observed on this one. It is at most the run's own, which holds for
    everybody and is all that may be published.
    Conditions: `observe` gets, in every step, a bound on what *each* example would contribute if drawn;
    a step of which the norms are not known goes through `bound`. Norms are rounded up to 32nds of the
    sensitivity, and losses are composed by the certified accountant.

    Examples
    --------
    >>> from sfumato.learning import FullBatchSampler
    >>> account = IndividualLosses(sampler=FullBatchSampler(population=3, steps=4), noise_multiplier=4.0)
    >>> for _ in range(4):
    ...     account.observe([1.0, 0.5, 0.0])
    >>> account.loss_of(0), account.loss_of(1)
    (Gaussian(noise_multiplier=4.0) * 4, Gaussian(noise_multiplier=8.0) * 4)
    >>> account.epsilons(1e-5).round(2).tolist()  # those of 1/2-GDP, of 1/4-GDP and of nothing
    [1.99, 0.93, 0.0]
    """

    def __init__(self, *, sampler: Sampler, noise_multiplier: float) -> None:
        if not isinstance(sampler, PoissonSampler | FullBatchSampler):
            remedy = "use PoissonSampler or FullBatchSampler"
            _check.refuse_type("sampler", "draw each step independently", sampler, remedy)
        if sampler.neighboring is Neighboring.REPLACE_ONE:
            raise NeighboringMismatch(
                "neighboring must be add/remove or zero-out, got replace-one; of two records that are "
                "exchanged only one has norms that were observed"
            )
        self._sampler = sampler
        self._noise = _check.non_negative("noise_multiplier", noise_multiplier)
        self._counts = np.zeros((sampler.population, _LEVELS), dtype=np.int32)
        self._steps = 0

    @property
    def steps(self) -> int:
        """How many steps were counted."""
        return self._steps

    def observe(self, contributions: ArrayLike) -> None:
        """Count one step.

        Parameters
        ----------
        contributions : array_like of shape (population,)
            The L2 norm of what each example contributes to the step's sum if it is drawn, over the clipping's
            sensitivity: from 0 to 1. Of those that were not drawn too.

        Raises
        ------
        ParameterError
            If it is not one such number for each example; the message holds none of them.
        """
        given = np.asarray(contributions, dtype=np.float64)
        if given.shape != (self._sampler.population,) or not ((given >= 0) & (given <= 1)).all():
            rule = "be one number from 0 to 1 for each example"
            _check.refuse_state("contributions", rule, "they are not", "divide norms by the sensitivity")
        levels = np.ceil(given * _LEVELS).astype(np.intp)
        there = np.flatnonzero(levels)
        self._counted(1)
        self._counts[there, levels[there] - 1] += 1

    def bound(self, steps: int = 1) -> None:
        """Count steps of which no norms are known: everybody pays for the whole sensitivity.

        Parameters
        ----------
        steps : int
            How many steps.
        """
        self._counted(_check.integer("steps", steps))
        self._counts[:, -1] += steps

    def _counted(self, steps: int) -> None:
        if self._steps + steps > self._sampler.steps:
            rule = f"add up to at most the planned {self._sampler.steps}"
            _check.refuse_state("steps", rule, f"this makes {self._steps + steps}", "plan a longer run")
        self._steps += steps

    def loss_of(self, example: int) -> PrivacyLoss:
        """Return the loss of one example's own norms; for the curator's eyes only.

        Parameters
        ----------
        example : int
            From 0 to the population less one.

        Returns
        -------
        PrivacyLoss
            At most the run's.
        """
        example = _check.integer("example", example)
        if example >= self._sampler.population:
            remedy = "number the examples from 0"
            _check.refuse("example", f"be below {self._sampler.population}", example, remedy)
        return self._loss(self._counts[example])

    def run_loss(self) -> PrivacyLoss:
        """Return the loss of as many steps for everybody, which may be published.

        Returns
        -------
        PrivacyLoss
        """
        return self._sampler.loss_of(self._noise, self._steps)

    def epsilons(self, delta: float, *, classes: int = 32) -> NDArray[np.float64]:
        """Return an upper bound on each example's own epsilon; for the curator's eyes only.

        Parameters
        ----------
        delta : float
        classes : int
            So many losses are composed at most, each of some hundredths of a second to a second. Where more
            examples differ, those with like norms share the smallest loss that is above all of theirs.

        Returns
        -------
        ndarray of shape (population,)

        Notes
        -----
        Proof that a class's loss is above: sort each example's steps by their norms. The class has, at every
        position, the largest norm of its examples; a step of a larger norm has the greater loss, and the
        product of the steps' pairs does not depend on their order.
        """
        delta = _check.unit_interval("delta", delta)
        # How many steps had at least each norm: one example's losses are above another's if all of these are.
        tails = self._counts[:, ::-1].cumsum(axis=1)[:, ::-1]
        kinds, kind_of = np.unique(tails, axis=0, return_inverse=True)
        weights = (kinds * np.arange(1.0, _LEVELS + 1)).sum(axis=1)
        found = np.zeros(len(kinds))
        parts = min(len(kinds), _check.integer("classes", classes, minimum=1))
        for like in np.array_split(np.argsort(weights, kind="stable"), parts):
            above = kinds[like].max(axis=0)
            found[like] = self._loss(above - np.append(above[1:], 0)).epsilon(delta)
        return found[kind_of.reshape(-1)]

    def summary(self, delta: float, *, groups: ArrayLike | None = None) -> IndividualSummary:
        """Return what the individual epsilons are like, in all and by group; for the curator's eyes only.

        Parameters
        ----------
        delta : float
        groups : array_like of shape (population,), optional
            The group of each example: groups that a model serves worse often pay more.

        Returns
        -------
        IndividualSummary
        """
        found = self.epsilons(delta)
        by_group = {}
        if groups is not None:
            names = column(groups)
            if names.shape != found.shape:
                remedy = "pass one group for each example"
                rule = "have one entry for each example"
                _check.refuse_state("groups", rule, f"their shape is {names.shape}", remedy)
            for name in np.unique(names):
                own = found[names == name]
                by_group[name] = (float(own.mean()), float(own.max()))
        quantiles = np.quantile(found, _SHARES, method="higher")
        return IndividualSummary(
            delta=delta,
            run=self.run_loss().epsilon(delta),
            quantiles=dict(zip(_SHARES, quantiles.tolist(), strict=True)),
            groups=by_group,
        )

    def _loss(self, counts: NDArray[np.integer]) -> PrivacyLoss:
        """Return the loss of so many steps at each level."""
        found = []
        for level in np.flatnonzero(counts).tolist():
            noise = fraction_down(Fraction(self._noise) * _LEVELS / (level + 1))
            found.append(self._sampler.loss_of(noise, int(counts[level])))
        return compose(found)

    def __repr__(self) -> str:
        # A repr ends up in logs and notebooks, so it holds nothing about the examples.
        return f"<IndividualLosses of {self._steps} steps>"
