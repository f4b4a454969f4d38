"""What the tests of samplers share: whole laws of small runs, and one test against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction

import numpy as np
from scipy.special import gammaincc

from sfumato.learning.sampling.sampler import Sampler

FALSE_ALARM = 1e-9


def assert_law(counts: Mapping[Hashable, int], law: Mapping[Hashable, Fraction | float]) -> None:
    """Refuse counts that Pearson's test tells from a law, at a false-alarm rate of 1e-9.

    Outcomes of less than 8 expected counts are taken together, as chi-square is off for them.
    """
    assert set(counts) <= {outcome for outcome, chance in law.items() if chance > 0}
    assert abs(sum(map(float, law.values())) - 1) < 1e-9
    total = sum(counts.values())
    expected = np.array([float(chance) * total for chance in law.values()])
    seen = np.array([counts.get(outcome, 0) for outcome in law], float)
    rare = expected < 8
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        seen = np.append(seen[~rare], seen[rare].sum())
    keep = expected > 0
    if keep.sum() == 1:
        return
    squares = float((np.square(seen - expected)[keep] / expected[keep]).sum())
    assert gammaincc((keep.sum() - 1) / 2, squares / 2) > FALSE_ALARM


def schedule(sampler: Sampler) -> tuple[tuple[int, ...], ...]:
    """Return all batches of a run."""
    return tuple(tuple(sorted(batch.tolist())) for batch in sampler.batches())


def seen(make: Callable[[int], Sampler], runs: int) -> Counter[Hashable]:
    """Return how often each schedule came, over runs with seeds 0, 1, ..."""
    return Counter(schedule(make(seed)) for seed in range(runs))


def enumerated(choices: int, outcome: Callable[[int], Hashable]) -> dict[Hashable, Fraction]:
    """Return the law of an outcome of equally likely choices."""
    law: dict[Hashable, Fraction] = {}
    for choice in range(choices):
        law[outcome(choice)] = law.get(outcome(choice), Fraction(0)) + Fraction(1, choices)
    return law
