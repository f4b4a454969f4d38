"""What a first visit costs: few bytes, and nothing from elsewhere."""

from __future__ import annotations

import re

from tests.server.console.office import MEMBERS, Office

LIMIT = 50_000


def test_a_first_page_with_its_style_is_below_50_kilobytes(asked_office: Office) -> None:
    for name in ("", *MEMBERS):
        first = asked_office.get(name, "/")
        while first.status == 303:
            first = asked_office.get(name, first.location)
        assert first.status == 200
        loaded = re.findall(r'(?:src|<link rel="stylesheet" href)="([^"]+)"', first.text)
        assert loaded == ["/static/console.css"]
        parts = [asked_office.get(name, path).content for path in loaded]
        assert sum(map(len, [first.content, *parts])) < LIMIT
    sign_in = asked_office.get("", "/sign-in").content
    assert len(sign_in) + len(parts[0]) < LIMIT
