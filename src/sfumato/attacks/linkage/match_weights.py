"""How much each agreement says: m and u probabilities, fitted by expectation maximisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.linkage.candidate_pairs import CandidatePairs
from sfumato.attacks.linkage.comparison_levels import ComparisonLevels

__all__ = ["MatchWeights", "fit_match_weights"]

Floats = NDArray[np.float64]
_USUAL_AGREEMENT = 0.9
_STEPS = 500


@dataclass(frozen=True, slots=True, eq=False)
class MatchWeights:
    """Probabilities of each level of each column.

    Parameters
    ----------
    m, u : dict of str to float64 arrays of shape (levels,)
        For pairs of one person, and of two.
    matches : float
        How many pairs of one person are expected.
    prior : float
        That a pair of any person and any row is of one person.
    """

    m: dict[str, Floats]
    u: dict[str, Floats]
    matches: float
    prior: float

    def posterior(self, pairs: CandidatePairs) -> Floats:
        """Return the probability that a pair is of one person, for each pattern."""
        levels = pairs.levels()
        weight = np.full(levels.shape[1], np.log(self.prior) - np.log1p(-self.prior))
        for place, name in enumerate(self.m):
            ratio = np.append(np.log(self.m[name]) - np.log(self.u[name]), 0.0)
            weight += ratio[levels[place]]
        return np.asarray(1 / (1 + np.exp(-np.clip(weight, -700, 700))))


def fit_match_weights(
    pairs: CandidatePairs, comparisons: Mapping[str, ComparisonLevels], blocking: Sequence[Sequence[str]]
) -> MatchWeights:
    """Fit the weights to the patterns that pairs have.

    Parameters
    ----------
    pairs : CandidatePairs
    comparisons : mapping of str to ComparisonLevels
    blocking : sequence of sequences of str

    Returns
    -------
    MatchWeights
        A column's m is the mean of its fits in the rules that it is not in; where it is in all of them, a
        usual value.
    """
    names, levels = list(comparisons), pairs.levels()
    u = {
        name: _frequencies(levels[place], pairs.random.astype(np.float64), comparisons[name].count)
        for place, name in enumerate(names)
    }
    counts = np.bincount(pairs.pattern, minlength=levels.shape[1]).astype(np.float64)
    fits: dict[str, list[Floats]] = {name: [] for name in names}
    expected: list[tuple[Sequence[str], float]] = []
    for rule in blocking:
        inside = np.logical_and.reduce([levels[names.index(name)] == 0 for name in rule])
        outside = {name: u[name] for name in names if name not in rule}
        if not outside or not counts[inside].sum():
            continue
        places = [names.index(name) for name in outside]
        fitted, share = _expectation_maximisation(
            levels[places][:, inside], counts[inside], list(outside.values())
        )
        for name, found in zip(outside, fitted, strict=True):
            fits[name].append(found)
        expected.append((rule, share * float(counts[inside].sum())))
    m = {
        name: np.mean(found, axis=0) if found else _usual(comparisons[name].count)
        for name, found in fits.items()
    }
    matches = max(
        [found / float(np.prod([m[name][0] for name in rule])) for rule, found in expected], default=1.0
    )
    matches = float(np.clip(matches, 1.0, min(pairs.people, pairs.rows)))
    prior = min(matches / (pairs.people * pairs.rows), 0.5)
    return MatchWeights(m, u, matches, prior)


def _usual(count: int) -> Floats:
    rest = (1 - _USUAL_AGREEMENT) / (count - 1)
    return np.array([_USUAL_AGREEMENT, *[rest] * (count - 1)])


def _frequencies(levels: NDArray[np.int64], counts: Floats, size: int) -> Floats:
    """Return how often each level is seen, NULL aside, none of them never."""
    seen = np.bincount(levels, weights=counts, minlength=size + 1)[:size] + 0.5
    return np.asarray(seen / seen.sum())


def _expectation_maximisation(
    levels: NDArray[np.int64], counts: Floats, u: list[Floats]
) -> tuple[list[Floats], float]:
    """Return m for each column, and the share of pairs that are of one person, with u held fixed."""
    present = counts > 0
    levels, counts = levels[:, present], counts[present]
    m, share, total = [_usual(len(one)) for one in u], 0.5, counts.sum()
    different = _likelihood(levels, u)
    for _ in range(_STEPS):
        same = share * _likelihood(levels, m)
        responsible = same / (same + (1 - share) * different)
        before, share = share, float(np.clip((responsible * counts).sum() / total, 1e-12, 1 - 1e-12))
        m = [
            _frequencies(level, responsible * counts, len(one)) for level, one in zip(levels, u, strict=True)
        ]
        if abs(share - before) <= 1e-10 * share:
            break
    return m, share


def _likelihood(levels: NDArray[np.int64], probabilities: list[Floats]) -> Floats:
    found = np.ones(levels.shape[1])
    for level, one in zip(levels, probabilities, strict=True):
        found *= np.append(one, 1.0)[level]
    return found
