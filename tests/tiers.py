"""Which cases of a test run when: the tiers of CONTRIBUTING.md, decided while tests are collected.

Every case belongs to one tier. What needs a server, Node, a browser or a peer's environment is marked so. Of
every other test the first case runs by default, or the cases that ``sharpest`` names instead, and the rest is
``exhaustive``:

    @pytest.mark.sharpest("open-0.01", "closed-0.99")
    @pytest.mark.parametrize("p", [0.01, 0.5, 0.99])
    @pytest.mark.parametrize("kind", ["open", "closed"])
    def test_it(p: float, kind: str) -> None: ...

A test, or one parameter of it, that takes seconds and has a quicker sibling is marked ``exhaustive`` by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

__all__ = ["SERVERS", "TIERS", "Tiers"]

SERVERS = ("postgres", "spark", "node", "browser", "peers")
"""The tiers that need more than the README's command installs."""

TIERS = ("exhaustive", *SERVERS)
"""The tiers that do not run by default."""


class Tiers:
    """The plugin: marks as ``exhaustive`` what neither runs by default nor needs a server."""

    @pytest.hookimpl(wrapper=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Collector, name: str, obj: object) -> Any:
        """See all cases of one function, before the command line chooses among them."""
        made = yield
        if isinstance(made, list):
            _split([item for item in made if isinstance(item, pytest.Function)])
        return made


def _split(cases: Sequence[pytest.Function]) -> None:
    """Leave the sharpest cases of a function as they are, and mark the others."""
    free = [case for case in cases if not _tier(case)]
    sharpest = _named(cases)
    for place, case in enumerate(free):
        if (_id(case) not in sharpest) if sharpest else place:
            case.add_marker("exhaustive")


def _tier(case: pytest.Function) -> str | None:
    """The tier that a case is marked with by hand."""
    tiers = {mark.name for mark in case.iter_markers()} & set(TIERS)
    if len(tiers) > 1:
        pytest.fail(f"{case.nodeid} must be in one tier, got {' and '.join(sorted(tiers))}", pytrace=False)
    return tiers.pop() if tiers else None


def _id(case: pytest.Function) -> str:
    """What stands between the brackets."""
    return str(case.callspec.id) if hasattr(case, "callspec") else ""


def _named(cases: Sequence[pytest.Function]) -> set[str]:
    """The ids that ``sharpest`` names, each of which must be a case's."""
    marker = cases[0].get_closest_marker("sharpest") if cases else None
    if marker is None:
        return set()
    wrong = sorted(set(marker.args) - {_id(case) for case in cases}) or (not marker.args and "nothing")
    if wrong or marker.kwargs:
        pytest.fail(
            f"sharpest must name cases of {cases[0].nodeid.partition('[')[0]}, got {wrong or marker.kwargs}; "
            f"choose from {', '.join(map(_id, cases))}",
            pytrace=False,
        )
    return set(marker.args)
