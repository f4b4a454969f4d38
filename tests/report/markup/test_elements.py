"""Elements: text cannot become markup."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from sfumato.report.markup.elements import Markup, element, escaped, joined, user_text


@given(st.text())
def test_any_text_stays_text(text: str) -> None:
    shown = user_text(text)
    made = ET.fromstring(element("p", shown, "<&", title="\"'<"))
    (inner,) = made
    assert inner.tag == "bdi"
    assert not list(inner)
    assert inner.tail == "<&"
    assert made.get("title") == "\"'<"
    if text.isprintable():
        assert (inner.text or "") == text


def test_markup_is_not_escaped_twice() -> None:
    made = joined(["<", Markup("<b></b>"), escaped(escaped("&"))])
    assert made == "&lt;<b></b>&amp;"
    assert element("meta", charset="utf-8", http_equiv="x") == '<meta charset="utf-8" http-equiv="x"/>'


def test_directions_and_controls_are_shown_as_escapes() -> None:
    assert user_text("a\u202eb\x00") == "<bdi>a\\u202eb\\x00</bdi>"
    assert user_text("שלום") == "<bdi>שלום</bdi>"
