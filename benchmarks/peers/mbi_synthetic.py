"""MST on mbi's models, as its repository has it, which the wheel does not; runs in its own environment."""

import math
from itertools import combinations
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import numpy as np  # noqa: E402
from mbi import Dataset, Domain, LinearMeasurement, estimation  # noqa: E402
from scipy.optimize import brentq  # noqa: E402
from scipy.special import softmax  # noqa: E402
from synthetic_job import Rows, run  # noqa: E402


def mst(rows: Rows, sizes: list[int], epsilon: float, delta: float, seed: int) -> Rows:
    rng, names = np.random.default_rng(seed), [f"c{column}" for column in range(len(sizes))]
    data = Dataset(dict(zip(names, rows.T, strict=True)), Domain(names, sizes))
    # The epsilon of rho by its conversion at every order (Bun, Steinke 2016): rho + 2 sqrt(rho log(1/delta)).
    rho = brentq(lambda r: r + 2 * math.sqrt(r * math.log(1 / delta)) - epsilon, 1e-12, epsilon)
    sigma = math.sqrt(3 / (2 * rho))

    def measured(cliques: Any) -> list[LinearMeasurement]:
        noise = sigma * math.sqrt(len(cliques))
        found = []
        for clique in cliques:
            counts = np.asarray(data.project(clique).datavector())
            found.append(LinearMeasurement(counts + rng.normal(0, noise, counts.size), clique, stddev=noise))
        return found

    columns = measured([(name,) for name in names])
    first = estimation.MirrorDescent().estimate(data.domain, columns, iters=1000)
    errors = {}
    for pair in combinations(names, 2):
        there = np.asarray(data.project(pair).datavector())
        errors[pair] = float(np.abs(there - np.asarray(first.project(pair).datavector())).sum())
    part = {name: name for name in names}
    chosen: list[Any] = []
    scale = math.sqrt(8 * (rho / 3) / (len(names) - 1)) / 2
    while len(chosen) < len(names) - 1:
        open_ = [pair for pair in errors if part[pair[0]] != part[pair[1]]]
        odds = softmax(scale * np.array([errors[pair] for pair in open_]))
        pair = open_[rng.choice(len(open_), p=odds)]
        chosen.append(pair)
        part = {name: part[pair[0]] if at == part[pair[1]] else at for name, at in part.items()}
    model = estimation.MirrorDescent().estimate(data.domain, columns + measured(chosen), iters=1000)
    drawn = model.synthetic_data(rows=len(rows)).to_dict()
    return np.stack([drawn[name] for name in names], axis=1)


run({"MST": mst})
