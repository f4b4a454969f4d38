"""The bound on reconstructed persons: exact on small blocks, where one on guesses fails."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from sfumato.attacks import CensusReconstruction, PersonTypes, PublishedCounts
from sfumato.attacks.base.loss_bounds import success_bound
from sfumato.attacks.census.person_bounds import share_bound
from sfumato.privacy import ApproximateDP, Gaussian, Neighboring, PureDP
from tests.cases import cases

REPLACE = Neighboring.REPLACE_ONE


def matches(guesses: tuple[int, ...], people: tuple[int, ...]) -> int:
    return (Counter(guesses) & Counter(people)).total()


@cases("epsilon", [0.3, 1.0, 3.0])
@cases("weights", [(1, 1, 1), (8, 1, 1)])
def test_randomized_responses_of_a_block_stay_below_the_bound(
    epsilon: float, weights: tuple[int, ...]
) -> None:
    """All blocks, controls and answers of three people of three types, drawn alike."""
    shares, types, size = np.array(weights) / sum(weights), range(3), 3
    stays = math.exp(epsilon) / (math.exp(epsilon) + 2)
    answer = np.where(np.eye(3, dtype=bool), stays, (1 - stays) / 2)
    found = others = 0.0
    blocks = list(itertools.product(types, repeat=size))
    chances = {block: float(np.prod([shares[one] for one in block])) for block in blocks}
    for guesses in blocks:
        for block in blocks:
            chance = chances[block] * math.prod(answer[a][b] for a, b in zip(block, guesses, strict=True))
            found += chance * matches(guesses, block) / size
            others += chance * sum(chances[one] * matches(guesses, one) for one in blocks) / size
    loss = PureDP(epsilon, neighboring=REPLACE)
    assert others < found <= share_bound(loss, others)


def test_one_guess_may_be_any_of_many_persons() -> None:
    """One of n persons is named with the chance n delta, else one of N types: (0, delta)-DP."""
    n, types, delta = 20, 1000, 0.01
    loss = ApproximateDP(0.0, delta, neighboring=REPLACE)
    named, by_chance = n * delta, n / types
    right = named + (1 - named) * by_chance
    assert right > 7 * success_bound(loss, by_chance)  # of guesses
    assert right / n <= share_bound(loss, by_chance / n)  # of persons
    assert right / n > 0.97 * share_bound(loss, by_chance / n)


def test_the_share_bound_rises_and_ends_at_the_greatest_advantage() -> None:
    for loss in (PureDP(1.0, neighboring=REPLACE), Gaussian(1.0, neighboring=REPLACE), PureDP(0.0)):
        rates = np.linspace(0, 1, 9)
        bounds = [share_bound(loss, rate) for rate in rates.tolist()]
        assert all(after >= before - 1e-3 for before, after in itertools.pairwise(bounds))
        exact = [success_bound(loss, rate) for rate in rates.tolist()]
        assert all(bound >= one - 1e-3 for bound, one in zip(bounds, exact, strict=True))
    assert share_bound(PureDP(1.0, neighboring=REPLACE), 0.25) == pytest.approx(math.e / 4, abs=1e-9)
    assert share_bound(PureDP(1.0, neighboring=REPLACE), 0.4) == pytest.approx(0.4 + 0.4621172, abs=1e-6)


def test_persons_are_bounded_and_only_beside_as_many_controls() -> None:
    types = PersonTypes({"sex": ("F", "M")})
    tables = [PublishedCounts(name="sex", by=("sex",), counts=[1, 0])]
    persons, attack = [("F",), ("M",), ("M",), ("M",)], CensusReconstruction(types=types)
    options: dict[str, Any] = {"truth": persons, "exchangeable": True, "loss": PureDP(0.0)}
    found = attack.run(tables, controls=[("M",)] * 4, **options)
    # The one guess is right, and finds one person of four: nothing that a loss of zero excludes.
    assert found.targets.hits == 1
    assert [bound.name for bound in found.bounds] == ["persons found", "persons found above controls"]
    assert not any(bound.exceeded for bound in found.bounds)
    assert found.bounds[0].seen.lower < 1 / 4 < found.bounds[0].seen.upper
    for controls in ([("M",)] * 3, None):
        alone = attack.run(tables, controls=controls, **options)
        assert alone.bounds == ()
        assert "as many controls" in str(alone)
    options["exchangeable"] = False
    assert attack.run(tables, controls=[("M",)] * 4, **options).bounds == ()
