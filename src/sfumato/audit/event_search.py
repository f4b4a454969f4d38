"""The search for the event that proves most: some runs choose pairs and events, others only count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from sfumato.audit.events import CandidateEvent, Event, candidate_events
from sfumato.audit.input_pairs import InputPair
from sfumato.audit.likelihood_ratios import LogLikelihoodRatio, of_pair
from sfumato.audit.lower_bounds import certified_epsilon, certified_mu, certified_paired_epsilon
from sfumato.audit.outcome_encoding import OutcomeEncoder
from sfumato.audit.repeated_runs import PairRun
from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound

__all__ = ["EventSearch", "Found"]

_SHARES: Final = (
    0.5,
    0.15,
    0.1,
    0.05,
    0.05,
    0.05,
)  # of the risk, for the finalists in the order of their promise
_SHARE_OF_MU: Final = 0.1
_FULL_PAIRS: Final = 3
_SCREENING: Final = 8  # a part of so many of the runs tries a pair
_FEWEST: Final = 200
_CHUNK: Final = 1 << 18
_MOST: Final = 1 << 17


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the best event proves.

    Parameters
    ----------
    epsilon, mu : float
    event : Event
    pair : InputPair
        In the order in which the event tells them apart.
    hits : tuple of two ints
    tested : int
    """

    epsilon: float
    mu: float
    event: Event
    pair: InputPair
    hits: tuple[int, int]
    tested: int


@final
@dataclass(frozen=True, slots=True)
class _Counts:
    """How often an event was seen on the likely and the rare input, and on both runs of a pair."""

    likely: int
    rare: int
    both: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EventSearch:
    """Runs pairs of inputs, chooses events, and counts them in other runs.

    Parameters
    ----------
    run : callable
        Two inputs and a number of runs, to that many outputs of each.
    trials : int
        Runs on each input of each pair that is run in full.
    delta, risk : float
        Risk of all bounds together.
    encoder : OutcomeEncoder
        One that has learned nothing yet.
    ratio : callable, optional
        Log-likelihood ratio of outputs.
    pairing : bool
        Whether the k-th runs of two inputs may be counted as a pair: whether all runs are independent.
    """

    run: PairRun
    trials: int
    delta: float
    risk: float
    encoder: OutcomeEncoder
    ratio: LogLikelihoodRatio | None = None
    pairing: bool = False

    def best(self, pairs: Sequence[InputPair]) -> Found:
        """Return what the best event of all pairs proves."""
        chosen = [
            (pair, candidate)
            for pair in self._screened(pairs)
            for candidate in self._choose(pair, *_shares(self.trials))
        ]
        finalists = sorted(chosen, key=lambda entry: -entry[1].epsilon)[: len(_SHARES)]
        finalists.append(max(chosen, key=lambda entry: entry[1].mu))
        counts = self._counts(finalists)
        proved = [
            self._proved(candidate, seen, share * self.risk)
            for (_, candidate), seen, share in zip(finalists, counts, _SHARES, strict=False)
        ]
        if len(finalists) <= len(_SHARES):
            proved = proved[: len(finalists) - 1]
        best = max(range(len(proved)), key=lambda k: (proved[k], -k))
        pair, candidate = finalists[best]
        if candidate.swapped:
            pair = InputPair(first=pair.second, second=pair.first, name=pair.name and f"{pair.name}, swapped")
        return Found(
            epsilon=proved[best],
            mu=certified_mu(*self._separate(counts[-1], _SHARE_OF_MU * self.risk)),
            event=candidate.event,
            pair=pair,
            hits=(counts[best].likely, counts[best].rare),
            tested=self._tested,
        )

    @property
    def _tested(self) -> int:
        return self.trials - sum(_shares(self.trials))

    def planned(self, pairs: int) -> int:
        """Return how many runs on each input there are at most, for so many pairs: a public number.

        Parameters
        ----------
        pairs : int
        """
        few = max(_FEWEST, self.trials // _SCREENING)
        screened = 0 if pairs <= _FULL_PAIRS or few >= self.trials else pairs * few
        return screened + (min(pairs, _FULL_PAIRS) if screened else pairs) * self.trials

    def _screened(self, pairs: Sequence[InputPair]) -> Sequence[InputPair]:
        """Return the pairs that promise most after a part of the runs, where there are many."""
        few = max(_FEWEST, self.trials // _SCREENING)
        if len(pairs) <= _FULL_PAIRS or few >= self.trials:
            return pairs
        promise = [
            max(each.epsilon for each in self._choose(pair, few // 4, few - few // 4)) for pair in pairs
        ]
        best = sorted(range(len(pairs)), key=lambda k: -promise[k])[:_FULL_PAIRS]
        return [pairs[k] for k in sorted(best)]

    def _choose(self, pair: InputPair, learned: int, chosen: int) -> list[CandidateEvent]:
        """Return the best events of one pair, of each kind, after so many runs that learn and that choose."""
        ratio = None if self.ratio is None else of_pair(self.ratio, pair)
        encoder = replace(self.encoder, ratio=ratio, labels={})
        learning = encoder.learn(*self.run(pair, learned))
        first, second = self.run(pair, chosen)
        best: dict[tuple[str, str], CandidateEvent] = {}
        for candidate in candidate_events(
            encoder,
            learning,
            (encoder(first), encoder(second)),
            tested=self._tested,
            delta=self.delta,
            risk=_SHARES[0] * self.risk,
            pairing=self.pairing,
        ):
            for kind, value in ((candidate.event.family, candidate.epsilon), ("mu", candidate.mu)):
                key = (kind, candidate.event.score.name if kind != "mu" else "")
                rival = best.get(key)
                if rival is None or value > (rival.mu if kind == "mu" else rival.epsilon):
                    best[key] = candidate
        encoder.forget()
        return list({id(candidate): candidate for candidate in best.values()}.values())

    def _counts(self, finalists: list[tuple[InputPair, CandidateEvent]]) -> list[_Counts]:
        """Count the finalists in fresh runs."""
        counts = [_Counts(0, 0, 0)] * len(finalists)
        for pair in {id(pair): pair for pair, _ in finalists}.values():
            mine = [k for k, (other, _) in enumerate(finalists) if other is pair]
            seen = _count(self.run, pair, [finalists[k][1].event for k in mine], self._tested)
            for k, (first, second, both) in zip(mine, seen, strict=True):
                swapped = finalists[k][1].swapped
                counts[k] = _Counts(second, first, both) if swapped else _Counts(first, second, both)
        return counts

    def _proved(self, candidate: CandidateEvent, seen: _Counts, risk: float) -> float:
        if candidate.paired:
            return certified_paired_epsilon(
                seen.likely, seen.rare, seen.both, trials=self._tested, delta=self.delta, risk=risk
            )
        return certified_epsilon(*self._separate(seen, risk), self.delta)

    def _separate(self, seen: _Counts, risk: float) -> tuple[float, float]:
        """Return a lower bound on one probability and an upper one on the other, each at half of a risk."""
        return (
            float(lower_confidence_bound(seen.likely, self._tested, risk / 2)),
            float(upper_confidence_bound(seen.rare, self._tested, risk / 2)),
        )


def _shares(trials: int) -> tuple[int, int]:
    """Return how many runs learn scores, and how many choose their thresholds; the rest test."""
    return min(trials // 4, _MOST), min(max(trials // 8, min(trials // 4, 2000)), _MOST)


def _count(run: PairRun, pair: InputPair, events: list[Event], tested: int) -> list[tuple[int, int, int]]:
    """Return how often each event is seen on the first input, on the second, and on both at once."""
    hits = [[0, 0, 0] for _ in events]
    # Events of one pair may share their score.
    scores = {id(event.score): event.score for event in events}
    for start in range(0, tested, _CHUNK):
        values = []
        for outputs in run(pair, min(_CHUNK, tested - start)):
            outcomes = {id(event.encoder): event.encoder for event in events}
            encoded = {key: encoder(outputs) for key, encoder in outcomes.items()}
            values.append(
                {id(event.score): scores[id(event.score)](encoded[id(event.encoder)]) for event in events}
            )
        for seen, event in zip(hits, events, strict=True):
            first, second = (event.within(mine[id(event.score)]) for mine in values)
            for k, those in enumerate((first, second, first & second)):
                seen[k] += int(those.sum())
    return [(first, second, both) for first, second, both in hits]
