from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import Laplace
from sfumato.privacy import Neighboring
from sfumato.pufferfish import (
    IndependentRows,
    JointDistribution,
    MarkovChain,
    MarkovSequence,
    Sampler,
    Secret,
    Specification,
    WassersteinMechanism,
)

ROWS = list(itertools.product((0, 1), repeat=4))


def clique(weights: tuple[float, ...] = (0.1, 0.15, 0.5, 0.15, 0.1)) -> JointDistribution:
    """Four people who all meet: how many have the flu, and who, at random."""
    return JointDistribution(ROWS, [Fraction(str(weights[sum(r)])) / math.comb(4, sum(r)) for r in ROWS])


def test_the_flu_clique_of_the_paper() -> None:
    assert Specification.of_records(models=clique()).distance(sum) == 2


def test_differential_privacy_is_an_instance() -> None:
    for values, epsilon in (((0, 1), 0.5), ((0, 2, 7), 1.0)):
        specification = Specification.differential_privacy(values=values, records=3)
        mechanism = WassersteinMechanism(specification=specification, query=sum, epsilon=epsilon)
        same = Laplace.calibrated(
            sensitivity=max(values) - min(values), epsilon=epsilon, neighboring=Neighboring.REPLACE_ONE
        )
        assert mechanism.scale == same.scale
        assert mechanism.distribution == same.distribution
        assert mechanism.release(4, rng=11).value == same.release(4, rng=11).value


def test_independent_records_are_hidden_with_it() -> None:
    model = IndependentRows([0, 1], [[0.5, 0.5], [0.1, 0.9], [0.7, 0.3]])
    assert Specification.of_records(models=model).distance(sum) == 1


def test_pairs_that_a_model_rules_out_are_left_out() -> None:
    known = MarkovSequence(chain=MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]], start=[1, 0]), length=3)
    compiled = list(Specification.of_records(models=known).compiled())
    assert len(compiled) == 2  # the first record is known
    assert "record 1 is 0" in compiled[0].words
    for pair in compiled:
        assert sum(pair.first.values()) + sum(pair.second.values()) == 1
    fixed = JointDistribution([(0, 0)], [1])
    yes, no = Secret("yes", lambda d: d[0] == 1), Secret("no", lambda d: d[0] == 0)
    with pytest.raises(ParameterError, match="allow both secrets of some pair"):
        list(Specification(pairs=[(yes, no)], models=fixed).compiled())


def test_attributes_of_the_whole_dataset() -> None:
    rows = list(itertools.product(((0, 0), (0, 1), (1, 0), (1, 1)), repeat=2))
    weights = {(0, 0): 0.4, (0, 1): 0.1, (1, 0): 0.1, (1, 1): 0.4}
    model = JointDistribution(rows, [Fraction(str(weights[a])) * Fraction(str(weights[b])) for a, b in rows])
    hidden = Specification.dataset_attribute(
        models=model, attribute=lambda d: sum(row[0] for row in d), name="number of the sick"
    )
    assert len(hidden.pairs) == 3
    # None sick: the other column is 0 with .64, 1 with .32, 2 with .04; both sick: the mirror image.
    assert hidden.distance(lambda d: sum(row[1] for row in d)) == 2
    assert hidden.distance(lambda d: sum(row[0] for row in d)) == 2
    assert "number of the sick" in hidden.words


def test_which_distribution_made_the_data() -> None:
    low, high = (IndependentRows([0, 1], [[1 - p, p]] * 3) for p in (0.25, 0.5))
    hidden = Specification.distributional_attribute({"a quarter": low, "a half": high})
    assert hidden.distance(sum) == 1
    assert hidden.words == "which distribution made the data: a quarter or a half"
    assert hidden.distance(lambda d: 5) == 0
    assert "2 models" in hidden.describe_models()


def test_digests_tell_specifications_apart() -> None:
    one = Specification.of_records(models=clique())
    assert one.digest == Specification.of_records(models=clique()).digest
    assert one.digest != Specification.of_records(models=clique((0.2, 0.15, 0.3, 0.15, 0.2))).digest
    assert one.digest != Specification.dataset_attribute(models=clique(), attribute=sum).digest
    many = Specification.of_records(models=[clique(), clique((0.2, 0.15, 0.3, 0.15, 0.2))])
    known = [JointDistribution([(i % 2,) for i in range(n)], [Fraction(1, n)] * n) for n in range(2, 7)]
    assert Specification.of_records(models=known[:4]).describe_models().endswith("on 5 datasets")
    assert Specification.of_records(models=known).describe_models().endswith("on 5 datasets, ...")
    assert many.describe_models() == "2 models: a joint distribution on 16 datasets"


def test_bad_specifications_are_refused() -> None:
    secret = Secret("s", bool)
    cases: list[tuple[dict[str, object], str]] = [
        ({"pairs": [], "models": clique()}, "hold a pair"),
        ({"pairs": [(secret,)], "models": clique()}, "pairs of Secret"),
        ({"pairs": [(secret, 1)], "models": clique()}, "pairs of Secret"),
        ({"pairs": [(secret, secret)], "models": []}, "the class is empty"),
        ({"pairs": [], "models": [], "between": [(clique(), 3)]}, "pairs of DataModel"),
    ]
    for parameters, message in cases:
        with pytest.raises(ParameterError, match=message):
            Specification(**parameters)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="be at least two"):
        Specification.differential_privacy(values=[1], records=3)
    with pytest.raises(ParameterError, match="samples bounds nothing"):
        Specification.of_records(models=Sampler(draw=lambda g: (0,), words="w"))
    assert Specification(pairs=[(secret, secret)] * 6, models=clique()).words.endswith("; ...")
