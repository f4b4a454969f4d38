"""Black-box auditing: a certified lower bound on the epsilon of anything that can be run."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

from sfumato import _check
from sfumato._display import html_facts
from sfumato._progress import Progress, shown_progress
from sfumato._wire import NUMBER, Format, canonical, optional
from sfumato.audit.event_search import EventSearch
from sfumato.audit.events import Event
from sfumato.audit.flattening import MESSAGE, ORDER, TYPE, ZERO_SIGN, Outputs
from sfumato.audit.floating_point import PrecisionAudit
from sfumato.audit.input_pairs import InputPair, as_pairs
from sfumato.audit.likelihood_ratios import LogLikelihoodRatio, known_log_likelihood_ratio
from sfumato.audit.outcome_encoding import OutcomeEncoder
from sfumato.audit.repeated_runs import PairRun, in_turn, runner, single_call
from sfumato.audit.side_channels.observed_runs import ObservedRuns
from sfumato.audit.side_channels.observers import OBSERVABLE, Observer, as_observers
from sfumato.audit.verdict import verdict_facts
from sfumato.audit.worst_case_pairs import default_pairs
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.numerics.randomness.source import Rng
from sfumato.privacy._outward import text_below
from sfumato.privacy.conversion import gdp_epsilon

__all__ = ["FORMAT", "Audit", "audit", "json_report"]

_MIN_TRIALS = 200
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

    def _repr_html_(self) -> str:
        facts = verdict_facts(self) | {
            "event": str(self.event),
            "inputs": str(self.pair),
            "seen": f"{self.hits[0]} and {self.hits[1]} times, in {self.tested} runs on each",
        }
        named = {fact: ", ".join(names) for fact, names in self._looked_at.items() if names}
        return html_facts("Audit", facts | named)

    @property
    def _looked_at(self) -> dict[str, Sequence[str]]:
        unobserved = [each for each in OBSERVABLE if each not in self.observed]
        return {"not looked at": self.ignored, "observed": self.observed, "not observed": unobserved}

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted"
        seen = "".join(f"; {fact}: {', '.join(names)}" for fact, names in self._looked_at.items() if names)
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
    log_likelihood_ratio: LogLikelihoodRatio | None = None,
    rng: Rng = None,
    progress: Progress | bool | None = None,
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
        Runs on each input of each pair that is run in full, at least 200.
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
    log_likelihood_ratio : callable, optional
        ``f(outputs, first, second)``, where the noise is of a known family: the log of how much likelier each
        output is on the first input, as a score beside the learned ones. Outputs come as an array, of shape
        (n,) or (n, entries), where they are numbers. Known of our own additive mechanisms; a wrong one makes
        an audit see less, not err.
    rng : None, int, numpy Generator or RandomSource
        Where a mechanism of ours draws from; a callable has its own randomness.
    progress : callable or bool, optional
        Called with how many runs on each input are done, and how many there are at most. By default a bar is
        shown on a terminal and in a notebook, unless something is observed, which a bar might disturb; True
        shows it anywhere, False nowhere.

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
    choose a few events over all pairs, directions and kinds, and how each will be counted; the others only
    count them. Given the choice, counts are binomial, and all bounds hold together with probability
    ``confidence``, by a union bound. Either Clopper and Pearson's bounds on the two inputs' probabilities
    give epsilon at least ``log((p_lower - delta) / q_upper)``; or, for rare events, those pairs of runs of
    which just one is in the event bound the odds ratio by one binomial count
    (`sfumato.audit.lower_bounds.certified_paired_epsilon`). Both are rounded down. Likewise for mu-GDP, whose
    trade-off curve gives mu at least ``Phi^-1(p) - Phi^-1(q)`` for every event (Dong, Roth, Su 2022).

    Time and memory depend on the machine, and on what ran before. In each two runs a coin decides which
    input comes first; so a machine that drifts, whatever either input does, refutes no mechanism: given the
    drift, hits are independent with the same mean for both inputs, and by Hoeffding (1956) tails of such a
    count are within those of the binomial. What one run leaves to the next (caches, garbage) is outside of
    that: the bound assumes that it does not depend on the input.

    Events are tails of every column and of sums and extremes of columns, single outcomes, and thresholds on
    a learned posterior: value counts, bins, their log-odds added over columns, and DP-Sniper's logistic
    regression; where the family is known, on the likelihood ratio itself. Of more than three pairs, all are
    tried with an eighth of the runs, and the three that promise most are run in full.

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
    ratio = log_likelihood_ratio or (None if observers else known_log_likelihood_ratio(mechanism))
    run: PairRun
    if not observers:
        run = in_turn(runner(mechanism, batch=batch, rng=rng, ignored=ignored))
    elif ratio is None:
        run = ObservedRuns(single_call(mechanism, batch=batch, rng=rng), observers, ignored)
    else:
        remedy = "the ratio of an output says nothing of what is observed beside it"
        _check.refuse_state("log_likelihood_ratio", "be left out where observe is given", "both were", remedy)
    search = EventSearch(
        run=run,
        trials=trials,
        delta=delta,
        risk=risk,
        encoder=OutcomeEncoder(resolution, ignored, [observer.name for observer in observers]),
        ratio=ratio,
        pairing=not observers,
    )
    inputs = as_pairs(default_pairs(mechanism) if pairs is None else pairs)
    shown = False if progress is None and observers else progress
    with shown_progress(shown, "auditing, runs") as show:
        found = replace(search, run=_counted(run, show, search.planned(len(inputs)))).best(inputs)
    kinds = dict.fromkeys(observer.observes for observer in observers)
    known = [kind for kind in OBSERVABLE if kind in kinds]
    return Audit(
        epsilon_lower=found.epsilon,
        epsilon=epsilon,
        delta=delta,
        violated=found.epsilon > epsilon,
        event=found.event,
        pair=found.pair,
        hits=found.hits,
        tested=found.tested,
        confidence=confidence,
        mu_lower=found.mu,
        epsilon_if_gaussian=float(gdp_epsilon(found.mu, delta)) if delta else None,
        trials=trials,
        ignored=ignored,
        observed=(*known, *(kind for kind in kinds if kind not in known)),
    )


def _ignored(ignore: object) -> tuple[str, ...]:
    """Return what is ignored, in one order."""
    listing = isinstance(ignore, Collection) and not isinstance(ignore, str)
    wanted = list(ignore) if isinstance(ignore, Collection) else []
    if not listing or any(each not in _IGNORABLE for each in wanted):
        listed = ", ".join(map(repr, _IGNORABLE))
        _check.refuse("ignore", f"hold some of {listed}", ignore, "write ignore=['type'], or leave it out")
    return tuple(each for each in _IGNORABLE if each in wanted)


def _counted(run: PairRun, show: Progress, planned: int) -> PairRun:
    """Return what runs pairs and reports how many runs on each input are done."""
    done = 0

    def counting(pair: InputPair, size: int) -> tuple[Outputs, Outputs]:
        nonlocal done
        outputs = run(pair, size)
        done += size
        show(done, planned)
        return outputs

    return counting


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
