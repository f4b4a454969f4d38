"""What pytest is asked to collect."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

__all__ = ["TIERS", "file_of", "markers_for", "options"]

TIERS = ("exhaustive", "postgres", "spark", "node", "browser", "peers")
"""Marks of tests that run only when they are wanted."""


def markers_for(wanted: Collection[str] = (), project: Path = Path("pyproject.toml")) -> str:
    """Return which tests run, as pytest's ``-m``: all but the project's tiers that are not wanted."""
    tables = tomllib.loads(project.read_text(encoding="utf-8")) if project.exists() else {}
    lines = tables.get("tool", {}).get("pytest", {}).get("ini_options", {}).get("markers", [])
    declared = {line.partition(":")[0].strip() for line in lines}
    return " and ".join(f"not {tier}" for tier in TIERS if tier in declared - set(wanted))


def options(markers: str) -> list[str]:
    """Return what pytest is given beside the tests, to run them in its own process."""
    found = ["--doctest-modules", "--import-mode=importlib", "-p", "no:cacheprovider", "-m", markers]
    found += ["--rootdir", ".", *(["-c", "pyproject.toml"] if Path("pyproject.toml").exists() else [])]
    return found + (["-n", "0"] if find_spec("xdist") else [])


def file_of(tests: str) -> str:
    """Return the file of a module whose doctests are wanted, or the file of tests as it is."""
    found = None if tests.endswith(".py") else find_spec(tests)
    return str(found.origin) if found and found.origin else tests
