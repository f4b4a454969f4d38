"""An analyst who overfits a holdout, with and without Thresholdout, and bounds on adaptive analysis."""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import adaptive

Floats = NDArray[np.float64]


class NoSignal:
    """Features that say nothing of the label, for a training set, a holdout and fresh rows.

    Parameters
    ----------
    rows, features, seed : int
        Rows of each set.
    """

    def __init__(self, rows: int, features: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.rows = rows
        self.sets = {
            name: (rng.standard_normal((rows, features), dtype=np.float32), rng.random(rows) < 0.5)
            for name in ("train", "holdout", "fresh")
        }

    def agreement(self, name: str) -> Floats:
        """Return for each feature how often its sign is the label, less a half."""
        features, labels = self.sets[name]
        return np.asarray(((features > 0) == labels[:, None]).mean(axis=0) - 0.5)

    def accuracy(self, name: str, weights: Floats) -> float:
        """Return how often a linear classifier is right."""
        return float(is_right(weights, self.sets[name]).mean())


def chosen(train: Floats, holdout: Floats, count: int) -> Floats:
    """Return signs of the features on which both agree and that look best on the training set."""
    agree = (train * holdout > 0) & (np.abs(train) > 0)
    best = np.argsort(-np.abs(train) * agree)[:count]
    weights = np.zeros(len(train))
    weights[best] = np.sign(train[best])
    return weights


def signs_agree(feature: int, rows: Any) -> NDArray[np.bool_]:
    """Return where the sign of a feature is the label."""
    features, labels = rows
    return np.asarray((features[:, feature] > 0) == labels)


def is_right(weights: Floats, rows: Any) -> NDArray[np.bool_]:
    """Return where a linear classifier is right."""
    features, labels = rows
    return np.asarray((features @ weights.astype(np.float32) > 0) == labels)


def experiment(rows: int, features: int, counts: list[int], seed: int) -> dict[int, list[float]]:
    """Return by number of features: naive train, holdout, fresh; Thresholdout's answer, fresh."""
    world = NoSignal(rows, features, seed)
    train, holdout = world.agreement("train"), world.agreement("holdout")
    scale = 1 / np.sqrt(rows)
    plan = adaptive.Thresholdout(
        rows=rows, threshold=4 * scale, noise=scale / 16, overfits=200, queries=features + len(counts)
    )
    reusable = adaptive.ReusableHoldout(world.sets["train"], world.sets["holdout"], plan, rng=seed)
    answers = np.zeros(features)
    for feature in range(features):
        answers[feature] = reusable.ask(partial(signs_agree, feature)).value - 0.5
    found = {}
    for count in counts:
        naive = chosen(train, holdout, count)
        guarded = chosen(train, answers, count)
        told = reusable.ask(partial(is_right, guarded))
        found[count] = [
            *(world.accuracy(name, naive) for name in ("train", "holdout", "fresh")),
            told.value,
            world.accuracy("fresh", guarded),
        ]
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks adaptive", description=__doc__)
    parser.add_argument("--rows", type=int, default=5000, help="of each set (5000)")
    parser.add_argument("--features", type=int, default=5000, help="how many say nothing (5000)")
    parser.add_argument("--chosen", type=int, nargs="+", default=[50, 250, 500])
    parser.add_argument("--runs", type=int, default=2)
    arguments = parser.parse_args(argv)
    began = time.process_time()
    runs = [
        experiment(arguments.rows, arguments.features, arguments.chosen, seed)
        for seed in range(arguments.runs)
    ]
    print(
        f"no signal, {arguments.rows} rows in each set, {arguments.features} features, {arguments.runs} runs"
    )
    print("chosen  naive: train  holdout  fresh   Thresholdout: answer  fresh")
    for count in arguments.chosen:
        mean = np.mean([run[count] for run in runs], axis=0)
        print(f"{count:6}  {mean[0]:12.3f}  {mean[1]:7.3f}  {mean[2]:5.3f}   {mean[3]:20.3f}  {mean[4]:5.3f}")
    print(f"{time.process_time() - began:.1f} CPU s\n")
    print("proven errors of all answers, 95 % sure")
    for rows, queries in ((10_000, 20), (100_000, 100), (100_000, 1000), (1_000_000, 100_000)):
        print(f"{rows} rows, {queries} queries")
        for bound in adaptive.compare_bounds(rows=rows, queries=queries, beta=0.05):
            print(f"  {bound.error:6.3f}  {bound.theorem}" + ("  (vacuous)" if bound.vacuous else ""))
    return 0
