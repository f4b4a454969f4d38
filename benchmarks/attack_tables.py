"""Reconstruction from tables: the Census Bureau's three programs, the block of seven persons, many blocks."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from sfumato.attacks import (
    PersonTypes,
    PublishedCounts,
    PublishedTable,
    read_lp,
    reconstruct_blocks,
    solution_variability,
)

__all__ = ["rows"]

_PROGRAMS = Path(__file__).parents[1] / "tests" / "attacks" / "data"
_TRACTS = ("29183980000", "29165030307", "02198000300")


def rows(options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield what was found, and CPU seconds beside the limit."""
    yield ["program", "persons", "certain", "solves", "reading s", "solving s", "limit s (all)"]
    for tract in _TRACTS:
        began = time.process_time()
        program = read_lp(_PROGRAMS / f"model_{tract}.lp.xz")
        read = time.process_time()
        found = solution_variability(program, _person_types(program.variables))
        spent = time.process_time() - read
        cells = [str(found.total), str(found.certain.sum()), str(found.solves)]
        yield [
            f"tract {tract}, {len(program.variables):,}",
            *cells,
            f"{read - began:.2f}",
            f"{spent:.2f}",
            "3",
        ]
    types = PersonTypes({"age": range(18), "sex": "FM", "race": "ABC", "tenure": ("own", "rent")})
    blocks = dict(_blocks(types, 50))
    began = time.process_time()
    done = reconstruct_blocks(types, blocks, progress=lambda _done, _total: None)
    spent = time.process_time() - began
    certain = sum(len(one.reconstruction.certain_persons()) for one in done.values() if one.reconstruction)
    yield ["50 blocks of 30 persons", "1500", str(certain), "", "", f"{spent:.2f}", ""]


def _person_types(variables: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the number of each variable's person type, which leaves the place among equals out."""
    names = [re.sub(r"^(C_\d+)_[a-z]+_[\d.]+_\d+_", r"\1_", name) for name in variables]
    types = {name: place for place, name in enumerate(dict.fromkeys(n for n in names if n[:2] == "C_"))}
    return np.array([types.get(name, -1) for name in names], dtype=np.int64)


def _blocks(types: PersonTypes, count: int) -> Iterator[tuple[str, list[PublishedTable]]]:
    rng = np.random.default_rng(1)
    axes = [("age", "sex"), ("age", "race"), ("sex", "race", "tenure"), ("age", "tenure")]
    for block in range(count):
        persons = types.persons(np.bincount(rng.integers(0, len(types), 30), minlength=len(types)))
        yield str(block), [PublishedCounts.of(persons, types, name="-".join(by), by=by) for by in axes]
