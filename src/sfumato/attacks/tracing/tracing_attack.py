"""Tracing: who of some targets is among the people whose attributes were summed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.attacks.base.accusations import accusations, as_truth
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.tracing.attribute_rows import as_rows, row_sums, weighted_scores
from sfumato.attacks.tracing.predicted_power import (
    PredictedPower,
    Statistic,
    check_statistic,
    frequencies_of,
    statistic_weights,
    tracing_power,
)
from sfumato.attacks.tracing.score_weights import ScoreWeights, known_others_weights
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Tracing"]

_IDENTIFYING: Final = 64
"""Attributes; so long rows are equal only if they are one person's."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tracing(Attack):
    """Who is among the people whose binary attributes were summed.

    Parameters
    ----------
    targets : array of 0 and 1, shape (people, attributes)
        The targets' attributes. A memory map or `PackedBits` is read in blocks.
    members : int
        How many people were summed: public.
    statistic : {"likelihood-ratio", "homer", "inner-product"}
        The first is the best where the frequencies are the population's, the last needs least.
    frequencies : array of shape (attributes,), optional
        Of the population, strictly between 0 and 1: never computed from the members.
    reference : array of 0 and 1, shape (people, attributes), optional
        People of the population instead, of whom none is a member, a target or a control. Their smoothed
        frequencies are used.
    others : int array of shape (attributes,), optional
        Instead of both: the counts of all members but one, for the attacker who knows everyone else. The
        likelihood ratio is then that of the noise, and no attack is better.
    counts : bool
        Whether the release is of counts, not of frequencies.
    noise : SymmetricDistribution, optional
        Of the noise on counts, which is public; a release of sfumato brings its own.
    false_positive_rate : float
        At which targets are accused.
    prior : float
        Chance that a person who is asked about is a member.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule; in `run`, if frequencies are those that were published, or a target or
        control is in the reference.

    Notes
    -----
    Controls must be drawn as members were, from the same population and in no relation to the reference: who
    is in the reference looks less like a member than others do, so that false accusations are undercounted.
    Frequencies estimated from the members hide everyone. Neither can be seen in numbers alone.

    The predicted power assumes independent attributes and targets drawn at random from population or members.

    References
    ----------
    Homer and others (2008), "Resolving individuals contributing trace amounts of DNA to highly complex
    mixtures"; Sankararaman and others (2009), "Genomic privacy and limits of individual detection in a pool";
    Dwork, Smith, Steinke, Ullman, Vadhan (2015), "Robust traceability from trace amounts".

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import attacks
    >>> generator = np.random.default_rng(1)
    >>> frequencies = generator.uniform(0.05, 0.5, 2000)
    >>> people = generator.random((400, 2000)) < frequencies  # the first 100 are members
    >>> attack = attacks.Tracing(targets=people[:100], members=100, frequencies=frequencies)
    >>> found = attack.run(people[:100].sum(axis=0), truth=np.ones(100, bool), controls=people[100:],
    ...                    exchangeable=True)
    >>> found.success.lower > 0.9, found.baseline.upper < 0.1
    (True, True)
    """

    targets: Any
    members: int
    statistic: Statistic = "likelihood-ratio"
    frequencies: ArrayLike | None = None
    reference: Any = None
    others: ArrayLike | None = None
    counts: bool = True
    noise: SymmetricDistribution | None = None
    false_positive_rate: float = 0.01
    prior: float = 0.5

    def __post_init__(self) -> None:
        targets = as_rows("targets", self.targets)
        attributes = targets.shape[1]
        check_statistic(self.statistic)
        _check.integer("members", self.members, minimum=2, remedy="pass how many people were summed")
        _check.unit_interval("false_positive_rate", self.false_positive_rate)
        _check.unit_interval("prior", self.prior)
        known = [self.frequencies is not None, self.reference is not None, self.others is not None]
        if sum(known) != 1:
            remedy = "pass the population's frequencies, or people of it as reference, or all others' counts"
            rule = "be given, or reference or others, and one of them only"
            _check.refuse_state("frequencies", rule, f"{sum(known)} of them are", remedy)
        object.__setattr__(self, "targets", targets)
        if self.reference is not None:
            object.__setattr__(self, "reference", as_rows("reference", self.reference, attributes))
        if self.frequencies is not None:
            frequencies = frequencies_of(self.frequencies)
            _check_length("frequencies", frequencies, attributes)
            object.__setattr__(self, "frequencies", frequencies)
        if self.others is not None:
            self._check_others(attributes)

    def _check_others(self, attributes: int) -> None:
        others = np.asarray(self.others)
        if others.dtype.kind not in "iu" or self.statistic != "likelihood-ratio" or not self.counts:
            rule = "be integers, for a likelihood ratio of counts"
            _check.refuse_type("others", rule, others, "pass the sums of all other members' attributes")
        _check_length("others", others, attributes)
        object.__setattr__(self, "others", others.astype(np.int64))

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the release."""
        known = ["the attributes of each target", f"that {self.members} people were summed"]
        if self.others is not None:
            known += ["the counts of all members but one", "the distribution of the noise"]
        elif self.reference is not None:
            people = self.reference.shape[0]
            known.append(f"the attributes of {people} people of the population who are not in the release")
        else:
            known.append("how frequent each attribute is in the population")
        return Knowledge(tuple(known), {"targets": self.targets, "frequencies": self.frequencies})

    def scores(self, release: Any, people: Any = None) -> NDArray[np.float64]:
        """Return the statistic of each person, higher for who looks like a member.

        Parameters
        ----------
        release : Release or array of shape (attributes,)
            Counts, or frequencies.
        people : array of 0 and 1, shape (people, attributes), optional
            The targets by default.

        Returns
        -------
        array of shape (people,)
        """
        rows = self.targets if people is None else as_rows("people", people, self.targets.shape[1])
        return weighted_scores("people", rows, self._weights(release))

    def predicted(self, release: Any = None) -> PredictedPower | None:
        """Return the power by theory, for independent attributes; None where no theory is here.

        Parameters
        ----------
        release : Release, optional
            Which brings its noise; the attack's own noise by default.

        Returns
        -------
        PredictedPower or None
            None unless the population's frequencies are known, and the noise is on whole counts.
        """
        noise, step = self._noise(release)
        if self.frequencies is None or (noise is not None and (step != 1 or not self.counts)):
            return None
        rate = self.false_positive_rate
        return tracing_power(
            self.statistic, self.frequencies, members=self.members, false_positive_rate=rate, noise=noise
        )

    def run(
        self,
        release: Any,
        *,
        truth: ArrayLike | None = None,
        controls: Any = None,
        exchangeable: bool = False,
        loss: PrivacyLoss | None = None,
        confidence: float = 0.95,
    ) -> Findings:
        """Accuse targets.

        Parameters
        ----------
        release : Release or array of shape (attributes,)
            Counts or frequencies of the members' attributes.
        truth : bool array of shape (targets,), optional
            Who is a member; the others become controls.
        controls : array of 0 and 1, shape (people, attributes), optional
            People who are not. Half of their scores set the threshold, the other half is counted; without
            them, the threshold of the exact prediction is taken, where there is one.
        exchangeable : bool
            Whether members and controls were drawn alike, by lot.
        loss : PrivacyLoss, optional
            Of a release that brings none.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
            Among its numbers the predicted power, and whether that is exact or a normal approximation.
        """
        read = read_release(release, loss)
        flags = as_truth(truth, self.targets.shape[0])
        weights = self._weights(release)
        other = None
        if controls is not None:
            rows = as_rows("controls", controls, self.targets.shape[1])
            self._check_apart(rows)
            other = weighted_scores("controls", rows, weights)
        self._check_apart(self.targets)
        predicted = self.predicted(release)
        theory = None
        if predicted is not None and predicted.exact and other is None and (flags is None or flags.all()):
            theory = predicted.threshold
        found = accusations(
            weighted_scores("targets", self.targets, weights),
            truth=flags,
            controls=other,
            false_positive_rate=self.false_positive_rate,
            threshold=theory,
        )
        numbers = {"threshold": found.threshold}
        if predicted is not None:
            how = "exact" if predicted.exact else "normal approximation"
            numbers[f"predicted power ({how})"] = (predicted.power.lower + predicted.power.upper) / 2
        return Findings(
            attack=f"tracing ({self.statistic})",
            kind="presence",
            knowledge=self.knowledge,
            targets=found.targets,
            controls=found.controls,
            loss=read.loss,
            exchangeable=exchangeable,
            confidence=confidence,
            prior=self.prior,
            numbers=numbers,
        )

    def _population(self) -> NDArray[np.float64]:
        if self.frequencies is not None:
            return np.asarray(self.frequencies)
        people = self.reference.shape[0]
        return np.asarray((row_sums("reference", self.reference) + 1.0) / (people + 2.0))

    def _noise(self, release: Any) -> tuple[SymmetricDistribution | None, float]:
        """Return the distribution of the noise in steps, and the step."""
        own = getattr(release, "distribution", None)
        if isinstance(own, SymmetricDistribution):
            return own, float(getattr(release, "step", 1))
        return self.noise, 1.0

    def _weights(self, release: Any) -> ScoreWeights:
        value = np.asarray(read_release(release).value)
        attributes = self.targets.shape[1]
        if value.shape != (attributes,) or value.dtype.kind not in "iuf":
            remedy = "pass the sums of the members' attributes, or the means with counts=False"
            _check.refuse_type("release", "be a number for each of the targets' attributes", value, remedy)
        noise, step = self._noise(release)
        if self.others is not None:
            return self._with_others(value, noise, step)
        published = value / self.members if self.counts else value.astype(np.float64)
        population = self._population()
        if np.array_equal(published, population):
            remedy = "pass frequencies of people other than the members"
            _check.refuse_state("frequencies", "be the population's", "they are those of the release", remedy)
        scale = step if self.counts else step * self.members
        variance = 0.0 if noise is None else noise.variance * scale**2
        return statistic_weights(self.statistic, published, population, self.members, variance)

    def _with_others(
        self, value: NDArray[Any], noise: SymmetricDistribution | None, step: float
    ) -> ScoreWeights:
        if noise is None or step != 1 or value.dtype.kind not in "iu":
            remedy = "pass a release of whole counts, and the distribution of its noise"
            _check.refuse_type("noise", "be that of whole counts, where others are known", noise, remedy)
        return known_others_weights(value.astype(np.int64), np.asarray(self.others), noise)

    def _check_apart(self, rows: Any) -> None:
        """Refuse a target or control who is in the reference; short rows may be equal by chance."""
        if self.reference is None or self.targets.shape[1] < _IDENTIFYING:
            return
        known = _digests(self.reference)
        if not known.isdisjoint(_digests(rows)):
            remedy = "leave them out of the reference: they look less like members than others do"
            found = "one of them is"
            _check.refuse_state("reference", "have no target or control in it", found, remedy)


def _digests(rows: Any) -> set[int]:
    people = rows.shape[0]
    return {hash(np.packbits(np.asarray(rows[place], dtype=np.bool_)).tobytes()) for place in range(people)}


def _check_length(name: str, values: NDArray[Any], attributes: int) -> None:
    if values.shape != (attributes,):
        remedy = "pass them in the targets' order"
        _check.refuse_type(name, f"have one entry for each of {attributes} attributes", values, remedy)
