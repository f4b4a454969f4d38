"""Shares of the maximum likelihood: certified by their own bound, also where SciPy's solver fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.local.surveys.estimates import likeliest_shares as module
from sfumato.local.surveys.estimates.likeliest_shares import likeliest_shares


def _gap(counts: Any, transition: Any, shares: Any) -> float:
    seen = counts > 0
    rates = transition.T[seen]
    ratios = rates / (rates @ shares)[:, None]
    return float((counts[seen] @ ratios).max() / counts.sum() - 1)


def _no_end(*_: Any) -> Any:
    raise RuntimeError("Maximum number of iterations reached.")


def _no_class(*_: Any) -> Any:
    raise ValueError("zero-size array to reduction operation minimum which has no identity")


@pytest.mark.parametrize("solver", [None, _no_end, _no_class])
def test_no_shares_are_likelier(solver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if solver:
        monkeypatch.setattr(module, "nnls", solver)
    rng = np.random.default_rng(1)
    for _ in range(40):
        classes, answers = rng.integers(2, 8, size=2)
        transition = rng.dirichlet(np.full(answers, rng.choice([0.2, 1.0, 10.0])), size=classes)
        counts = rng.integers(1, 1000, size=answers) * (rng.random(answers) < 0.6)
        counts[0] += 1
        shares = likeliest_shares([counts], [transition])
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1)
        assert _gap(counts, transition, shares) < 1e-6
