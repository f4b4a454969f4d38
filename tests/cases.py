"""Many small cases in one test, which runs them all and reports each that fails.

``cases`` takes what ``pytest.mark.parametrize`` takes, and in its place makes a loop: for tables of refusals
and of texts, and for grids, whose single cases take milliseconds. What must not be computed while pytest
collects (`tests.run_time`) is given as a function without arguments.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

__all__ = ["cases"]

Test = Callable[..., None]
Rows = Iterable[Any] | Mapping[str, Any]


def cases(
    names: str | Sequence[str],
    values: Rows | Callable[[], Rows],
    *,
    ids: Iterable[object] | Callable[[Any], object] | None = None,
) -> Callable[[Test], Test]:
    """Run a test for each of some values of its parameters; several of these make a grid.

    A mapping's keys name its cases. Fixtures are set up once, for all cases.
    """
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        assert set(parameters) <= set(signature.parameters), f"{test.__name__} takes no {parameters}"

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            given = values() if callable(values) else values
            rows = list(given.values() if isinstance(given, Mapping) else given)
            failures, skipped = [], []
            for row, name in zip(rows, given if isinstance(given, Mapping) else _ids(rows, ids), strict=True):
                try:
                    test(**fixtures, **_arguments(parameters, row))
                except pytest.skip.Exception as skip:
                    skipped.append(skip)
                except (Exception, pytest.fail.Exception) as failure:
                    failure.add_note(f"case: {name}")
                    failures.append(failure)
            assert rows, "a test must have cases"
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(rows)} cases failed", failures)
            if len(skipped) == len(rows):
                raise skipped[0]

        left = [value for name, value in signature.parameters.items() if name not in parameters]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def _arguments(names: Sequence[str], row: Any) -> dict[str, Any]:
    """The values of one case by the names of the parameters."""
    if _is_param(row):
        assert not row.marks, "a case in a loop carries no marks"
        return dict(zip(names, row.values, strict=True))
    return {names[0]: row} if len(names) == 1 else dict(zip(names, row, strict=True))


def _ids(rows: Sequence[Any], ids: Iterable[object] | Callable[[Any], object] | None) -> list[str]:
    """What names each case in a report."""
    if ids is not None and not callable(ids):
        return [str(name) for name in ids]
    named = [row.id if _is_param(row) and row.id else (ids(row) if ids else None) for row in rows]
    shown = [repr(row.values if _is_param(row) else row) for row in rows]
    return [str(name or value) for name, value in zip(named, shown, strict=True)]


def _is_param(row: object) -> bool:
    """Whether a case was made by pytest.param."""
    return isinstance(row, type(pytest.param(0)))
