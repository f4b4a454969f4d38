"""Ledgers for tests, in memory, files and on a PostgreSQL server, all closed at the end."""

from __future__ import annotations

import hmac
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring
from tests.postgres import Cluster

At: TypeAlias = Callable[[str], Any]
"""From a name to a place for a ledger of that name."""


def dataset(content: str = "a", schema: str = "people(id BIGINT)") -> Dataset:
    return Dataset(
        schema=schema, fingerprint=lambda key: hmac.new(key, content.encode(), "sha256").hexdigest()
    )


@pytest.fixture
def make_dataset() -> Callable[..., Dataset]:
    return dataset


@pytest.fixture
def opener() -> Iterator[Callable[..., Ledger]]:
    opened: list[Ledger] = []

    def make(path: Path | str | None = None, **changes: Any) -> Ledger:
        usual: dict[str, Any] = {
            "budget": Budget.pure(epsilon=1.0),
            "privacy_unit": "id",
            "neighboring": Neighboring.ADD_REMOVE,
            "dataset": dataset(),
        }
        ledger = Ledger.open(path, **(usual | changes))
        opened.append(ledger)
        return ledger

    yield make
    for ledger in opened:
        ledger.close()


@pytest.fixture
def open_ledger(opener: Callable[..., Ledger]) -> Callable[..., Ledger]:
    """Return `Ledger.open` with usual arguments; without a place the ledger is in memory."""
    return opener


@pytest.fixture(scope="session")
def schemas(postgres: Cluster) -> Callable[[], At]:
    """Return what makes places in one database: schemas that no other test has."""
    url, numbers = postgres.database(), itertools.count(1)

    def make() -> At:
        number = next(numbers)
        return lambda name: f"{url}?schema={name}_{number}"

    return make


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> At:
    """Return places for ledgers, in a folder or in schemas of a database: each test runs on both."""
    if request.param == "file":
        return lambda name: tmp_path / name
    made: At = request.getfixturevalue("schemas")()
    return made


@pytest.fixture
def open_anywhere(at: At, opener: Callable[..., Ledger]) -> Callable[..., Ledger]:
    """Return what `open_ledger` does, but a ledger without a place gets one of the store under test."""
    numbers = itertools.count(1)

    def make(place: Any = None, **changes: Any) -> Ledger:
        return opener(at(f"ledger{next(numbers)}") if place is None else place, **changes)

    return make
