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

__all__ = ["cases", "named"]

Test = Callable[..., None]
Rows = Iterable[Any]


def cases(
    names: str | Sequence[str],
    values: Rows | Callable[[], Rows],
    *,
    ids: Iterable[object] | Callable[[Any], object] | None = None,
) -> Callable[[Test], Test]:
    """Run a test for each of some values of its parameters; several of these make a grid.

    Fixtures are set up once, for all cases.
    """
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    # Enumerations can be called, but are meant as their members; an iterator would serve only once.
    table = list(values) if isinstance(values, Iterable) else values
    told = list(ids) if isinstance(ids, Iterable) else ids

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        assert set(parameters) <= set(signature.parameters), f"{test.__name__} takes no {parameters}"

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            rows = table if isinstance(table, list) else list(table())
            failures, skipped = [], []
            for place, row in enumerate(rows):
                try:
                    test(**fixtures, **dict(zip(parameters, _values(row, parameters), strict=True)))
                except pytest.skip.Exception as skip:
                    skipped.append(skip)
                except (Exception, pytest.fail.Exception) as failure:
                    name = told[place] if isinstance(told, list) else _name(row, parameters, told)
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


def named(table: Mapping[str, Any]) -> list[Any]:
    """The entries of a table as cases, each with the name that it has there."""
    rows = {name: entry if isinstance(entry, tuple) else (entry,) for name, entry in table.items()}
    return [pytest.param(*row, id=name) for name, row in rows.items()]


def _values(row: Any, names: Sequence[str]) -> Sequence[Any]:
    """The values of one case."""
    if _is_param(row):
        assert not row.marks, "a case in a loop carries no marks"
        return tuple(row.values)
    return (row,) if len(names) == 1 else tuple(row)


def _name(row: Any, names: Sequence[str], words: Callable[[Any], object] | None) -> str:
    """What names a case: its id, or its values, in other words where there are any."""
    if _is_param(row) and row.id:
        return str(row.id)
    values = _values(row, names)
    return "-".join(str((words(value) if words else None) or repr(value)) for value in values)


def _is_param(row: object) -> bool:
    """Whether a case was made by pytest.param."""
    return isinstance(row, type(pytest.param(0)))
