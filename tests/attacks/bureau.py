"""The Bureau's programs and solutions that lie beside the tests."""

from __future__ import annotations

import functools
import re
from collections import Counter
from pathlib import Path

import numpy as np

from sfumato.attacks import IntegerProgram, read_lp

DATA = Path(__file__).with_name("data")
TRACTS = {"29183980000": 1, "29165030307": 11, "02198000300": 87}


@functools.cache
def program(tract: str) -> IntegerProgram:
    return read_lp(DATA / f"model_{tract}.lp.xz")


def person(variable: str) -> str | None:
    """Return block, sex, age, races and origin, without the place that tells equal persons apart."""
    found = re.fullmatch(r"C_(\d+)_[a-z]+_[\d.]+_\d+_(.*)", variable)
    return f"{found[1]} {found[2]}" if found else None


def person_types(variables: tuple[str, ...]) -> tuple[np.ndarray, list[str]]:
    """Return each variable's person type, and the types."""
    persons = [person(name) for name in variables]
    types = {name: place for place, name in enumerate(dict.fromkeys(name for name in persons if name))}
    return np.array([types.get(name, -1) if name else -1 for name in persons]), list(types)


def bureau(tract: str) -> Counter[str]:
    """Return the Bureau's persons."""
    lines = (DATA / f"model_{tract}.sol").read_text(encoding="ascii").splitlines()
    chosen = [line.split() for line in lines if not line.startswith("#")]
    return Counter(str(person(name)) for name, value in chosen for _ in range(round(float(value))))
