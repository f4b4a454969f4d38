"""The worst case of tracing: one member, everybody else known, and a release of its own for every guess."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.attacks.base.accusations import accusations
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.tracing.score_weights import known_others_weights
from sfumato.mechanisms.base.additive import AdditiveMechanism
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.randomness.source import Rng
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["worst_case_tracing"]


def worst_case_tracing(
    mechanism: AdditiveMechanism,
    target: ArrayLike,
    *,
    runs: int,
    claim: PrivacyLoss | None = None,
    assumed_noise: SymmetricDistribution | None = None,
    false_positive_rate: float = 0.05,
    confidence: float = 0.95,
    prior: float = 0.5,
    rng: Rng = None,
) -> Findings:
    """Trace one target in many private counts, with and without them, by the best attack there is.

    Parameters
    ----------
    mechanism : AdditiveMechanism
        That adds noise to counts, such as ``Laplace(sensitivity=1, l0=16, scale=16)``.
    target : array of 0 and 1, shape (attributes,)
        Who is in the data of one half of the releases. The others' counts are known, and so make no
        difference: they are taken for 0.
    runs : int
        Releases with the target, and as many without; eight at least.
    claim : PrivacyLoss, optional
        What the mechanism is said to lose; its own loss by default.
    assumed_noise : SymmetricDistribution, optional
        What the attacker takes the noise for; that of the mechanism by default.
    false_positive_rate : float
        At which the target is accused; half of the releases without them set the threshold.
    confidence : float
        That the intervals hold together.
    prior : float
        Chance that the target is in.
    rng : int, numpy Generator or None
        For the mechanism's noise.

    Returns
    -------
    Findings
        With ``design="runs"`` and the worlds of add/remove: an exceeded bound refutes the claim.

    Raises
    ------
    ParameterError
        If the mechanism does not count, a parameter breaks its rule, or the target moves more counts than
        the mechanism's own loss is about.

    Notes
    -----
    Guarantee: all releases are independent, and the score is the likelihood ratio of the noise, so that no
    attack has more power at the same false positive rate (Neyman and Pearson), and the power is the exact
    trade-off function of the counts that the target moves. The claim must be under add/remove for a bound.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Laplace
    >>> found = worst_case_tracing(Laplace(sensitivity=1, l0=16, scale=4), np.ones(16, int), runs=2000, rng=1)
    >>> [bound.exceeded for bound in found.bounds]
    [False, False, False]
    >>> found.success.lower > found.baseline.upper
    True
    """
    _check.instance("mechanism", mechanism, AdditiveMechanism, "pass Laplace(...) or Gaussian(...) on counts")
    if not mechanism.integral:
        remedy = "pass whole sensitivities, and no grid"
        _check.refuse_state("mechanism", "add noise to whole counts", "it rounds reals to a grid", remedy)
    record = np.asarray(target)
    if record.ndim != 1 or not np.isin(record, (0, 1)).all() or not record.any():
        rule = "be 0 or 1 for each attribute, one of them 1"
        _check.refuse_type("target", rule, record, "code each attribute as a bit")
    runs = _check.integer("runs", runs, minimum=8, remedy="half of those without the target set a threshold")
    row: NDArray[np.int64] = record.astype(np.int64)
    if claim is None and not mechanism.covers(Shift.entries(int(row.sum()), 1)):
        rule = "have no more attributes than the mechanism's loss lets a person have"
        _check.refuse("target", rule, int(row.sum()), "raise l0 and the noise, or pass the claim to refute")
    noise = mechanism.distribution if assumed_noise is None else assumed_noise
    inside = _scores(mechanism.outputs(row, runs, rng), row, noise)
    again: Any = (
        int(rng) + 1 if isinstance(rng, int | np.integer) else rng
    )  # a seed would draw the same noise twice
    outside = _scores(mechanism.outputs(np.zeros_like(row), runs, again), row, noise)
    found = accusations(
        inside,
        truth=np.ones(runs, dtype=np.bool_),
        controls=outside,
        false_positive_rate=false_positive_rate,
    )
    known = ("the target's attributes", "the counts of all other people", "the distribution of the noise")
    return Findings(
        attack="worst-case tracing",
        kind="presence",
        knowledge=Knowledge(known, {"target": row}),
        targets=found.targets,
        controls=found.controls,
        loss=mechanism.privacy_loss if claim is None else claim,
        worlds=Neighboring.ADD_REMOVE,
        exchangeable=True,
        design="runs",
        confidence=confidence,
        prior=prior,
        numbers={"threshold": found.threshold},
    )


def _scores(released: Any, row: NDArray[np.int64], noise: SymmetricDistribution) -> NDArray[np.float64]:
    """Return the log likelihood ratio of each release; attributes that the target lacks say nothing."""
    counts = np.asarray(released)[:, row == 1].astype(np.int64)
    weights = known_others_weights(counts.ravel(), np.zeros(counts.size, dtype=np.int64), noise)
    return np.asarray(weights.having.reshape(counts.shape).sum(axis=1))
