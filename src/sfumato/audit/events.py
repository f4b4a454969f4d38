"""Events (sets of outputs), and the choice of those that distinguish two inputs best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato.audit.flattening import as_outputs
from sfumato.audit.learned_scores import learned_scores
from sfumato.audit.lower_bounds import forced_epsilon, forced_mu, forced_paired_epsilon
from sfumato.audit.outcome_encoding import EncodedOutcomes, OutcomeEncoder
from sfumato.audit.scores import FrequencyRatioScore, Score
from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound

__all__ = ["CandidateEvent", "Event", "candidate_events"]

_THRESHOLDS = 160
_PROMISING = 12
_CAUTION = 2.0  # the best of many events did not get there by its merits alone


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A set of outcomes: those whose score is at least, or at most, a threshold.

    Parameters
    ----------
    encoder : Encoder
        How outcomes become numbers.
    score : Score
        What is compared.
    threshold : float
    above : bool
        Whether scores of at least the threshold are in the event, or those of at most it.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.audit import audit
    >>> noise = np.random.default_rng(1)
    >>> def count(data, size):
    ...     return len(data) + noise.laplace(0.0, 1.0, size)
    >>> event = audit(count, epsilon=0.5, pairs=[([], [1])], trials=20_000).event
    >>> int(event.holds(np.array([-50.0, 50.0])).sum())
    1
    """

    encoder: OutcomeEncoder
    score: Score
    threshold: float
    above: bool

    @property
    def family(self) -> str:
        """Its kind: ``tail``, ``atom`` or ``posterior``."""
        return self.score.family

    def __str__(self) -> str:
        if self.family == "atom":
            return self.score.name if self.above else f"not {self.score.name}"
        if isinstance(self.score, FrequencyRatioScore):
            named = self.score.members(self.threshold, above=self.above)
            if named is not None and not named[1]:
                return "any output" if named[0] else "no output"
            if named is not None:
                return f"output {'not ' if named[0] else ''}among {', '.join(named[1])}"
        return f"{self.score.name} {'>=' if self.above else '<='} {self.threshold:.6g}"

    def __repr__(self) -> str:
        return f"Event({str(self)!r})"

    def holds(self, outputs: Any) -> NDArray[np.bool_]:
        """Return whether each of some outputs of the mechanism is in the event.

        Parameters
        ----------
        outputs : array or list
            One output in each entry of the first axis.

        Returns
        -------
        bool array
        """
        return self.within(self.score(self.encoder(as_outputs(outputs, self.encoder.ignored))))

    def within(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return whether each score is in the event.

        Parameters
        ----------
        scores : array of shape (n,)
            A score of each output.

        Returns
        -------
        bool array of shape (n,)
        """
        with np.errstate(invalid="ignore"):
            return np.asarray(scores >= self.threshold if self.above else scores <= self.threshold)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateEvent:
    """An event with what a first sample makes of it.

    Parameters
    ----------
    event : Event
    swapped : bool
        Whether it is the second input that makes the event likely.
    epsilon, mu : float
        What a test will probably prove.
    paired : bool
        Whether it should count pairs of runs.
    """

    event: Event
    swapped: bool
    epsilon: float
    mu: float
    paired: bool = False


def candidate_events(
    encoder: OutcomeEncoder,
    learning: tuple[EncodedOutcomes, EncodedOutcomes],
    choosing: tuple[EncodedOutcomes, EncodedOutcomes],
    *,
    tested: int,
    delta: float,
    risk: float,
    pairing: bool = False,
) -> Iterator[CandidateEvent]:
    """Yield for each score its best events: learned on one sample, thresholds chosen on another.

    Parameters
    ----------
    encoder : Encoder
    learning, choosing : pair of Outcomes
        Independent outcomes of the two inputs.
    tested : int
        How many runs will test the events.
    delta, risk : float
        Of the bounds that will be taken then; what they will probably be ranks the events.
    pairing : bool
        Whether pairs of runs may be counted.
    """
    for score in learned_scores(encoder, *learning):
        first, second = (np.sort(_given(score(outcomes))) for outcomes in choosing)
        thresholds = _thresholds(first, second)
        if not thresholds.size:
            continue
        for above in (True, False):
            hits = [_hits(scores, thresholds, above=above) for scores in (first, second)]
            trials = [len(outcomes) for outcomes in choosing]
            for swapped in (False, True):
                likely, rare = (1, 0) if swapped else (0, 1)
                many = _foreseen(hits[likely], trials[likely], tested, -1)
                few = _foreseen(hits[rare], trials[rare], tested, 1)
                promising = _promising(many, few, tested, delta, risk)
                many, few, values = many[promising], few[promising], thresholds[promising]
                minimum = lower_confidence_bound(many, tested, risk / 2)
                maximum = upper_confidence_bound(few, tested, risk / 2)
                mus = forced_mu(minimum, maximum)
                # What always happens proves nothing, whatever little the others promise.
                useless = few >= tested
                forecasts = [(False, forced_epsilon(minimum, maximum, delta))]
                if pairing:
                    counts = (many, few, many * few / tested)
                    joint = forced_paired_epsilon(*counts, trials=tested, delta=delta, risk=risk)
                    forecasts.append((True, joint))
                for paired, forecast in forecasts:
                    epsilons = np.where(useless, -np.inf, forecast)
                    for best in {int(np.argmax(epsilons)), int(np.argmax(mus))}:
                        event = Event(
                            encoder=encoder, score=score, threshold=float(values[best]), above=above
                        )
                        yield CandidateEvent(
                            event=event,
                            swapped=swapped,
                            epsilon=float(epsilons[best]),
                            mu=float(mus[best]),
                            paired=paired,
                        )


def _foreseen(hits: NDArray[np.intp], trials: int, tested: int, sign: int) -> NDArray[np.float64]:
    """Return about how many hits a test will see, some standard errors to the side that proves less."""
    cautious = hits + sign * _CAUTION * np.sqrt(hits)
    return np.asarray(np.clip(cautious * (tested / trials), 0, tested), dtype=np.float64)


def _promising(
    many: NDArray[np.float64], few: NDArray[np.float64], tested: int, delta: float, risk: float
) -> NDArray[np.intp]:
    """Return the few thresholds whose bounds are worth the time: by normal approximations of them."""
    if len(many) <= 3 * _PROMISING:
        return np.arange(len(many))
    z = -float(ndtri(risk / 2))
    middles = [(hits + z * z / 2) / (tested + z * z) for hits in (many, few)]
    widths = [
        z * np.sqrt(hits * (tested - hits) / tested + z * z / 4) / (tested + z * z) for hits in (many, few)
    ]
    minimum, maximum = np.maximum(middles[0] - widths[0], 0.0), np.minimum(middles[1] + widths[1], 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = z * np.sqrt(1 / np.maximum(many, 0.5) + 1 / np.maximum(few, 0.5))
        joint = np.log(np.maximum(many - delta * tested, 0.0)) - np.log(np.maximum(few, 0.5)) - error
    promises = (forced_epsilon(minimum, maximum, delta), forced_mu(minimum, maximum), joint)
    best = [
        np.argsort(-np.nan_to_num(promise, nan=-np.inf), kind="stable")[:_PROMISING] for promise in promises
    ]
    return np.unique(np.concatenate(best))


def _given(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return scores[~np.isnan(scores)]


def _thresholds(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values that were seen, densest at both ends."""
    seen = np.sort(np.concatenate([first, second]), kind="stable")  # two sorted runs are merged
    if not seen.size:
        return seen
    ranks = np.geomspace(1, len(seen), _THRESHOLDS).astype(np.intp) - 1
    inner = np.linspace(0, len(seen) - 1, _THRESHOLDS).astype(np.intp)
    return np.unique(seen[np.concatenate([ranks, inner, len(seen) - 1 - ranks])])


def _hits(scores: NDArray[np.float64], thresholds: NDArray[np.float64], *, above: bool) -> NDArray[np.intp]:
    if above:
        return len(scores) - np.searchsorted(scores, thresholds, side="left")
    return np.searchsorted(scores, thresholds, side="right")
