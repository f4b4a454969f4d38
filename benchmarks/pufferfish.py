"""Noise and time of Markov quilts and Wasserstein mechanisms, beside group privacy and the paper's numbers.

``python -m benchmarks pufferfish [--part scales|electricity|flu|all]``
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb
from typing import Final

import numpy as np

from sfumato.pufferfish import (
    JointDistribution,
    MarkovChain,
    MarkovChainClass,
    MarkovQuilt,
    Specification,
    WassersteinMechanism,
)

__all__ = ["main"]

_PAPER: Final = (
    ("[[.9, .1], [.4, .6]] from [1, 0]", [[0.9, 0.1], [0.4, 0.6]], [1, 0], 13.0219),
    ("[[.8, .2], [.3, .7]] from [.9, .1]", [[0.8, 0.2], [0.3, 0.7]], [0.9, 0.1], 10.6402),
)


def _timed(make: Callable[[], MarkovQuilt]) -> tuple[MarkovQuilt, float]:
    start = time.process_time()
    made = make()
    return made, time.process_time() - start


def _row(name: str, scale: float, other: float, seconds: float, note: str = "") -> None:
    print(f"  {name:<44} {scale:>12.4f} {other:>12.4f} {1000 * seconds:>9.1f} ms  {note}")


def _scales() -> None:
    print("T = 100, epsilon 1, L1 constant 1: scale, group privacy's, time")
    for name, rows, start, published in _PAPER:
        chain = MarkovChain(transition=rows, start=start)
        for note, model in (("exact", chain), ("approximate", MarkovChainClass.covering(chain))):

            def make(model: MarkovChain | MarkovChainClass = model) -> MarkovQuilt:
                return MarkovQuilt(chain=model, length=100, lipschitz=1, epsilon=1.0)

            quilt, seconds = _timed(make)
            known = f"paper's algorithm: {published}" if note == "exact" else ""
            _row(f"{name}, {note}", quilt.scale, quilt.group_scale, seconds, known)


def _electricity() -> None:
    print("T = 1,000,000, epsilon 1, histogram: scale, group privacy's, time")
    generator = np.random.default_rng(1)
    near = np.exp(-np.abs(np.subtract.outer(np.arange(51), np.arange(51))) / 4)
    chains = {
        "51 states, neighbors": near / near.sum(axis=1, keepdims=True),
        "50 states, stays 9 of 10": 0.1 * generator.dirichlet(np.ones(50), 50) + 0.9 * np.eye(50),
    }
    for name, rows in chains.items():
        for start in (None, np.eye(len(rows))[0]):
            chain = MarkovChain(transition=rows, start=start)

            def make(chain: MarkovChain = chain) -> MarkovQuilt:
                return MarkovQuilt(chain=chain, length=1_000_000, lipschitz=2, epsilon=1.0, entries=51)

            quilt, seconds = _timed(make)
            begins = "stationary" if start is None else "known start"
            _row(f"{name}, {begins}", quilt.scale, quilt.group_scale, seconds, "limit 10,000 ms")


def _flu() -> None:
    print("flu clique, epsilon 1, count of the sick: scale, group privacy's, time")
    for weights in ((0.1, 0.15, 0.5, 0.15, 0.1), (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)):
        people = len(weights) - 1
        groups = list(itertools.product((0, 1), repeat=people))
        exact = [Fraction(str(weight)) for weight in weights]
        clique = JointDistribution(groups, [exact[sum(g)] / comb(people, sum(g)) for g in groups])
        start = time.process_time()
        secrets = Specification.of_records(models=clique)
        mechanism = WassersteinMechanism(specification=secrets, query=sum, epsilon=1.0)
        _row(f"{people} people", mechanism.scale, people, time.process_time() - start)


_PARTS: Final = {"scales": _scales, "electricity": _electricity, "flu": _flu}


def main(argv: Sequence[str]) -> int:
    """Print one table for each part."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks pufferfish", description=__doc__)
    parser.add_argument("--part", choices=[*_PARTS, "all"], default="all")
    part = parser.parse_args(argv).part
    for name, run in _PARTS.items():
        if part in (name, "all"):
            run()
    return 0
