"""TopDown's CPU time and memory at the size of a state's blocks; its errors by level, and its intervals.

Made-up people, in five levels. Time is beside that of measuring alone, which any way needs. Errors are beside
those of the level's noisy counts alone, not negative, and of the same budget spent on blocks and added up.
``python -m benchmarks topdown [--quick]``
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.numerics.blas_threads import one_thread
from sfumato.numerics.randomness.source import SecureSource
from sfumato.privacy import Neighboring
from sfumato.synthetic import Hierarchy, Invariant, TableDomain, TopDown, UnitCounts
from sfumato.synthetic.topdown.cell_query import cell_query
from sfumato.synthetic.topdown.measurement import measure
from sfumato.synthetic.topdown.noise_plan import noise_plan, shares_of
from sfumato.synthetic.topdown.topdown_release import all_levels

__all__ = ["main"]

_SIZES = ((300_000, 108), (60_000, 2016))
_LEVELS = ["state", "county", "tract", "block"]
_RHO = 1.278
_PEOPLE = 10
"""Mean number of people in a block."""


def _hierarchy(blocks: int) -> Hierarchy:
    index = np.arange(blocks)
    units = {name: index // size for name, size in zip(_LEVELS, (6000, 1200, 50, 1), strict=True)}
    return Hierarchy.from_table(pa.table(units), _LEVELS, root="us")


def _domain(cells: int) -> tuple[TableDomain, list[tuple[str, ...]]]:
    if cells == 108:
        domain = TableDomain(age=list(range(9)), race=list(range(6)), hispanic=[0, 1])
        return domain, [(), ("race", "hispanic"), ("age", "race", "hispanic")]
    domain = TableDomain(housing=list(range(8)), age=[0, 1], hispanic=[0, 1], race=list(range(63)))
    pairs = [("race",), ("hispanic",), ("age",), ("housing",), ("hispanic", "race")]
    return domain, [(), *pairs, ("housing", "age", "hispanic", "race")]


def _people(blocks: int, cells: int, seed: int = 0) -> UnitCounts:
    """Return counts of people whose blocks differ in size and whose cells are mostly rare."""
    rng = np.random.default_rng(seed)
    number = blocks * _PEOPLE
    size = rng.gamma(0.6, 1.0, blocks)
    units = rng.choice(blocks, number, p=size / size.sum())
    spots = rng.choice(cells, number, p=rng.dirichlet(np.full(cells, 0.15)))
    return UnitCounts(units, spots, np.ones(number, np.int64))


def _mechanism(blocks: int, cells: int, levels: Any = None) -> TopDown:
    domain, queries = _domain(cells)
    return TopDown(
        hierarchy=_hierarchy(blocks),
        domain=domain,
        queries=queries,
        rho=_RHO,
        levels=levels,
        invariants=[Invariant("us")] if levels is None else [],
    )


def _run(blocks: int, cells: int) -> dict[str, float]:
    """Return CPU seconds, those of measuring alone, and the peak of memory in GiB, of this process."""
    mechanism, people = _mechanism(blocks, cells), _people(blocks, cells)
    before = time.process_time()
    released = mechanism.release(people)
    seconds = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    for depth, level in enumerate(mechanism.hierarchy.levels):
        counts = released.counts(level)
        if depth:
            parents = mechanism.hierarchy.parents[depth - 1]
            sums = np.bincount(parents, weights=counts)
            if not (sums == released.counts(mechanism.hierarchy.levels[depth - 1])).all():
                raise SystemExit("levels do not add up")
    if int(released.counts("us")[0]) != len(people.units):
        raise SystemExit("the invariant does not hold")
    return {"seconds": seconds, "floor": _measuring(mechanism, people), "peak": peak}


def _measuring(mechanism: TopDown, people: UnitCounts) -> float:
    """Return the CPU seconds of counting and of drawing all noise."""
    places, domain, plain = mechanism.hierarchy, mechanism.domain, [1] * len(mechanism.queries)
    queries = [cell_query(domain, each) for each in mechanism.queries]
    shares, relation = shares_of(places, len(plain), None, plain), Neighboring.ADD_REMOVE
    plan = noise_plan(places, queries, shares, Fraction(_RHO), neighboring=relation)
    before = time.process_time()
    levels = all_levels(places, people.lowest(places.size(len(_LEVELS)), domain.cells), domain.cells)
    for depth, counts in enumerate(levels):
        measure(counts, [each for each in plan if each.depth == depth], queries, SecureSource())
    return time.process_time() - before


def _errors(blocks: int) -> None:
    """Print mean absolute errors of totals and of cells of race and origin, by level, three ways."""
    mechanism, people = _mechanism(blocks, 108, dict.fromkeys(["us", *_LEVELS], 1)), _people(blocks, 108)
    below = _mechanism(blocks, 108, {"us": 0, "state": 0, "county": 0, "tract": 0, "block": 1})
    exact = all_levels(mechanism.hierarchy, people.lowest(blocks, 108), 108)
    released, bottom = mechanism.release(people), below.release(people)
    print(f"\n{blocks:,} blocks, rho {_RHO}: mean absolute error")
    print("| level | of a total | noisy count | blocks added | of a cell | noisy count | blocks added |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    added = {query: bottom.measured[4][query].counts for query in (0, 1)}  # type: ignore[index]
    for depth, level in enumerate(mechanism.hierarchy.levels):
        row = [level]
        for query, columns in enumerate(((), ("race", "hispanic"))):
            group = cell_query(mechanism.domain, columns)
            truth = exact[depth].grouped(0, len(exact[depth].starts) - 1, group.group_of, group.groups)
            noisy = released.measured[depth][query].counts  # type: ignore[index]
            sums = np.zeros(truth.shape)
            np.add.at(sums, mechanism.hierarchy.ancestors(depth), added[query])
            ours = released.counts(level, *columns).reshape(truth.shape)
            row += [f"{np.abs(found - truth).mean():.2f}" for found in (ours, np.maximum(noisy, 0), sums)]
        print(f"| {' | '.join(row)} |")


def _coverage(blocks: int, draws: int) -> None:
    """Print how often intervals hold the exact counts, of places across tracts and of empty cells."""
    mechanism, people = _mechanism(blocks, 108, dict.fromkeys(["us", *_LEVELS], 1)), _people(blocks, 108)
    dense = np.zeros((blocks, 108), np.int64)
    np.add.at(dense, (people.units, people.cells), 1)
    released, rng = mechanism.release(people), np.random.default_rng(1)
    names, found = ("all", "empty"), np.zeros((2, 4))
    for _ in range(draws):
        chosen = rng.choice(blocks, 12, replace=False)
        exact = dense[chosen].sum(axis=0).reshape(9, 6, 2)
        table = released.estimate("age", "race", "hispanic", places={"block": chosen.tolist()})
        lower, upper, _ = table.interval(0.95)
        whole = released.counts("block", "age", "race", "hispanic")[chosen].sum(axis=0)
        for row, which in enumerate((exact >= 0, exact == 0)):
            inside = (lower <= exact) & (exact <= upper)
            parts = (inside, np.ones_like(inside), table.counts - exact, whole - exact)
            found[row] += [part[which].sum() for part in parts]
    print(f"\n{draws} sums of 12 blocks chosen at random of {blocks:,}, 108 cells each: intervals of 95 %")
    print("| cells | how many | held | mean error of estimates | of released counts |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, (held, number, ours, theirs) in zip(names, found, strict=True):
        print(
            f"| {name} | {number:,.0f} | {held / number:.3f} | {ours / number:.3f} | {theirs / number:.3f} |"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Print tables of time and memory, of errors, and of coverage."""
    parser = argparse.ArgumentParser(prog="topdown", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the blocks")
    parser.add_argument("--one", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        with one_thread():
            print(json.dumps(_run(*options.one)))
        return 0
    part = 10 if options.quick else 1
    print("| blocks | cells | CPU s | measuring alone | ratio | peak GiB |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for blocks, cells in _SIZES:
        command = [sys.executable, "-m", "benchmarks", "topdown", "--one", str(blocks // part), str(cells)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        ratio = found["seconds"] / found["floor"]
        figures = f"{found['seconds']:.1f} | {found['floor']:.1f} | {ratio:.0f} | {found['peak']:.2f}"
        print(f"| {blocks // part:,} | {cells:,} | {figures} |", flush=True)
    with one_thread():
        _errors(30_000 // part)
        _coverage(6_000, 200 // part)
    return 0
