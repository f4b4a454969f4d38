"""Every answer's exact cost, over all pairs of neighbors, against the charge; planted faults are seen."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from sfumato.mechanisms.selection.exponential import Exponential
from sfumato.numerics.randomness.source import random_source
from sfumato.privacy import Neighboring
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.synthetic import AIM, MST, IndependentMarginals, Marginals, PublicPrior
from sfumato.synthetic.generators.private_table import Candidate, PrivateTable
from sfumato.synthetic.generators.table_shift import TableShift
from sfumato.synthetic.marginals.table_counts import table_counts
from tests.cases import cases
from tests.synthetic.generators.transcripts import DOMAIN, ROWS, Transcript, as_table, neighbors

GENERATORS: dict[str, Any] = {
    "aim": partial(AIM, workload=Marginals([("a", "b", "c"), ("a", "c")], weights=[1.0, 0.25]), max_cells=12),
    "aim-prior": partial(AIM, prior=PublicPrior(DOMAIN, {(0, 1): np.arange(6.0).reshape(2, 3) / 4})),
    "independent": IndependentMarginals,
    "mst": MST,
}


def worst(generator: Any, monkeypatch: Any, seeds: int = 2) -> tuple[float, float, float]:
    """The largest excess of an answer over its charge, the largest sum of costs, and that of charges."""
    excess, exact, charged = -np.inf, 0.0, 0.0
    for seed in range(seeds):
        with monkeypatch.context() as patch:
            transcript = Transcript(patch)
            generator.release(as_table(ROWS), rng=seed)
        for rows in neighbors(generator.neighboring):
            costs = transcript.costs(rows, generator.neighboring)
            excess = max(excess, *(cost / paid - 1 for cost, paid in costs))
            exact = max(exact, sum(cost for cost, _ in costs))
            charged = max(charged, sum(paid for _, paid in costs))
    return excess, exact, charged


@pytest.mark.sharpest("add-remove-aim", "replace-one-aim", "add-remove-mst")
@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("relation", [Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE], ids=lambda r: r.value)
def test_no_answer_costs_more_than_it_was_charged_for_any_neighbor(
    name: str, relation: Neighboring, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = GENERATORS[name](domain=DOMAIN, rho=30, neighboring=relation)
    excess, exact, charged = worst(generator, monkeypatch)
    assert excess <= 1e-12
    assert charged <= 30
    assert generator.privacy_loss.zcdp().rho >= charged * (1 - 1e-12)
    assert exact >= 0.6 * charged  # no budget is left lying about


@cases("name", ["aim", "independent"])
def test_a_person_of_two_rows_is_paid_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of rows that come or leave together, in the same cell or in two."""
    for paid, fits in ((2, True), (1, False)):
        generator = GENERATORS[name](domain=DOMAIN, rho=30, max_rows_contributed=paid)
        with monkeypatch.context() as patch:
            transcript = Transcript(patch)
            generator.release(as_table(ROWS), rng=4)
        cells = list(product(range(2), range(3), range(2)))
        more = [[*ROWS, *pair] for pair in combinations_with_replacement(cells[::5], 2)]
        costs = [cost / most for rows in (*more, ROWS[2:]) for cost, most in transcript.costs(rows)]
        assert (max(costs) <= 1 + 1e-12) is fits
        assert max(costs) >= 0.99


def _quieter(leaf: Any, sigma: Fraction, *given: Any, **named: Any) -> Any:
    """The loss of twice the noise that is drawn."""
    return leaf(sigma * 2, *given, **named)


@cases("name", ["aim", "mst"])
@cases("fault", ["a weight of 2", "a sigma too small", "two rows that move as one"])
def test_planted_faults_are_seen(name: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    relation = Neighboring.REPLACE_ONE if fault.startswith("two") else Neighboring.ADD_REMOVE
    generator = GENERATORS[name](domain=DOMAIN, rho=30, neighboring=relation)
    with monkeypatch.context() as patch:
        if fault == "a weight of 2":
            score = PrivateTable.score
            patch.setattr(PrivateTable, "score", lambda table, each: 2 * score(table, each))
        elif fault == "a sigma too small":
            claimed = partial(_quieter, DiscreteGaussianVector)
            patch.setattr("sfumato.synthetic.generators.private_table.DiscreteGaussianVector", claimed)
        else:
            patch.setattr(TableShift, "_cells", 1)
        excess, _, _ = worst(generator, patch, 1)
    assert excess > 0.5


def test_only_released_answers_decide_on_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers of one table, given in the name of another: the same questions, iterations and output."""
    for name in ("aim", "mst"):
        generator = GENERATORS[name](domain=DOMAIN, rho=2)
        with monkeypatch.context() as patch:
            transcript = Transcript(patch)
            first = generator.release(as_table(ROWS), rng=6).to_json()
        answers = iter(transcript.drawn)

        def replayed(_: PrivateTable, *given: Any) -> Any:
            step = next(answers)  # noqa: B023 - used within the turn of the loop
            assert given[-1] == step["parameter"]
            return step["answer"]

        def charge(table: PrivateTable, *given: Any) -> Any:
            answer = replayed(table, *given)
            table.left = transcript.drawn[len(spent)]["left"]  # noqa: B023
            spent.append(answer)  # noqa: B023
            return answer

        spent: list[Any] = []
        with monkeypatch.context() as patch:
            patch.setattr(PrivateTable, "measure", charge)
            patch.setattr(PrivateTable, "choose", charge)
            other = generator.release(as_table([(1, 1, 1)] * 500), rng=9).to_json()
        assert other == first
        assert len(spent) == len(transcript.drawn) > 5


def table_of(rows: Any, budget: Fraction, seed: int = 1) -> PrivateTable:
    counts = table_counts(DOMAIN, as_table(rows))
    return PrivateTable(counts, DOMAIN.sizes, budget, TableShift(Neighboring.ADD_REMOVE), random_source(seed))


def test_an_answer_beyond_the_budget_is_never_given() -> None:
    table = table_of(ROWS, Fraction(1, 10))
    sigma = TableShift(Neighboring.ADD_REMOVE).noise(Fraction(1, 20))
    table.measure((0,), sigma)
    table.measure((1,), sigma)
    assert 0 <= table.left < Fraction(1, 10**6)
    nothing = [Candidate((), np.empty(0), 0)]
    for ask in (lambda: table.measure((0,), sigma), lambda: table.choose(nothing, Fraction(1, 20))):
        with pytest.raises(RuntimeError, match="more than its budget"):
            ask()
    assert len(table.charged) == 2


def test_scores_are_exact_whatever_the_prediction_is() -> None:
    table = table_of(ROWS, Fraction(1))
    exact = np.array([4, 2])
    assert table.score(Candidate((0,), exact.astype(float), 0.0)) == 0
    assert table.score(Candidate((0,), exact + 0.5, 0.25, 3)) == 3 * (256 - 64)
    assert table.score(Candidate((), np.empty(0), 9.0)) == 0
    beyond = table.score(Candidate((0,), np.array([1e300, np.inf]), 1e300, 7))
    assert abs(beyond) < 1 << 61
    assert table.score(Candidate((0,), np.array([-5.0, -1.0]), 0.0)) == 6 * 256
    assert table.score(Candidate((0,), np.array([np.nan, 1.0]), 0.0)) == 5 * 256


def test_a_choice_of_any_cost_is_drawn_and_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With little budget scores are in coarser steps: a row moves them by no more than is charged."""
    seen: list[tuple[int, Any]] = []
    release = Exponential.release

    def spy(self: Exponential, value: Any, rng: Any = None) -> Any:
        seen.append((int(self.sensitivity), value))
        return release(self, value, rng)

    monkeypatch.setattr(Exponential, "release", spy)
    candidates = [Candidate((0,), np.array([2.0, 9.0]), 0.25, 255), Candidate((), np.empty(0), 0.0)]
    for rho in (Fraction(1), Fraction(1, 1 << 62), Fraction(1, 1 << 78)):
        for rows in (ROWS, [*ROWS, ROWS[0]], ROWS[1:]):
            table = table_of(rows, rho)
            table.choose(candidates, rho)
            assert 0 <= table.left <= rho / 10
        (most, scores), *others = seen[-3:]
        assert all(one == most and np.abs(other - scores).max() <= most for one, other in others)


def test_noise_costs_at_most_what_it_is_asked_to() -> None:
    for relation in Neighboring:
        moved = 1 if relation is Neighboring.ADD_REMOVE else 2
        for rho in (Fraction(1, 10**6), Fraction(1, 3), Fraction(7)):
            sigma = TableShift(relation).noise(rho)
            assert Fraction(moved) / (2 * sigma**2) <= rho
            assert Fraction(moved) / (2 * sigma**2) >= rho * (1 - Fraction(1, 10**5))
