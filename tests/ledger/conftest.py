"""Ledgers for tests, all closed at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring


def dataset(content: str = "a", schema: str = "people(id BIGINT)") -> Dataset:
    return Dataset(schema=schema, fingerprint=lambda key: key.hex()[:62] + content.encode().hex()[:2])


@pytest.fixture
def make_dataset() -> Callable[..., Dataset]:
    return dataset


@pytest.fixture
def open_ledger() -> Iterator[Callable[..., Ledger]]:
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
