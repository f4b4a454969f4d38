"""Accuracy of naive Bayes at a few epsilons beside diffprivlib's and the plain one's, on equal splits.

Means over splits of 70 % of the rows to learn from and 30 % to score. The bounds are the features' minimum
and maximum, taken as public for both.
``python -m benchmarks naive-bayes [--splits K] [--peers]``
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.naive_bayes import GaussianNB as PlainGaussianNB

from benchmarks.environments import interpreter, script, title
from sfumato.learning import GaussianNB

__all__ = ["main"]

_NAMES = ("breast_cancer", "wine", "iris", "digits")
_EPSILONS = (0.3, 1.0, 3.0, 10.0, 30.0)
_DELTA = 1e-6


def _given(splits: int) -> dict[str, Any]:
    """Return rows, labels, bounds and the rows to learn from, by data set."""
    made: dict[str, Any] = {}
    for name in _NAMES:
        rows, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
        lower, upper = rows.min(axis=0), rows.max(axis=0)
        bounds = np.array([lower, np.where(upper > lower, upper, lower + 1)])
        training = np.zeros((splits, len(rows)), np.bool_)
        for seed, chosen in enumerate(training):
            chosen[np.random.default_rng(seed).permutation(len(rows))[: round(0.7 * len(rows))]] = True
        parts = {"X": rows, "y": labels, "bounds": bounds, "training": training}
        made |= {f"{name}/{part}": values for part, values in parts.items()}
    return made


def _scores(given: dict[str, Any], name: str, epsilon: float | None) -> list[float]:
    rows, labels, bounds, training = (given[f"{name}/{part}"] for part in ("X", "y", "bounds", "training"))
    found = []
    for seed, chosen in enumerate(training):
        model: Any = PlainGaussianNB()
        if epsilon is not None:
            options: dict[str, Any] = {"bounds": tuple(bounds), "classes": np.unique(labels)}
            model = GaussianNB(epsilon=epsilon, delta=_DELTA, random_state=seed, **options)
        found.append(model.fit(rows[chosen], labels[chosen]).score(rows[~chosen], labels[~chosen]))
    return found


def _peer(given: dict[str, Any]) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        np.savez(path := Path(folder) / "splits.npz", **given)
        command = [interpreter("diffprivlib"), script("diffprivlib", "naive_bayes"), path]
        done = subprocess.run([*command, json.dumps(_EPSILONS)], check=True, capture_output=True, text=True)
    scores: dict[str, list[float]] = json.loads(done.stdout)
    return scores


def main(argv: Sequence[str] | None = None) -> int:
    """Print mean accuracies in percent."""
    parser = argparse.ArgumentParser(prog="naive-bayes", description=__doc__)
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args(argv)
    given = _given(options.splits)
    peer = _peer(given) if options.peers else {}
    heads = ["plain", *(f"epsilon {epsilon:g}" for epsilon in _EPSILONS)]
    print(f"{'accuracy, %':<40}" + "".join(f"{head:>13}" for head in heads))
    for name in _NAMES:
        ours = [np.mean(_scores(given, name, epsilon)) for epsilon in (None, *_EPSILONS)]
        print(f"{f'{name}, sfumato':<40}" + "".join(f"{100 * share:>13.1f}" for share in ours))
        if peer:
            theirs = [np.mean(peer[f"{name} {epsilon:g}"]) for epsilon in _EPSILONS]
            line = f"{name + ', ' + title('diffprivlib'):<40}{'':>13}"
            print(line + "".join(f"{100 * share:>13.1f}" for share in theirs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
