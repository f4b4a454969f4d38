"""Reconstruction from linear queries: the anchors, the theorem's threshold, the ceiling of a privacy loss."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.sparse import csr_array

from sfumato import attacks
from sfumato.attacks.reconstruction.linear_reconstruction import Method
from sfumato.errors import ParameterError
from sfumato.mechanisms import Laplace
from sfumato.privacy import GaussianDP, Neighboring
from tests.cases import cases


def answered(seed: int, people: int, count: int, stddev: float) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(seed)
    queries = attacks.random_subset_queries(people, count, generator)
    secret = generator.random(people) < 0.5
    return queries, secret, queries @ secret + generator.normal(0, stddev, count)


def accuracy(method: Method, queries: Any, secret: Any, answers: Any, **options: Any) -> float:
    attack = attacks.LinearReconstruction(queries=queries, method=method, **options)
    return attack.run(answers, truth=secret).numbers["accuracy"]


@pytest.mark.exhaustive
def test_accuracy_follows_the_normal_law_at_full_size() -> None:
    """n = 2000, m = 16,000; a share of 2,000 bits has a standard error of at most .0097 here."""
    for stddev, anchor in ((11.2, 0.9965), (22.4, 0.8945), (44.7, 0.7445)):
        found = accuracy("least-squares", *answered(1, 2000, 16_000, stddev))
        expected = attacks.reconstruction_accuracy(2000, 16_000, stddev)
        assert abs(found - expected) < 4 * math.sqrt(expected * (1 - expected) / 2000)
        assert abs(found - anchor) < 6 * math.sqrt(anchor * (1 - anchor) / 2000)


def test_accuracy_follows_the_normal_law() -> None:
    for stddev in (4.0, 8.0, 16.0):
        found = accuracy("least-squares", *answered(2, 500, 2000, stddev))
        expected = attacks.reconstruction_accuracy(500, 2000, stddev)
        assert abs(found - expected) < 5 * math.sqrt(expected * (1 - expected) / 500)


def test_linear_programs_and_least_squares_at_a_hundred_people() -> None:
    """Measured before, in four trials: LP .955, .788, .672, .622; least squares .978, .835, .737, .668."""
    table = {2.5: (0.955, 0.978), 5.0: (0.788, 0.835), 10.0: (0.672, 0.737), 20.0: (0.622, 0.668)}
    for stddev, anchors in table.items():
        trials = [answered(seed, 100, 500, stddev) for seed in range(2)]
        for method, anchor in zip(("l1", "bounded-least-squares"), anchors, strict=True):
            found = np.mean([accuracy(method, *trial) for trial in trials])  # type: ignore[arg-type]
            # Means of 200 bits, and of 400.
            assert abs(found - anchor) < 4 * math.sqrt(anchor * (1 - anchor) * (1 / 200 + 1 / 400))


def test_the_bounded_solution_is_the_optimum() -> None:
    queries, _, answers = answered(3, 40, 120, 6.0)
    attack = attacks.LinearReconstruction(queries=queries, method="bounded-least-squares")
    exact = lsq_linear(queries.astype(float), answers, bounds=(0, 1), method="bvls").x
    np.testing.assert_allclose(attack.estimates(answers), exact, atol=2e-3)


def test_feasible_bits_are_as_right_as_the_theorem_says() -> None:
    """Errors of any kind up to the threshold: at most a twentieth is wrong."""
    queries, secret, _ = answered(4, 60, 600, 0.0)
    attack = attacks.LinearReconstruction(queries=queries)
    bound = attack.noise_threshold(0.05)
    smallest = np.linalg.svd(queries.astype(float), compute_uv=False)[-1]
    assert bound == pytest.approx(smallest * math.sqrt(0.05 * 60 / (16 * 600)), rel=1e-8)
    assert bound > 0.1
    errors = bound * np.where(np.random.default_rng(1).random(600) < 0.5, 1, -1)
    found = accuracy("feasibility", queries, secret, queries @ secret + errors, error_bound=bound)
    assert found >= 0.95
    assert attacks.LinearReconstruction(queries=queries[:30]).noise_threshold() == 0


def test_all_subsets_leave_at_most_four_times_the_error() -> None:
    """Dwork and Roth, Theorem 8.1, for eight people and every candidate that fits."""
    queries = np.array(list(itertools.product((0, 1), repeat=8)))
    generator = np.random.default_rng(5)
    for _ in range(5):
        secret = generator.random(8) < 0.5
        answers = queries @ secret.astype(int) + generator.uniform(-0.9, 0.9, 256)
        attack = attacks.LinearReconstruction(queries=queries, method="exhaustive", error_bound=0.9)
        # The mean distance of the fitting candidates from the secret.
        assert np.abs(attack.estimates(answers) - secret).sum() <= 4 * 0.9
        best = attacks.LinearReconstruction(queries=queries, method="exhaustive").run(answers, truth=secret)
        assert best.numbers["accuracy"] >= 1 - 4 * 0.9 / 8
        assert best.numbers["bits that are the same in all that fits"] >= 1


def test_sparse_and_integer_queries_have_the_same_estimates() -> None:
    queries, _, answers = answered(6, 30, 90, 1.0)
    for method in ("least-squares", "bounded-least-squares", "l1"):
        dense = attacks.LinearReconstruction(queries=queries, method=method).estimates(answers)
        for other in (csr_array(queries), queries.astype(np.int8), queries.astype(bool)):
            found = attacks.LinearReconstruction(queries=other, method=method).estimates(answers)
            np.testing.assert_allclose(found, dense, atol=1e-4)


def test_a_private_release_of_the_same_answers_leaves_the_majority() -> None:
    queries, secret, _ = answered(7, 200, 1600, 0.0)
    exact = (queries @ secret).astype(np.int64)
    mechanism = Laplace(sensitivity=1, l0=1600, scale=1600)  # epsilon 1 for all answers
    attack = attacks.LinearReconstruction(queries=queries, prior=0.5)
    found = attacks.compare(attack, raw=exact, private=mechanism.release(exact, rng=1), truth=secret)
    assert found.raw.numbers["accuracy"] == 1
    assert found.private.numbers["accuracy"] < 0.62
    (ceiling,) = found.private.bounds
    assert ceiling.name == "accuracy"
    # Bayes' accuracy is at most e/(1 + e) for epsilon 1; the noise on 1,600 counts allows much less.
    assert 0.5 < ceiling.allowed < 0.55
    assert not ceiling.exceeded
    assert found.raw.bounds == ()
    assert "accuracy of the majority guess" in str(found)


def test_the_ceiling_is_bayes_accuracy_and_needs_the_prior() -> None:
    queries, secret, answers = answered(8, 100, 400, 30.0)
    for relation in Neighboring:
        loss = GaussianDP(1.0, neighboring=relation)
        found = attacks.LinearReconstruction(queries=queries, prior=0.5).run(answers, truth=secret, loss=loss)
        assert found.bounds[0].seen == found.success
        assert found.bounds[0].allowed == pytest.approx(0.6914625, abs=1e-4)  # Phi(1/2)
        assert not attacks.LinearReconstruction(queries=queries).run(answers, truth=secret, loss=loss).bounds


def test_of_people_in_no_query_the_majority_is_all_there_is() -> None:
    queries, _, _ = answered(9, 100, 400, 1.0)
    generator = np.random.default_rng(2)
    secret, others = generator.random(100) < 0.8, generator.random(300) < 0.8
    found = attacks.LinearReconstruction(queries=queries).run(queries @ secret, truth=secret, controls=others)
    assert found.controls is not None
    assert found.controls.hits == others.sum()
    assert found.numbers["accuracy of the majority guess"] == secret.mean() > 0.6
    few = attacks.LinearReconstruction(queries=queries).run(queries @ ~secret, truth=~secret)
    assert few.numbers["accuracy of the majority guess"] == pytest.approx(secret.mean(), rel=1e-12)
    assert found.advantage is not None
    assert found.advantage.lower > 0.05


def test_fewer_answers_than_bits_are_said() -> None:
    queries, secret, answers = answered(10, 100, 40, 0.0)
    found = attacks.LinearReconstruction(queries=queries).run(answers, truth=secret)
    assert "40 answers do not determine 100 bits" in str(found)
    assert 0.5 < found.numbers["accuracy"] < 0.95


@cases(
    "change",
    [
        {"queries": np.zeros(4)},
        {"queries": np.zeros((0, 4))},
        {"queries": np.full((2, 2), np.nan)},
        {"queries": np.full((2, 2), "a")},
        {"method": "guess"},
        {"method": "feasibility"},
        {"error_bound": -1.0},
        {"prior": 0.0},
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        attacks.LinearReconstruction(**({"queries": np.eye(4)} | change))


def test_bad_releases_are_refused() -> None:
    attack = attacks.LinearReconstruction(queries=np.eye(4))
    for release, truth in (
        ([1.0, 0.0], None),
        ([1.0, 0.0, np.inf, 0.0], None),
        (["a"] * 4, None),
        ([1, 0, 0, 0], [1, 0]),
        ([1, 0, 0, 0], [1, 0, 0, 2]),
    ):
        with pytest.raises(ParameterError):
            attack.run(release, truth=truth)
    for method in ("feasibility", "exhaustive"):
        tight = attacks.LinearReconstruction(queries=np.eye(4), method=method, error_bound=0.1)
        with pytest.raises(ParameterError, match="error_bound must be as large as the largest error"):
            tight.run([5, 0, 0, 0])
    with pytest.raises(ParameterError, match="at most 20 people"):
        attacks.LinearReconstruction(queries=np.eye(21), method="exhaustive").run(np.zeros(21))
    with pytest.raises(ParameterError):
        attacks.reconstruction_accuracy(10, 10, 1.0)
