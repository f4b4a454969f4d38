"""Digits: learned by heart they are found again, and learned privately they are not; the guide runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from sfumato.attacks import MembershipReport, lira, membership_report, rmia, scaled_confidence
from sfumato.privacy import ApproximateDP
from tests.chance import accepts_only
from tests.run_time import run_time

if run_time(__name__):
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression as ByHeart
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from sfumato.learning import LogisticRegression


COUNT, MODELS = 600, 16
PAGE = Path(__file__).parents[3] / "docs" / "membership.md"


def plain(seed: int) -> Any:
    # More features than examples: it can learn all of them.
    features = FunctionTransformer(
        lambda rows: np.maximum(rows @ np.random.default_rng(9).normal(size=(64, 500)), 0)
    )
    return make_pipeline(features, ByHeart(C=1e4, max_iter=60, random_state=seed))


def private(seed: int) -> Any:
    return LogisticRegression(
        epsilon=1.0, delta=1e-12, bounds=(0, 1), classes=range(10), steps=30, random_state=seed
    )


def attacked(make: Callable[[int], Any]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Who was in the training by a coin, and the scores of each attack."""
    digits, labels = load_digits(return_X_y=True)
    digits, labels = digits[: 2 * COUNT] / 16, labels[: 2 * COUNT].copy()
    generator = np.random.default_rng(1)
    labels[::3] = generator.integers(0, 10, len(labels[::3]))
    coins = generator.random(COUNT) < 0.5
    half = np.tile(np.arange(MODELS)[:, None] < MODELS // 2, COUNT)
    included = generator.permuted(half, axis=0)

    def confidences(members: np.ndarray, seed: int) -> np.ndarray:
        model = make(seed).fit(digits[:COUNT][members], labels[:COUNT][members])
        logs = np.log(np.maximum(model.predict_proba(digits), 1e-300))
        return scaled_confidence(logs, labels)

    target = confidences(coins, MODELS)
    shadow = np.stack([confidences(members, seed) for seed, members in enumerate(included)])
    seen, known = target[:COUNT], shadow[:, :COUNT]
    return coins, {
        "loss": seen,
        "online": lira(seen, known, included),
        "global": lira(seen, known, included, variance="global"),
        "offline": lira(seen, known, included, online=False, variance="global"),
        "rmia": rmia(expit(seen), expit(known), included, expit(target[COUNT:]), expit(shadow[:, COUNT:])),
    }


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_learned_by_heart_is_found_again() -> None:
    coins, scores = attacked(plain)
    found = {
        name: membership_report(
            score[coins], score[~coins], claim=ApproximateDP(1.0, 1e-5), delta=1e-5, design="coins"
        )
        for name, score in scores.items()
    }
    for report in found.values():
        assert report.epsilon_lower is not None
        assert report.epsilon_lower > 0.5
    for name in ("global", "offline", "rmia"):
        assert found[name].violated
        assert found[name].area > 0.7


def test_what_is_learned_privately_is_not() -> None:
    """Of so little there is nothing to see: the attacks are as good as guesses, and refute no claim."""
    coins, scores = attacked(private)
    for score in scores.values():
        found = membership_report(
            score[coins],
            score[~coins],
            claim=ApproximateDP(1.0, 1e-12),
            delta=1e-12,
            design="coins",
            confidence=1 - 1e-9,
        )
        assert not found.violated

        def check(area: float, found: MembershipReport = found) -> None:
            """Of 300 members and 300 others, the area of guesses is 0.1 off with a chance of 3e-5."""
            assert abs(found.area - area) < 0.1

        accepts_only(check, 0.5, learned_by_heart=0.7, found_the_wrong_way=0.3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_guide_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 6
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)
