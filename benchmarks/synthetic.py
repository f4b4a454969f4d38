"""Generators on Adult and the NIST file: total variation distances, CPU seconds, memory, and the floors.

Distances are means over all pairs of at most 10,000 cells and all triples of at most 100,000, between the
rows and as many synthetic ones; the floors are a bootstrap sample of the rows, and rows with every column
shuffled. The area under the curve is that of gradient boosting for income, trained on synthetic rows of four
fifths of Adult and tested on the others. Each job has a process of its own, whose memory is shown.

``python -m benchmarks synthetic --data FOLDER [--seeds N] [--part NAME]``; the folder has
``adult_pgm_discretised.csv`` (data/adult.csv of ryan112358/private-pgm), ``nist_acs_national2019.csv`` and,
for the part ``prior``, ``nist_acs_ma2018.csv`` (national2019.csv and ma2018.csv of usnistgov/SDNist).
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from benchmarks.synthetic_peers import peer_rows
from sfumato.synthetic import (
    AIM,
    MST,
    Categorical,
    IndependentMarginals,
    Marginals,
    Ordered,
    PublicPrior,
    SyntheticModel,
    TableDomain,
)

__all__ = ["main"]

ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
DELTA = 1e-9
ROWS = 10_000_000
GENERATORS: dict[str, tuple[Any, dict[str, Any]]] = {
    "independent": (IndependentMarginals, {}),
    "MST": (MST, {}),
    "AIM, pairs": (AIM, {"workload": Marginals.every(2)}),
    "AIM, triples": (AIM, {"workload": Marginals.every(3), "max_cells": 200_000}),
}


def adult(folder: Path) -> tuple[TableDomain, pa.Table]:
    """Return Adult, discretised, with the domain that is published with it."""
    table = pc.read_csv(folder / "adult_pgm_discretised.csv")
    sizes = zip(table.column_names, ADULT, strict=True)
    return TableDomain({name: Ordered.integers(0, size - 1) for name, size in sizes}), table


def nist(folder: Path, file: str = "nist_acs_national2019.csv") -> tuple[TableDomain, pa.Table]:
    """Return a file of the NIST excerpts, with bins chosen by the dictionary of its variables."""
    options = pc.ConvertOptions(null_values=["N"], strings_can_be_null=True)
    table = pc.read_csv(folder / file, convert_options=options)
    weights = [0, 1, *np.unique(np.geomspace(2, 3000, 40).round()).tolist()]
    income = [-20_000, 0, 1, *np.geomspace(1000, 2_000_000, 48).round(-2).tolist()]
    pumas = (
        "01-01301 06-07502 06-08507 08-00803 13-04600 17-03529 17-03531 19-01700 24-01004 26-02702 28-01100 "
        "29-01901 30-00600 32-00405 36-03710 36-04010 38-00100 40-00200 51-01301 51-51255"
    )
    codes = {"SEX": (1, 2), "MSP": (1, 6), "HISP": (0, 4), "RAC1P": (1, 9), "NOC": (0, 9), "NPF": (2, 12)}
    codes |= {"HOUSING_TYPE": (1, 3), "OWN_RENT": (0, 2), "INDP_CAT": (0, 18), "EDU": (1, 12)}
    codes |= {"PINCP_DECILE": (0, 9), "DVET": (1, 6), "DREM": (1, 2), "DPHY": (1, 2), "DEYE": (1, 2)}
    codes |= {"DEAR": (1, 2)}
    declared: dict[str, object] = {
        "PUMA": Categorical(pumas.split(), other=True),
        "AGEP": Ordered.integers(0, 99),
        "DENSITY": Ordered(edges=np.geomspace(10, 100_000, 41).tolist()),
        "INDP": Ordered(0, 10_000, bins=100, missing=True),
        "PINCP": Ordered(edges=income, missing=True),
        "POVPIP": Ordered(0, 501, bins=50, missing=True),
        "PWGTP": Ordered(edges=weights),
        "WGTP": Ordered(edges=weights),
        **{name: Ordered.integers(*ends, missing=True) for name, ends in codes.items()},
    }
    return TableDomain({name: declared[name] for name in table.column_names}), table


FILES: dict[str, Callable[[Path], tuple[TableDomain, pa.Table]]] = {"Adult": adult, "NIST": nist}


def distances(first: NDArray[np.int64], other: NDArray[np.int64], sizes: Sequence[int], width: int) -> float:
    """Return the mean total variation distance over all tables of so many columns."""

    def shares(rows: NDArray[np.int64], clique: tuple[int, ...], shape: list[int]) -> NDArray[np.float64]:
        flat = np.ravel_multi_index(tuple(rows[:, i] for i in clique), shape)
        return np.bincount(flat, minlength=prod(shape)) / len(rows)

    found = []
    for clique in combinations(range(len(sizes)), width):
        shape = [sizes[i] for i in clique]
        if prod(shape) <= 10 ** (2 + width):
            gap = shares(first, clique, shape) - shares(other, clique, shape)
            found.append(np.abs(gap).sum() / 2)
    return float(np.mean(found))


def synthetic_rows(domain: TableDomain, model: SyntheticModel, seed: int) -> NDArray[np.int64]:
    """Return as many cells as the model has rows."""
    return domain.encode(model.table(rng=seed, within_bins=True))


def job(folder: Path, file: str, name: str, epsilon: float, seed: int) -> dict[str, float]:
    """Fit one model, and return its figures."""
    domain, table = FILES[file](folder)
    kind, given = GENERATORS[name]
    kind.calibrated(domain, epsilon=epsilon, delta=DELTA, **given)  # what is imported first
    before = time.process_time()
    model = kind.calibrated(domain, epsilon=epsilon, delta=DELTA, **given).release(table, rng=seed)
    drawn = synthetic_rows(domain, model, seed)
    seconds = time.process_time() - before
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = domain.encode(table)
    figures = {width: distances(rows, drawn, domain.sizes, width) for width in (2, 3)}
    return {"seconds": seconds, "memory": memory, "pairs": figures[2], "triples": figures[3]}


def turned(table: pa.Table, domain: TableDomain, rng: np.random.Generator) -> pa.Table:
    """Return rows with every other column shuffled: right columns, and no dependence between them."""
    codes = domain.encode(table)
    for column in range(0, len(domain), 2):
        codes[:, column] = rng.permutation(codes[:, column])
    return domain.decode(codes, rng=rng)


def prior_job(folder: Path, name: str, epsilon: float, prior: str, seed: int) -> dict[str, float]:
    """Fit one model of Massachusetts in 2018 with the national file of 2019 as prior; return its figures."""
    domain, table = nist(folder, "nist_acs_ma2018.csv")
    public = nist(folder)[1]
    if prior == "shuffled":
        public = turned(public, domain, np.random.default_rng(0))
    given = None if prior == "none" else PublicPrior.from_table(domain, public)
    kind, options = GENERATORS[name]
    before = time.process_time()
    made = kind.calibrated(domain, epsilon=epsilon, delta=DELTA, prior=given, **options)
    model = made.release(table, rng=seed)
    seconds = time.process_time() - before
    drawn, rows = synthetic_rows(domain, model, seed), domain.encode(table)
    return {"seconds": seconds, "pairs": distances(rows, drawn, domain.sizes, 2)}


def priors(folder: Path, seeds: int) -> Iterator[list[str]]:
    """Yield a row for each epsilon, generator and prior; and one of the prior's own rows."""
    yield ["epsilon", "generator", "prior", "CPU seconds", "pairs"]
    domain, table = nist(folder, "nist_acs_ma2018.csv")
    rows, public = domain.encode(table), domain.encode(nist(folder)[1])
    yield ["", "the prior's rows themselves", "", "", f"{distances(rows, public, domain.sizes, 2):.4f}"]
    for epsilon in (0.1, 0.3):
        for name in list(GENERATORS)[:3]:
            for prior in ("none", "national", "shuffled"):
                runs = [separately(prior_job, folder, name, epsilon, prior, seed) for seed in range(seeds)]
                pairs = float(np.mean([run["pairs"] for run in runs]))
                seconds = max(run["seconds"] for run in runs)
                yield [f"{epsilon:g}", name, prior, f"{seconds:.1f}", f"{pairs:.4f}"]


def separately(function: Callable[..., Any], *given: Any) -> Any:
    """Return what a function returns in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, given)


def generators(folder: Path, seeds: int, file: str, epsilons: Sequence[float]) -> Iterator[list[str]]:
    """Yield a row for each generator and epsilon."""
    yield ["epsilon", "generator", "CPU seconds", "MiB", "pairs", "triples"]
    for epsilon in epsilons:
        for name in list(GENERATORS)[: 4 if file == "Adult" else 3]:
            runs = [separately(job, folder, file, name, epsilon, seed) for seed in range(seeds)]
            seconds, memory = (max(run[key] for run in runs) for key in ("seconds", "memory"))
            means = [f"{np.mean([run[key] for run in runs]):.4f}" for key in ("pairs", "triples")]
            yield [f"{epsilon:g}", name, f"{seconds:.1f}", f"{memory:.0f}", *means]


def floors(folder: Path, file: str) -> Iterator[list[str]]:
    """Yield what no generator can do better or should do worse than."""
    domain, table = FILES[file](folder)
    rows, rng = domain.encode(table), np.random.default_rng(0)
    shuffled = np.stack([rng.permutation(column) for column in rows.T], axis=1)
    yield ["rows", "pairs", "triples"]
    for name, other in (("bootstrap", rows[rng.integers(0, len(rows), len(rows))]), ("shuffled", shuffled)):
        yield [name, *(f"{distances(rows, other, domain.sizes, width):.4f}" for width in (2, 3))]


def classifier(folder: Path, seeds: int) -> Iterator[list[str]]:
    """Yield the area under the curve of classifiers that were trained on synthetic rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - an optional library
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    domain, table = adult(folder)
    order = np.random.default_rng(0).permutation(table.num_rows)
    test, train = (table.take(part) for part in np.split(order, [table.num_rows // 5]))
    held = domain.encode(test)

    def score(rows: NDArray[np.int64]) -> float:
        found = HistGradientBoostingClassifier(random_state=0).fit(rows[:, :-1], rows[:, -1])
        return float(roc_auc_score(held[:, -1], found.predict_proba(held[:, :-1])[:, 1]))

    yield ["trained on", "area under the curve"]
    yield ["rows", f"{score(domain.encode(train)):.3f}"]
    for name in ("MST", "AIM, pairs"):
        kind, given = GENERATORS[name]
        generator = kind.calibrated(domain, epsilon=1.0, delta=DELTA, **given)
        found = [
            score(synthetic_rows(domain, generator.release(train, rng=seed), seed)) for seed in range(seeds)
        ]
        yield [name, f"{np.mean(found):.3f}"]


def peers(folder: Path, seeds: int) -> Iterator[list[str]]:
    """Yield the figures of peers, one core each, of at most 700 CPU seconds."""
    domain, table = adult(folder)
    rows = domain.encode(table)

    def distance(drawn: NDArray[np.int64], width: int) -> float:
        return distances(rows, drawn, domain.sizes, width)

    yield from peer_rows(rows, domain.sizes, distance, epsilon=1.0, delta=DELTA, seeds=seeds, limit=700)


def many(folder: Path) -> tuple[float, float]:
    """Return the CPU seconds and MiB of ten million rows of a model of Adult."""
    domain, table = adult(folder)
    model = AIM.calibrated(domain, epsilon=1.0, delta=DELTA).release(table, rng=0)
    before = time.process_time()
    drawn = model.table(ROWS, rng=0)
    seconds = time.process_time() - before
    assert drawn.num_rows == ROWS
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def large(folder: Path) -> Iterator[list[str]]:
    """Yield the time of a large table."""
    yield ["rows", "CPU seconds", "MiB"]
    seconds, memory = separately(many, folder)
    yield [f"{ROWS:,}", f"{seconds:.1f}", f"{memory:.0f}"]


def main(argv: Sequence[str]) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks synthetic", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parts: dict[str, Callable[[Path, int], Iterator[list[str]]]] = {
        "adult": lambda folder, seeds: generators(folder, seeds, "Adult", (1.0, 0.1)),
        "adult-floors": lambda folder, _: floors(folder, "Adult"),
        "nist": lambda folder, seeds: generators(folder, seeds, "NIST", (1.0, 0.1)),
        "nist-floors": lambda folder, _: floors(folder, "NIST"),
        "prior": priors,
        "peers": peers,
        "classifier": classifier,
        "rows": lambda folder, _: large(folder),
    }
    parser.add_argument("--part", choices=sorted(parts))
    given = parser.parse_args(argv)
    for name, table in parts.items():
        if given.part in (None, name):
            print(f"\n{name}, {given.seeds} seeds")
            for number, row in enumerate(table(given.data, given.seeds)):
                print("| " + " | ".join(row) + " |", flush=True)
                if not number:
                    print("|" + " --- |" * len(row))
    return 0
