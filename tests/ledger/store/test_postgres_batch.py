"""What needs no server of a message with several statements."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.ledger.store.postgres_batch import FetchedRows, with_integers


def test_integers_are_written_into_a_statement() -> None:
    found = with_integers("SELECT a FROM b WHERE c > :after OR c = :seen", {"after": 12, "seen": -3})
    assert found == "SELECT a FROM b WHERE c > 12 OR c = -3"


@pytest.mark.parametrize("value", ["1; DROP TABLE event", "", None])
def test_nothing_but_an_integer_is(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        with_integers("SELECT :value", {"value": value})


def test_rows_are_given_once_in_their_order() -> None:
    rows = FetchedRows([(1,), (2,), (3,)])
    assert rows.fetchone() == (1,)
    assert list(rows) == [(2,), (3,)]
    assert rows.fetchone() is None
