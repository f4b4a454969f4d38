"""The scores of the attacks, against densities, loops, and the toy models whose best attack is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from sfumato.attacks import lira, loss_threshold, membership_report, rmia, scaled_confidence
from sfumato.errors import ParameterError
from tests.cases import cases
from tests.chance import accepts_only

EXAMPLES, MODELS = 6000, 64


def toy(shift: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Log odds that have a level of each example, noise of each model, and more where it was seen.

    The best attack at a false positive rate a catches norm.sf(norm.isf(a) - shift) of the members.
    """
    generator = np.random.default_rng(seed)
    level = generator.normal(0.0, 5.0, EXAMPLES)
    included = generator.random((MODELS, EXAMPLES)) < 0.5
    member = np.arange(EXAMPLES) < EXAMPLES // 2
    shadow = level + shift * included + generator.normal(size=(MODELS, EXAMPLES))
    return level + shift * member + generator.normal(size=EXAMPLES), shadow, included, member


def test_the_ratio_is_that_of_the_two_densities() -> None:
    generator = np.random.default_rng(2)
    included = generator.random((30, 5)) < 0.5
    shadow, observed = generator.normal(size=(30, 5, 2)), generator.normal(size=(5, 2))
    for j, score in enumerate(lira(observed, shadow, included)):
        logs = []
        for side in (included[:, j], ~included[:, j]):
            seen = shadow[side, j]
            distribution = multivariate_normal(seen.mean(0), np.diag(seen.var(0, ddof=1)))
            logs.append(distribution.logpdf(observed[j]))
        assert score == pytest.approx(logs[0] - logs[1], abs=1e-9)


def test_offline_is_the_tail_among_models_without_the_example() -> None:
    observed, shadow, included, _ = toy(1.0)
    scores = lira(observed, shadow, included, online=False)
    for j in range(0, EXAMPLES, 1000):
        without = shadow[~included[:, j], j]
        tail = norm.logsf(observed[j], without.mean(), without.std(ddof=1))
        assert scores[j] == pytest.approx(-tail, rel=1e-6)


def test_the_global_variance_is_around_the_means_of_the_examples() -> None:
    observed, shadow, included, _ = toy(1.0)
    scores = lira(observed, shadow, included, online=False, variance="global")
    # The levels are spread by 5, the models around them by 1.
    mean = np.array([shadow[~included[:, j], j].mean() for j in range(EXAMPLES)])
    assert np.allclose(scores, -norm.logsf(observed - mean), rtol=0.05, atol=0.02)


@pytest.mark.parametrize("variance", ["example", "global"])
def test_lira_is_the_best_attack_on_a_gaussian_toy(variance: Any) -> None:
    observed, shadow, included, member = toy(2.0)
    scores = lira(observed, shadow, included, variance=variance)
    plain = membership_report(observed[member], observed[~member], confidence=1 - 1e-9)
    found = membership_report(scores[member], scores[~member], confidence=1 - 1e-9)

    def check(shift: float) -> None:
        assert found.advantage.lower < 2 * norm.cdf(shift / 2) - 1 < found.advantage.upper
        assert found.area == pytest.approx(norm.cdf(shift / np.sqrt(2)), abs=0.03)

    accepts_only(check, 2.0, a_worse_attack=1.7, a_better_one=2.5)
    # A threshold for all hardly sees the members for the levels.
    assert plain.advantage.upper < found.advantage.lower


def test_rmia_counts_pairs() -> None:
    generator = np.random.default_rng(3)
    included = np.array([[True] * 4 + [False] * 4, [False] * 4 + [True] * 4, [True, False] * 4])
    observed, reference = generator.random(8), generator.random((3, 8))
    others, calm = generator.random(50), generator.random((3, 50))
    for gamma, online, scale in ((1.0, True, 0.3), (2.0, False, 0.3), (1.0, False, 1.0)):
        scores = rmia(
            observed, reference, included, others, calm, gamma=gamma, online=online, offline_scale=scale
        )
        for j in range(8):
            out = reference[~included[:, j], j].mean()
            within = reference[included[:, j], j].mean()
            usual = (out + within) / 2 if online else ((1 + scale) * out + 1 - scale) / 2
            ratios = [(observed[j] / usual) / (others[z] / calm[:, z].mean()) for z in range(50)]
            assert scores[j] == pytest.approx(np.mean([ratio >= gamma for ratio in ratios]))


def test_rmia_needs_one_reference_model_only() -> None:
    observed, shadow, included, member = toy(2.0)
    generator = np.random.default_rng(4)
    level = generator.normal(0.0, 5.0, 4000)
    # Probabilities that are small: their logarithms are the toy's numbers.
    others, calm = (np.exp(level + generator.normal(size=4000) - 60) for _ in range(2))
    # One model that saw none of them: what a model with some of them says, less what that added.
    one, out = shadow[:1] - 2.0 * included[:1], np.zeros((1, EXAMPLES), dtype=bool)
    scores = rmia(
        np.exp(observed - 60), np.exp(one - 60), out, others, calm[None], online=False, offline_scale=1
    )
    losses = loss_threshold(-observed)
    assert np.mean(scores[member]) - np.mean(scores[~member]) > 0.2
    found = membership_report(scores[member], scores[~member])
    assert found.area > membership_report(losses[member], losses[~member]).area + 0.05


def test_scaled_confidence_loses_nothing_near_one() -> None:
    logits = np.array([[800.0, 0.0, -5.0], [0.0, 1.0, 2.0], [-np.inf, 0.0, 0.0]])
    found = scaled_confidence(np.stack([logits, logits + 3]), [0, 1, 1])
    odds = [800 - np.log1p(np.exp(-5.0)), 1 - np.log(1 + np.exp(2.0)), 0.0]
    assert found.shape == (2, 3)
    assert np.allclose(found, odds, rtol=1e-12)


NO = np.zeros((2, 3), dtype=bool)
HALF = np.array([[True] * 3, [False] * 3])


@cases(
    ("call", "says"),
    [
        (lambda: loss_threshold([0.1, np.nan]), "losses must be finite"),
        (lambda: loss_threshold([]), "losses must be finite numbers, at least one"),
        (lambda: scaled_confidence([1.0, 2.0], [0]), "logits must be finite, of shape"),
        (lambda: scaled_confidence([[1.0, np.inf]], [0]), "logits must be finite"),
        (lambda: scaled_confidence([[1.0, 2.0]], [2]), "labels must be from 0 to 1"),
        (lambda: scaled_confidence([[1.0, 2.0]], [0.0]), "labels must be one integer"),
        (lambda: lira([1.0] * 3, np.ones((2, 3)), NO), "at least 2 shadow models with each example in"),
        (lambda: lira([1.0] * 3, np.ones((2, 3)), HALF), "at least 2 shadow models with each example out"),
        (lambda: lira([1.0] * 3, np.ones((2, 3)), HALF, variance="global"), "two shadow models of a kind"),
        (lambda: lira([1.0] * 3, np.ones((2, 4)), NO), "all shadow models on all examples"),
        (lambda: lira([1.0] * 3, np.ones((2, 3)), NO.astype(int)), "included must be bool"),
        (lambda: lira([1.0] * 3, np.ones((2, 3, 2)), NO), "as observed has"),
        (lambda: lira([1.0] * 3, np.ones((2, 3)), NO, variance="none"), "'example' or 'global'"),  # type: ignore[arg-type]
        (lambda: rmia([2.0], [[0.5]], [[False]], [0.5], [[0.5]]), "observed must be probabilities"),
        (lambda: rmia([0.5], [[0.5]], [[False]], [0.5], [[0.5]]), "a reference model with each example"),
        (lambda: rmia([0.5], [[0.5]], [[True]], [0.5], [[0.5]]), "a reference model without each example"),
        (lambda: rmia([0.5], [[0.5]], [[False]], [0.5], [[0.5, 1]]), "all reference models on all others"),
        (lambda: rmia([0.5], [[0.5]], [[False]], [0.5], [[0.5]], gamma=0.5), "gamma must be at least 1"),
        (lambda: rmia([0.5], [[0.5]], [[False]], [0.5], [[0.5]], offline_scale=2), "offline_scale must be"),
    ],
)
def test_bad_input_is_released(call: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        call()
