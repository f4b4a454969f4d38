"""Attribute inference from a model: the value of a secret that makes the model fit the person best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.base.target_guesses import TargetGuesses
from sfumato.attacks.membership.signals import as_finite_array
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["LabeledExamples", "ModelInversion"]


class LabeledExamples(NamedTuple):
    """Examples and what a model should say of them.

    Attributes
    ----------
    features : array of shape (people, features)
    labels : array of shape (people,)

    Examples
    --------
    >>> LabeledExamples([[30.0, 1.0]], [0]).labels
    [0]
    """

    features: ArrayLike
    labels: ArrayLike


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelInversion(Attack):
    """Guess one feature of people from a model's fit to their other features and their label.

    Each candidate value is put in the feature's place; the one with the greatest likelihood times prior is
    the guess.

    Parameters
    ----------
    score : callable
        ``score(model, features, labels)`` returns the log-likelihood of each label.
    targets : LabeledExamples
        What is known of each target; the secret feature's entries are not read.
    feature : int
        The secret's place among the features.
    candidates : sequence of float
        Its possible values, two at least.
    prior : sequence of float, optional
        Their probabilities in the population; equal by default.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or, in `run`, scores do not fit.

    Notes
    -----
    A model that has learned how the secret and the label hang together gives secrets of everybody away,
    controls included: that is the baseline and no breach (Yeom and others 2018). ``numbers`` has how often
    the prior's likeliest value alone is right.

    References
    ----------
    Fredrikson, Lantz, Jha, Lin, Page, Ristenpart (2014), Privacy in Pharmacogenetics. Yeom, Giacomelli,
    Fredrikson, Jha (2018), Privacy Risk in Machine Learning: Analyzing the Connection to Overfitting.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import attacks
    >>> def fits(model, features, labels):
    ...     return -np.square(features @ model - labels)
    >>> known = attacks.LabeledExamples([[1.0, np.nan], [2.0, np.nan]], [1.0, 5.0])
    >>> attack = attacks.ModelInversion(score=fits, targets=known, feature=1, candidates=[0.0, 1.0])
    >>> attack.run(np.array([1.0, 3.0]), truth=[0.0, 1.0]).targets.guesses.tolist()
    [0.0, 1.0]
    """

    score: Callable[[Any, NDArray[np.float64], NDArray[Any]], ArrayLike]
    targets: LabeledExamples
    feature: int
    candidates: ArrayLike
    prior: ArrayLike | None = None

    def __post_init__(self) -> None:
        if not callable(self.score):
            _check.refuse_type("score", "be callable", self.score, "pass score(model, features, labels)")
        features, labels = _examples("targets", self.targets)
        if _check.integer("feature", self.feature) >= features.shape[1]:
            _check.refuse("feature", f"be below {features.shape[1]}", self.feature, "count from 0")
        candidates = as_finite_array("candidates", self.candidates, dimensions=(1,))
        if len(candidates) < 2 or len(np.unique(candidates)) < len(candidates):
            remedy = "list the secret's possible values"
            _check.refuse_type("candidates", "be two different numbers at least", self.candidates, remedy)
        object.__setattr__(self, "targets", LabeledExamples(features, labels))
        object.__setattr__(self, "candidates", candidates)
        object.__setattr__(self, "prior", _probabilities(self.prior, len(candidates)))

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the model."""
        known = (
            "each target's label and other features",
            "the secret's possible values and their share of people",
        )
        return Knowledge(known, {"targets": self.targets, "prior": self.prior})

    def run(
        self,
        release: Any,
        *,
        truth: ArrayLike | None = None,
        controls: LabeledExamples | None = None,
        exchangeable: bool = False,
        loss: PrivacyLoss | None = None,
        confidence: float = 0.95,
    ) -> Findings:
        """Attack a model.

        Parameters
        ----------
        release : Any
            The model, as ``score`` takes it.
        truth : array of float, optional
            The secret of each target.
        controls : LabeledExamples, optional
            People who were not in the training; the secret stands in its place among their features.
        exchangeable : bool
            Whether targets and controls were drawn alike, by lot.
        loss : PrivacyLoss, optional
            Of the training.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
        """
        model, loss = read_release(release, loss)
        secrets = None
        if truth is not None:
            secrets = as_finite_array("truth", truth, dimensions=(1,))
            if len(secrets) != len(self.targets.features):  # type: ignore[arg-type]
                remedy = "pass the secret of each target"
                _check.refuse_state("truth", "be as long as targets", f"has {len(secrets)} entries", remedy)
        against = None
        if controls is not None:
            features, labels = _examples("controls", controls)
            against = self._guessed(model, features, labels, features[:, self.feature])
        numbers = {}
        if secrets is not None:
            likeliest = np.asarray(self.candidates)[np.asarray(self.prior).argmax()]
            numbers["the likeliest value is right"] = float((secrets == likeliest).mean())
        features, labels = _examples("targets", self.targets)
        return Findings(
            attack="model inversion",
            kind="value",
            knowledge=self.knowledge,
            targets=self._guessed(model, features, labels, secrets),
            controls=against,
            loss=loss,
            exchangeable=exchangeable,
            confidence=confidence,
            numbers=numbers,
        )

    def _guessed(
        self,
        model: Any,
        features: NDArray[np.float64],
        labels: NDArray[Any],
        truth: NDArray[np.float64] | None,
    ) -> TargetGuesses:
        candidates, prior = np.asarray(self.candidates), np.asarray(self.prior)
        fits = np.empty((len(candidates), len(features)))
        for place, value in enumerate(candidates):
            supposed = features.copy()
            supposed[:, self.feature] = value
            scores = as_finite_array("score", self.score(model, supposed, labels), dimensions=(1,))
            if len(scores) != len(features):
                remedy = "return one log-likelihood for each example"
                _check.refuse_state("score", "fit the examples", f"{len(scores)} numbers came", remedy)
            fits[place] = scores + np.log(prior[place])
        best = fits.argmax(axis=0)
        posterior = np.exp(fits - np.logaddexp.reduce(fits, axis=0))
        guesses = candidates[best]
        return TargetGuesses(
            guesses=guesses,
            scores=posterior.max(axis=0),
            claimed=np.ones(len(guesses), dtype=np.bool_),
            correct=None if truth is None else guesses == truth,
        )


def _examples(name: str, examples: Any) -> tuple[NDArray[np.float64], NDArray[Any]]:
    try:
        features, labels = (np.asarray(part) for part in examples)
        features = features.astype(np.float64)
    except (TypeError, ValueError):
        features, labels = np.zeros(0), np.zeros(0)
    if features.ndim != 2 or not len(features) or labels.ndim < 1 or len(labels) != len(features):
        rule, remedy = "be numbers of shape (people, features), a label each", "pass LabeledExamples"
        _check.refuse_type(name, rule, examples, remedy)
    return features, labels


def _probabilities(prior: ArrayLike | None, candidates: int) -> NDArray[np.float64]:
    if prior is None:
        return np.full(candidates, 1 / candidates)
    values = as_finite_array("prior", prior, dimensions=(1,))
    if len(values) != candidates or (values <= 0).any() or abs(values.sum() - 1) > 1e-9:
        remedy = "pass a probability above 0 for each candidate, in the same order"
        _check.refuse_type("prior", "be probabilities that sum to 1", prior, remedy)
    return values
