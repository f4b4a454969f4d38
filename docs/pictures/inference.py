"""Picture of what noise does to inference: a posterior that knows of it, and records that A/B tests need."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from docs.pictures.style import BLUE, GRAY, INK, ORANGE, figure, save
from sfumato import adaptive
from sfumato.mechanisms import Laplace
from sfumato.privacy import Neighboring

__all__ = ["draw"]

_EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


def draw(path: Path) -> None:
    """Draw posteriors of a rare proportion, with the noise and as if there were none, and records an arm."""
    noisy = Laplace.calibrated(sensitivity=2, epsilon=0.2, neighboring=Neighboring.REPLACE_ONE)
    release = noisy.release(np.array([30, 470]), rng=4)
    known = adaptive.multinomial_posterior(release, records=500, draws=3000, rng=1).values[:, 0]
    seen = min(max(int(np.asarray(release.steps)[0]), 0), 500)
    ignored = np.random.default_rng(2).beta(seen + 0.5, 500 - seen + 0.5, 3000)
    drawn = figure(9, 3.4)
    posterior, records = drawn.subplots(1, 2)
    edges = np.linspace(0, 0.2, 41).tolist()
    for values, color, label in (
        (known, BLUE, "knows of the noise"),
        (ignored, ORANGE, "takes it for exact"),
    ):
        posterior.hist(values, edges, density=True, histtype="step", color=color, linewidth=1.6, label=label)
    posterior.axvline(0.06, color=INK, linestyle=":", label="truth")
    posterior.set_xlabel("proportion")
    posterior.set_ylabel("posterior density")
    for first, second, color in ((0.10, 0.12, GRAY), (0.10, 0.14, BLUE), (0.10, 0.20, ORANGE)):
        plans = [adaptive.ABTest.planned(first=first, second=second, epsilon=e) for e in _EPSILONS]
        label = f"{first:.2f} against {second:.2f}"
        records.plot(_EPSILONS, [plan.records for plan in plans], color=color, label=label)
    records.set_xscale("log")
    records.set_yscale("log")
    records.set_xlabel("epsilon")
    records.set_ylabel("records in each arm")
    for axes in (posterior, records):
        axes.legend(frameon=False)
    save(drawn, path)
