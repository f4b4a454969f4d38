"""A collection takes reports from one instant on and until another one, by the clock alone."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.server.periods.collection_window import CollectionWindow

OPENS = dt.datetime(2027, 1, 4, tzinfo=dt.UTC)
OVER = dt.datetime(2027, 1, 11, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))


def test_it_opens_and_ends_to_the_second() -> None:
    start, end = OPENS.timestamp(), OVER.timestamp()
    for now, closed in (
        (start - 0.001, "early"),
        (start, None),
        (end - 0.001, None),
        (end, "expired"),
    ):
        window = CollectionWindow(not_before=OPENS, expires=OVER, now=partial(float, now))
        assert window.closed() == closed
    assert CollectionWindow(now=lambda: 0.0).closed() is None
    assert CollectionWindow().times() == {}
    assert CollectionWindow(expires=OVER).times() == {"expires": "2027-01-11T00:00:00+00:00"}


def test_times_state_their_offset_and_follow_one_another() -> None:
    for changes, told in (
        ({"not_before": OPENS, "expires": OPENS}, "expires must be after not_before 2027-01-04T00:00:00"),
        ({"not_before": OPENS.replace(tzinfo=None)}, "not_before must be a time with its offset from UTC"),
        ({"expires": dt.date(2027, 1, 4)}, "expires must be a time with its offset .*of type date"),
        ({"expires": "2027-01-04T00:00:00Z"}, "expires must be a time with its offset .*of type str"),
    ):
        given: dict[str, Any] = changes
        with pytest.raises(ParameterError, match=told):
            CollectionWindow(**given)
