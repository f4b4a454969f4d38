"""Black-box auditing: a certified lower bound on the epsilon of anything that can be run."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, final

from sfumato import _check
from sfumato._wire import NUMBER, Format, canonical, optional
from sfumato.audit.events import CandidateEvent, Event, candidate_events
from sfumato.audit.flattening import MESSAGE, ORDER, TYPE, ZERO_SIGN
from sfumato.audit.floating_point import PrecisionAudit
from sfumato.audit.input_pairs import InputPair, as_pairs
from sfumato.audit.lower_bounds import certified_epsilon, certified_mu
from sfumato.audit.outcome_encoding import OutcomeEncoder
from sfumato.audit.repeated_runs import PairRun, in_turn, runner, single_call
from sfumato.audit.side_channels.observed_runs import ObservedRuns
from sfumato.audit.side_channels.observers import OBSERVABLE, Observer, as_observers
from sfumato.audit.worst_case_pairs import default_pairs
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound
from sfumato.numerics.randomness.source import Rng
from sfumato.privacy._outward import text_below
from sfumato.privacy.conversion import gdp_epsilon

__all__ = ["FORMAT", "Audit", "audit", "json_report"]

_MIN_TRIALS = 200
_FINALISTS = 6
_CHUNK = 1 << 18
_MAX_LEARNED = _MAX_CHOSEN = 1 << 17
_RESOLUTION = 2.0**-20
_IGNORABLE: Final = (TYPE, ORDER, ZERO_SIGN, MESSAGE)
FORMAT: Final = Format("sfumato.audit-report", 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audit:
    """What an audit proved.

    Parameters
    ----------
    epsilon_lower : float
        With probability ``confidence``, the mechanism is not (epsilon, delta)-DP for any smaller epsilon.
    epsilon, delta : float
        The claim.
    violated : bool
        Whether ``epsilon_lower`` exceeds the claim. Otherwise nothing is proved.
    event : Event
        The witness: a set of outcomes that is likelier on ``pair.first`` than the claim allows for
        ``pair.second``.
    pair : InputPair
        The two inputs, in the order in which the event tells them apart.
    hits : tuple of two ints
        How often the event was seen on each, in runs that had no part in its choice.
    tested : int
        Number of those runs, on each input.
    confidence : float
        Of the whole audit, all events and pairs together.
    mu_lower : float
        With the same confidence, and jointly with ``epsilon_lower``: the mechanism is not mu-GDP for any
        smaller mu.
    epsilon_if_gaussian : float or None
        The epsilon at this delta of a Gaussian mechanism with ``mu_lower``: *not certified*, for nobody said
        that the mechanism is Gaussian. None at delta 0, where it is infinite.
    trials : int
        Runs on each input of each pair.
    ignored : tuple of str
        What of an output was not looked at.
    observed : tuple of str
        What of a run was looked at besides its output.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(1)
    >>> def count(data, size):
    ...     return len(data) + noise.laplace(0.0, 1.0, size)
    >>> found = audit(count, epsilon=0.5, pairs=[([1] * 5, [1] * 6)], trials=20_000)
    >>> found.violated, found.hits[0] > found.hits[1]
    (True, True)
    """

    epsilon_lower: float
    epsilon: float
    delta: float
    violated: bool
    event: Event
    pair: InputPair
    hits: tuple[int, int]
    tested: int
    confidence: float
    mu_lower: float
    epsilon_if_gaussian: float | None
    trials: int
    ignored: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted"
        unobserved = [each for each in OBSERVABLE if each not in self.observed]
        facts = {"not looked at": self.ignored, "observed": self.observed, "not observed": unobserved}
        seen = "".join(f"; {fact}: {', '.join(names)}" for fact, names in facts.items() if names)
        minimum = text_below(self.epsilon_lower, 4)
        return (
            f"epsilon {self.epsilon:g} at delta {self.delta:g}: {verdict}; at least {minimum} "
            f"with confidence {self.confidence:.12g}, by {{{self.event}}} seen {self.hits[0]} and "
            f"{self.hits[1]} times in {self.tested} runs on {self.pair}{seen}"
        )


def audit(
    mechanism: Mechanism | Callable[..., Any],
    *,
    epsilon: float,
    delta: float = 0.0,
    pairs: Iterable[Any] | None = None,
    trials: int = 1_000_000,
    confidence: float = 0.999,
    batch: bool | None = None,
    resolution: float = _RESOLUTION,
    ignore: Collection[str] = (),
    observe: Collection[str | Observer] = (),
    rng: Rng = None,
) -> Audit:
    """Search for an event that refutes a claim of (epsilon, delta)-DP.

    Parameters
    ----------
    mechanism : Mechanism or callable
        One of ours, or any ``f(data)``, or a batch form ``f(data, size)`` that returns ``size`` outputs of
        independent runs. Outputs may be numbers, arrays, strings, tuples, or mixed; an error that is raised
        is one too.
    epsilon, delta : float
        The claim; epsilon may be infinite, to see what can be proved.
    pairs : iterable of (first, second), optional
        Neighboring inputs; a mechanism of ours, or what has an attribute ``pairs``, brings its own. See
        `array_pairs`, `vector_pairs`,
        `score_pairs`.
    trials : int
        Runs on each input of each pair, at least 200.
    confidence : float
        Probability, over the runs, that all that is certified holds.
    batch : bool, optional
        Whether the callable has the batch form. Unless given: whether it has two positional parameters.
    resolution : float
        Float outputs are rounded to a power of two about this part of their range, so that what floats leave
        in their low bits is no event; `audit_precision` looks at those.
    ignore : collection of str
        What of an output is no event, where nobody sees it or it is known to be harmless: ``"type"`` (int or
        float, list or tuple, dtype; structure and length still count), ``"order"`` (of a mapping's keys),
        ``"zero sign"`` (-0.0 for 0.0), ``"message"`` (of an error; its class still counts). The report says
        so.
    observe : collection of str or Observer
        What of a run is an event beside its output: ``"time"`` (nanoseconds of the clock that a caller has),
        ``"memory"`` (bytes at its peak), ``"random state"`` (how many words it takes from the global
        generators of ``numpy.random`` and ``random``, and whether it seeds them), or observers:
        `TimeObserver` with another clock, `RandomStateObserver` of a generator that you pass, or your own
        `Observer`. Nothing unless given; the report says what was not. Runs are then made one at a time,
        those of the two inputs in random order, and observed outcomes are `ObservedOutput`.
    rng : None, int, numpy Generator or RandomSource
        Where a mechanism of ours draws from; a callable has its own randomness.

    Returns
    -------
    Audit

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or a callable fails on both inputs of a pair.

    Notes
    -----
    Guarantee: if the mechanism is (epsilon, delta)-DP for these pairs, and its runs are independent, then
    ``epsilon_lower`` exceeds epsilon with probability at most ``1 - confidence``. *Proof.* Some of the runs
    (half of them, fewer where there are many) choose a few events over all pairs, directions and kinds; the
    others only count them. Given the choice, counts are binomial, and all of Clopper and Pearson's bounds on
    the two inputs' probabilities hold together with probability ``confidence``, by a union bound. Then
    ``p <= exp(epsilon) q + delta`` gives epsilon at least ``log((p_lower - delta) / q_upper)``, rounded down.
    Likewise for mu-GDP, whose trade-off curve gives mu at least ``Phi^-1(p) - Phi^-1(q)`` for every event
    (Dong, Roth, Su 2022).

    Time and memory depend on the machine, and on what ran before. In each two runs a coin decides which
    input comes first; so a machine that drifts, whatever either input does, refutes no mechanism: given the
    drift, hits are independent with the same mean for both inputs, and by Hoeffding (1956) tails of such a
    count are within those of the binomial. What one run leaves to the next (caches, garbage) is outside of
    that: the bound assumes that it does not depend on the input.

    Events are tails of every column and of sums and extremes of columns, single outcomes, and thresholds on
    a learned posterior: value counts, bins, and DP-Sniper's logistic regression.

    No violation proves nothing: another pair or event may show one, or more runs.

    References
    ----------
    Ding, Wang, Wang, Zhang, Kifer (2018), "Detecting violations of differential privacy"; Bichsel, Steffen,
    Bogunovic, Vechev (2021), "DP-Sniper"; Nasr, Hayes, Steinke, Balle, Tramèr, Jagielski, Carlini, Terzis
    (2023), "Tight auditing of differentially private machine learning", for mu; Hoeffding (1956), "On the
    distribution of the number of successes in independent trials".

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(1)
    >>> def count(data, size):
    ...     return len(data) + noise.laplace(0.0, 1.0, size)
    >>> found = audit(count, epsilon=0.5, pairs=[([1] * 5, [1] * 6)], trials=20_000)
    >>> found.violated, found.epsilon_lower > 0.85
    (True, True)
    """
    if epsilon != math.inf:
        epsilon = _check.non_negative("epsilon", epsilon)
    delta = _check.probability("delta", delta)
    trials = _check.integer("trials", trials, minimum=_MIN_TRIALS)
    risk = 1 - _check.unit_interval("confidence", confidence)
    resolution = _check.positive("resolution", resolution)
    ignored = _ignored(ignore)
    observers = as_observers(observe)
    run: PairRun
    if observers:
        run = ObservedRuns(single_call(mechanism, batch=batch, rng=rng), observers, ignored)
    else:
        run = in_turn(runner(mechanism, batch=batch, rng=rng, ignored=ignored))
    names = [observer.name for observer in observers]
    inputs = as_pairs(default_pairs(mechanism) if pairs is None else pairs)
    # Each finalist is tested for epsilon, one more for mu; each test takes two bounds.
    each = risk / (2 * (_FINALISTS + 1))
    chosen = [
        (pair, candidate)
        for pair in inputs
        for candidate in _choose(
            run, pair, trials, delta=delta, risk=each, encoder=OutcomeEncoder(resolution, ignored, names)
        )
    ]
    found = _verdict(run, chosen, trials, epsilon=epsilon, delta=delta, confidence=confidence, risk=each)
    kinds = dict.fromkeys(observer.observes for observer in observers)
    known = [kind for kind in OBSERVABLE if kind in kinds]
    observed = (*known, *(kind for kind in kinds if kind not in known))
    return replace(found, ignored=ignored, observed=observed)


def _ignored(ignore: object) -> tuple[str, ...]:
    """Return what is ignored, in one order."""
    listing = isinstance(ignore, Collection) and not isinstance(ignore, str)
    wanted = list(ignore) if isinstance(ignore, Collection) else []
    if not listing or any(each not in _IGNORABLE for each in wanted):
        listed = ", ".join(map(repr, _IGNORABLE))
        _check.refuse("ignore", f"hold some of {listed}", ignore, "write ignore=['type'], or leave it out")
    return tuple(each for each in _IGNORABLE if each in wanted)


def _choose(
    run: PairRun, pair: InputPair, trials: int, *, delta: float, risk: float, encoder: OutcomeEncoder
) -> list[CandidateEvent]:
    """Return the best events of one pair, of each kind."""
    learned, chosen = _shares(trials)
    learning = encoder.learn(*run(pair, learned))
    first, second = run(pair, chosen)
    choosing = (encoder(first), encoder(second))
    best: dict[tuple[str, str], CandidateEvent] = {}
    tested = trials - learned - chosen
    for candidate in candidate_events(encoder, learning, choosing, tested=tested, delta=delta, risk=risk):
        for kind, value in ((candidate.event.family, candidate.epsilon), ("mu", candidate.mu)):
            key = (kind, candidate.event.score.name if kind != "mu" else "")
            rival = best.get(key)
            if rival is None or value > (rival.mu if kind == "mu" else rival.epsilon):
                best[key] = candidate
    encoder.forget()
    return list({id(candidate): candidate for candidate in best.values()}.values())


def _shares(trials: int) -> tuple[int, int]:
    """Return how many runs learn scores, and how many choose their thresholds; the rest test."""
    return min(trials // 4, _MAX_LEARNED), min(trials // 4, _MAX_CHOSEN)


def _verdict(
    run: PairRun,
    chosen: list[tuple[InputPair, CandidateEvent]],
    trials: int,
    *,
    epsilon: float,
    delta: float,
    confidence: float,
    risk: float,
) -> Audit:
    """Count the finalists in fresh runs, and return the best bounds."""
    finalists = sorted(chosen, key=lambda entry: -entry[1].epsilon)[:_FINALISTS]
    finalists.append(max(chosen, key=lambda entry: entry[1].mu))
    tested = trials - sum(_shares(trials))
    counts: list[tuple[int, int]] = [(0, 0)] * len(finalists)
    for pair in {id(pair): pair for pair, _ in finalists}.values():
        mine = [k for k, (other, _) in enumerate(finalists) if other is pair]
        events = [finalists[k][1].event for k in mine]
        first, second = _count(run, pair, events, tested)
        for k, hits in zip(mine, zip(first, second, strict=True), strict=True):
            counts[k] = (hits[1], hits[0]) if finalists[k][1].swapped else hits
    bounds = [
        (
            float(lower_confidence_bound(likely, tested, risk)),
            float(upper_confidence_bound(rare, tested, risk)),
        )
        for likely, rare in counts
    ]
    proved = [certified_epsilon(minimum, maximum, delta) for minimum, maximum in bounds[:_FINALISTS]]
    best = max(range(len(proved)), key=lambda k: (proved[k], -k))
    mu = certified_mu(*bounds[-1])
    pair, candidate = finalists[best]
    if candidate.swapped:
        pair = InputPair(first=pair.second, second=pair.first, name=pair.name and f"{pair.name}, swapped")
    return Audit(
        epsilon_lower=proved[best],
        epsilon=epsilon,
        delta=delta,
        violated=proved[best] > epsilon,
        event=candidate.event,
        pair=pair,
        hits=counts[best],
        tested=tested,
        confidence=confidence,
        mu_lower=mu,
        epsilon_if_gaussian=float(gdp_epsilon(mu, delta)) if delta else None,
        trials=trials,
    )


def _count(run: PairRun, pair: InputPair, events: list[Event], tested: int) -> tuple[list[int], list[int]]:
    hits = ([0] * len(events), [0] * len(events))
    for start in range(0, tested, _CHUNK):
        for mine, raw in zip(hits, run(pair, min(_CHUNK, tested - start)), strict=True):
            # Events of one pair share its encoder, and may share their score.
            outcomes = events[0].encoder(raw)
            scores = {id(event.score): event.score for event in events}
            values = {key: score(outcomes) for key, score in scores.items()}
            for k, event in enumerate(events):
                mine[k] += int(event.within(values[id(event.score)]).sum())
    return hits


def json_report(found: Audit, floating_point: PrecisionAudit | None = None) -> str:
    """Return what an audit found as one JSON text.

    Parameters
    ----------
    found : Audit
    floating_point : PrecisionAudit, optional
        What a search for impossible floats found in the same mechanism.

    Returns
    -------
    str
        Infinite numbers are written as ``"inf"``; what does not apply is null. The event and the pair of
        inputs are texts for people, not to be parsed. ``ignored`` and ``observed`` are there if anything is.
    """
    document = {
        "epsilon": NUMBER.encode(found.epsilon),
        "delta": NUMBER.encode(found.delta),
        "violated": found.violated,
        "epsilon_lower": NUMBER.encode(found.epsilon_lower),
        "mu_lower": NUMBER.encode(found.mu_lower),
        "epsilon_if_gaussian": optional(NUMBER).encode(found.epsilon_if_gaussian),
        "confidence": NUMBER.encode(found.confidence),
        "event": str(found.event),
        "pair": str(found.pair),
        "hits": list(found.hits),
        "tested": found.tested,
        "trials": found.trials,
        "floating_point": None if floating_point is None else _floating_point(floating_point),
    }
    if found.ignored:
        document["ignored"] = list(found.ignored)
    if found.observed:
        document["observed"] = list(found.observed)
    return canonical(FORMAT.wrap(document))


def _floating_point(found: PrecisionAudit) -> dict[str, object]:
    return {
        "violated": found.violated,
        "epsilon_lower": NUMBER.encode(found.epsilon_lower),
        "impossible": found.impossible,
        "pair": str(found.pair),
        "tested": found.tested,
    }
