"""Attacks on models: a secret feature, and canaries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato import attacks
from sfumato.errors import ParameterError
from sfumato.privacy import Gaussian, PureDP
from tests.chance import accepts_only, rate

Examples = attacks.LabeledExamples


def fits(model: Any, features: Any, labels: Any) -> Any:
    """Return the log-likelihood of a nearest-neighbor memory: certain about what it has seen."""
    seen, said = model
    near = np.abs(features[:, None, :] - seen[None]).sum(axis=2)
    right = said[near.argmin(axis=1)] == labels
    return np.where(right & (near.min(axis=1) < 1e-9), 0.0, -5.0)


def drawn(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.normal(size=(count, 2)), rng.integers(0, 3, count)])
    return features, rng.integers(0, 2, count)


def test_a_memory_gives_secrets_of_its_members_away_and_of_nobody_else() -> None:
    features, labels = drawn(150, 1)
    hidden = features.copy()
    hidden[:, 2] = np.nan  # what the attack must not read
    attack = attacks.ModelInversion(
        score=fits, targets=Examples(hidden, labels), feature=2, candidates=[0, 1, 2], prior=[0.2, 0.5, 0.3]
    )
    found = attack.run((features, labels), truth=features[:, 2], controls=Examples(*drawn(150, 2)))
    assert found.targets.hits == 150
    assert found.targets.scores == pytest.approx(
        [1 / (1 + (1 - p) / p * math.exp(-5)) for p in np.array([0.2, 0.5, 0.3])[features[:, 2].astype(int)]]
    )
    assert found.controls is not None
    assert (found.controls.guesses == 1).all()  # the prior's likeliest value is all that is left
    share = float((features[:, 2] == 1).mean())
    assert found.numbers["the likeliest value is right"] == pytest.approx(share)


def familiar(model: dict[int, float], secrets: Any) -> list[float]:
    return [model.get(int(one), 0.0) for one in secrets]


def test_exposure_counts_ranks_with_ties_against_the_canary() -> None:
    model = {n: float(n // 2) for n in range(15)}
    attack = attacks.CanaryExposure(
        score=familiar, canaries=[14, 12, 0], references=range(1, 14), false_positive_rate=0.1
    )
    found = attack.run(model)
    ranks = [1 + sum(model[n] >= model[canary] for n in range(1, 14)) for canary in (14, 12, 0)]
    assert found.targets.scores.tolist() == pytest.approx([math.log2(14 / rank) for rank in ranks])
    assert found.targets.claimed.tolist() == [True, False, False]
    assert found.numbers["most that the references can show"] == pytest.approx(math.log2(14))


def test_canaries_that_were_not_in_the_training_are_exposed_as_rarely_as_promised() -> None:
    rng = np.random.default_rng(11)
    attack = attacks.CanaryExposure(
        score=familiar, canaries=[0], references=range(1, 20), false_positive_rate=0.1
    )
    models = (dict(enumerate(rng.normal(size=20).tolist())) for _ in range(4000))
    hits = sum(attack.run(model).targets.claims for model in models)
    accepts_only(rate(hits, 4000), 2 / 20, one_rank_more=3 / 20, one_rank_less=1 / 20)


def test_the_loss_bounds_how_many_canaries_are_exposed() -> None:
    rng = np.random.default_rng(12)
    model = dict(enumerate((rng.normal(size=2000) + np.repeat([2.0, 0.0], [500, 1500])).tolist()))
    attack = attacks.CanaryExposure(
        score=familiar, canaries=range(500), references=range(500, 2000), false_positive_rate=0.05
    )
    found = attack.run(model, loss=Gaussian(0.5), confidence=1 - 1e-9)
    (bound,) = found.bounds
    exact = 0.6387  # Phi(2 - 1.6449): the power of the likelihood ratio at 5 %
    assert bound.allowed == pytest.approx(exact, abs=1e-3)
    assert not bound.exceeded
    assert attack.run(model, loss=PureDP(0.5), confidence=1 - 1e-9).bounds[0].exceeded
    assert attack.run(model, loss=PureDP(0.5), exchangeable=False).bounds == ()
    against = attack.run(model, loss=Gaussian(0.5), controls=range(500, 1000))
    assert [one.name for one in against.bounds][:2] == ["success", "advantage"]
    # A control is scored by the model that has seen the canary: twice the loss, for a replacement.
    assert against.bounds[1].allowed == pytest.approx(2 * 0.9772499 - 1, abs=1e-4)
    assert against.success is not None
    assert against.bounds[3].seen == against.success


def test_bad_input_is_refused() -> None:
    features, labels = drawn(5, 3)
    given = Examples(features, labels)
    invert, expose = attacks.ModelInversion, attacks.CanaryExposure

    def asked(candidates: list[float], **options: Any) -> attacks.ModelInversion:
        return invert(**{"score": fits, "targets": given, "feature": 0, "candidates": candidates, **options})

    def one_number(model: Any, secrets: Any) -> list[float]:
        return [1.0]

    refused: list[tuple[Any, str]] = [
        (lambda: invert(score=1, targets=given, feature=0, candidates=[0, 1]), "callable"),  # type: ignore[arg-type]
        (lambda: asked([0, 1], feature=3), "below 3"),
        (lambda: asked([0]), "two different"),
        (lambda: asked([0, 0]), "two different"),
        (
            lambda: asked([0, 1], prior=[0.5, 0.6]),
            "sum to 1",
        ),
        (
            lambda: invert(score=fits, targets=Examples(features, labels[:2]), feature=0, candidates=[0, 1]),
            "label each",
        ),
        (lambda: expose(score=familiar, canaries=[], references=range(200)), "at least one"),
        (lambda: expose(score=familiar, canaries=[1], references=range(50)), "be enough"),
        (
            lambda: expose(score=one_number, canaries=[1], references=range(99)).run({}),
            "fit the secrets",
        ),
    ]
    for call, message in refused:
        with pytest.raises(ParameterError, match=message):
            call()
    attack = invert(score=lambda m, x, y: [0.0], targets=given, feature=0, candidates=[0, 1])
    with pytest.raises(ParameterError, match="fit the examples"):
        attack.run(None)
    wrong = invert(score=lambda m, x, y: np.zeros(len(y)), targets=given, feature=0, candidates=[0, 1])
    with pytest.raises(ParameterError, match="as long as targets"):
        wrong.run(None, truth=[1.0])
