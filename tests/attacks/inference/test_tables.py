"""Attacks on released tables: a copy gives everything away, fresh rows of the same population nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import attacks
from sfumato.errors import ParameterError
from sfumato.privacy import Neighboring, PureDP
from sfumato.synthetic import IndependentMarginals, TableDomain
from tests.cases import cases


def people(count: int, seed: int) -> pa.Table:
    """Return records whose secret depends on the rest, but not wholly."""
    rng = np.random.default_rng(seed)
    age, town = rng.integers(18, 90, count), rng.integers(0, 30, count)
    ill = (rng.random(count) < 0.2 + 0.5 * (age > 60)).astype(int)
    pay = np.exp(rng.normal(10, 1, count))
    return pa.table({"age": age, "town": [f"t{n}" for n in town], "pay": pay, "ill": ill})


REAL, OTHERS, FRESH = 1, 2, 3


def rates(found: attacks.Findings) -> tuple[float, float]:
    assert found.controls is not None
    assert found.targets.hits is not None
    assert found.controls.hits is not None
    return found.targets.hits / found.targets.people, found.controls.hits / found.controls.people


def test_singling_out_succeeds_on_a_copy_only() -> None:
    real, others = people(400, REAL), people(600, OTHERS)
    attack = attacks.SinglingOut(predicates=300, columns_per_predicate=2)
    copied = attack.run(real, truth=real, controls=others)
    success, baseline = rates(copied)
    assert success == 1.0
    assert 0.05 < baseline < 0.6
    assert copied.numbers["singling-out risk"] == 1.0
    assert copied.bounds == ()
    success, baseline = rates(attack.run(people(400, FRESH), truth=real, controls=others))
    assert abs(success - baseline) < 6 * math.sqrt(0.5 / 300)  # two rates of 300 predicates, six deviations
    univariate = attacks.SinglingOut(predicates=100, columns_per_predicate=1).run(real, truth=real)
    assert univariate.controls is None
    assert univariate.targets.hits == univariate.targets.people


def test_predicates_state_no_more_conditions_than_there_are_columns() -> None:
    real = pa.table({"age": [30, 40, 50, 60], "city": ["Lyon", "Bonn", "Rome", "Bonn"]})
    found = [
        attacks.SinglingOut(predicates=20, columns_per_predicate=width).run(real, truth=real)
        for width in (2, 9)
    ]
    assert found[0].targets.scores.tolist() == found[1].targets.scores.tolist()


def test_a_released_model_is_attacked_by_its_rows_and_brings_its_loss() -> None:
    real = people(200, REAL).select(["town", "ill"])
    domain = TableDomain(town=[f"t{n}" for n in range(30)], ill=[0, 1])
    model = IndependentMarginals.calibrated(domain, epsilon=1.0, delta=1e-6).release(real, rng=1)
    attack = attacks.AttributeInference(targets=real.select(["town"]), secret="ill")
    found = attack.run(model, truth=real["ill"])
    assert found.loss == model.loss
    assert set(found.targets.guesses.tolist()) <= {0, 1}


def test_linkability_is_whole_on_a_copy_and_chance_where_halves_are_shuffled() -> None:
    real, others = people(300, REAL), people(300, OTHERS)
    attack = attacks.Linkability(targets=real, first=["age", "town"], second=["pay", "ill"], neighbors=1)
    copied = attack.run(real, truth=np.ones(300, bool), controls=others)
    assert copied.targets.claims > 0.4 * 300  # age and town are not unique
    assert copied.controls is not None
    assert copied.controls.claims < 0.1 * 300
    order = np.random.default_rng(4).permutation(300)
    broken = real.select(["age", "town"])
    for name in ("pay", "ill"):
        broken = broken.append_column(name, real.column(name).take(pa.array(order)))
    assert attack.run(broken).targets.claims < 20  # 2 are expected
    assert attack.run(broken).numbers["links by chance"] == pytest.approx(1 / 300)
    ten = attacks.Linkability(targets=real, first=["age"], second=["pay"], neighbors=10)
    chance = 1 - math.comb(290, 10) / math.comb(300, 10)
    assert ten.run(real).numbers["links by chance"] == pytest.approx(chance)
    inside = attack.run(real, truth=np.arange(300) < 200)
    assert inside.controls is not None
    assert (inside.targets.people, inside.controls.people) == (200, 100)


def known(table: pa.Table) -> pa.Table:
    return table.drop_columns(["ill"])


def test_attributes_are_read_off_a_copy_and_only_guessed_from_fresh_rows() -> None:
    real, others = people(500, REAL), people(500, OTHERS)
    attack = attacks.AttributeInference(targets=known(real), secret="ill")
    copied = attack.run(real, truth=real.column("ill"), controls=others)
    assert rates(copied)[0] == 1.0
    assert copied.numbers["inference risk"] == 1.0
    success, baseline = rates(attack.run(people(500, FRESH), truth=real.column("ill"), controls=others))
    assert abs(success - baseline) < 6 * math.sqrt(0.5 / 500)
    unknown = attack.run(real)
    assert (unknown.targets.correct, unknown.success, unknown.controls) == (None, None, None)


def randomized(table: pa.Table, epsilon: float, rng: np.random.Generator) -> pa.Table:
    """Return the table with each secret sent through randomized response."""
    secret = table.column("ill").to_numpy()
    lies = rng.random(len(secret)) > math.exp(epsilon) / (1 + math.exp(epsilon))
    return table.set_column(
        table.schema.names.index("ill"), "ill", pa.array(np.where(lies, 1 - secret, secret))
    )


@cases("planted", [False, True])
def test_the_bound_of_the_loss_holds_and_a_release_without_its_noise_is_above_it(planted: bool) -> None:
    # A target's secret is 0 or 1 by lot, so that another person in their place has either one.
    rng = np.random.default_rng(8)
    table = people(2000, 9)
    secrets = rng.integers(0, 2, (2, 2000))
    real, others = (table.set_column(3, "ill", pa.array(side)) for side in secrets)
    loss = PureDP(1.0, neighboring=Neighboring.REPLACE_ONE)
    release = randomized(real, 3.0 if planted else 1.0, rng)
    attack = attacks.AttributeInference(targets=known(real), secret="ill")
    found = attack.run(
        release, truth=real.column("ill"), controls=others, exchangeable=True, loss=loss, confidence=1 - 1e-9
    )
    success, advantage = found.bounds
    assert found.baseline is not None
    assert success.allowed == pytest.approx(1 - (1 - found.baseline.upper) / math.e, rel=1e-4)
    assert success.exceeded == planted
    assert planted or not advantage.exceeded


def test_secret_numbers_are_medians_within_a_tolerance() -> None:
    release = pa.table({"town": ["a", "a", "a", "b"], "pay": [100.0, 200.0, 1000.0, 5.0]})
    targets = pa.table({"town": ["a", "a", "b"]})
    attack = attacks.AttributeInference(targets=targets, secret="pay", neighbors=3, tolerance=0.1)
    found = attack.run(release, truth=[215.0, 230.0, 100.0])
    assert found.targets.guesses[:2].tolist() == [200.0, 200.0]
    assert found.targets.correct is not None
    assert found.targets.correct[:2].tolist() == [True, False]
    low = attacks.AttributeInference(targets=targets[:1], secret="pay", neighbors=2)
    both = pa.table({"town": ["a", "a"], "pay": [300.0, 100.0]})
    assert low.run(both).targets.guesses.tolist() == [100.0]  # the lower one of two in the middle
    absent = pa.table({"town": ["a", "a", "a"], "pay": [None, 7.0, None]})
    unknown = attacks.AttributeInference(targets=targets[:1], secret="pay", neighbors=3).run(
        absent, truth=pa.array([None], pa.float64())
    )
    assert unknown.targets.hits == 1
    assert unknown.targets.scores.tolist() == pytest.approx([2 / 3])
    votes = pa.table({"town": ["a"] * 3, "pay": ["low", "high", "high"]})
    voted = attacks.AttributeInference(targets=targets[:1], secret="pay", neighbors=3).run(votes)
    assert voted.targets.guesses.tolist() == ["high"]
    assert voted.targets.scores.tolist() == pytest.approx([2 / 3])


def refusals() -> list[tuple[Any, str]]:
    real = people(20, REAL)
    infer = attacks.AttributeInference
    return [
        (lambda: infer(targets=real, secret="ill"), "lack the secret"),
        (lambda: infer(targets=known(real), secret="ill", neighbors=0), "neighbors"),
        (lambda: infer(targets=known(real), secret="other").run(real), "has once"),
        (lambda: infer(targets=known(real), secret="ill").run(real, truth=[1, 2]), "secrets of 20 targets"),
        (lambda: infer(targets=known(real), secret="ill").run(real, truth=["x"] * 20), "secrets of 20"),
        (lambda: infer(targets=known(real), secret="ill").run(real, controls=known(real)), "has once"),
        (lambda: attacks.Linkability(targets=real, first=["age"], second=["age"]), "once"),
        (lambda: attacks.Linkability(targets=real, first=[], second=["age"]), "names of columns"),
        (
            lambda: attacks.Linkability(targets=real, first=["age"], second=["pay"]).run(
                real, truth=np.zeros(20, bool)
            ),
            "True for one target",
        ),
        (lambda: attacks.SinglingOut(predicates=0), "predicates"),
        (lambda: attacks.SinglingOut().run(pa.table({"a": [1, 1], "b": ["x", "x"]})), "isolate"),
        (lambda: attacks.SinglingOut().run(real, truth=known(real)), "has once"),
        (lambda: attacks.SinglingOut().run(real.slice(0, 0)), "have rows"),
    ]


def test_bad_input_is_refused() -> None:
    for call, message in refusals():
        with pytest.raises(ParameterError, match=message):
            call()
