"""A console over a ledger of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.browser import Browser, browsing
from tests.server.console.office import Office, make_ledger


@pytest.fixture(scope="session")
def shared_browser() -> Iterator[Browser]:
    """One browser for all tests that need one: it starts slowly."""
    with browsing() as made:
        yield made


@pytest.fixture(scope="module")
def browser(shared_browser: Browser) -> Browser:
    """A browser with no page, in which nobody is signed in."""
    shared_browser.begin_anew()
    return shared_browser


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ed25519PrivateKey]:
    """A ledger to copy, and rita's key."""
    folder = tmp_path_factory.mktemp("office")
    return folder, make_ledger(folder)


@pytest.fixture
def key(tmp_path: Path, made: tuple[Path, Ed25519PrivateKey]) -> Ed25519PrivateKey:
    """Rita's key; with it there is a ledger."""
    shutil.copy(made[0] / "people.ledger", tmp_path)
    return made[1]


@pytest.fixture
def office(tmp_path: Path, key: Ed25519PrivateKey) -> Iterator[Office]:
    """A console over that ledger."""
    made = Office(tmp_path)
    yield made
    made.console.close()
    assert made.failures == []


@pytest.fixture
def asked_office(tmp_path: Path, key: Ed25519PrivateKey) -> Iterator[Office]:
    """A console over that ledger and its data, which answers questions."""
    assert key is not None
    made = Office(tmp_path, data=True)
    made.console.start()
    yield made
    made.console.close()
    assert made.failures == []
