"""The forms of the console's templates, as they are written there: what a person can send."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import resources
from typing import NamedTuple

from jinja2 import Environment, nodes

__all__ = ["TemplateForm", "forms_in", "template_forms"]

MACROS = "macros.html"
_SHOWN = re.compile(r"\{\{.*?\}\}")


class TemplateForm(NamedTuple):
    """One button of a form; in texts that the template makes, ``{}`` and ``…`` stand for what differs.

    A button outside of a form has no method, and a form without one has a button without words.
    """

    template: str
    method: str
    action: str
    button: str


def template_forms() -> Counter[TemplateForm]:
    """Return the forms of all templates, each button of one by itself."""
    found = Counter[TemplateForm]()
    for file in resources.files("sfumato.server.console").joinpath("templates").iterdir():
        if file.name != MACROS:
            found.update(forms_in(file.name, file.read_text(encoding="utf-8")))
    return found


def forms_in(template: str, source: str) -> Iterator[TemplateForm]:
    """Yield the forms of one template: those that it writes, and those that a macro writes for it."""
    written = _Written(template)
    written.feed(source)
    yield from written.forms
    for call in Environment(autoescape=True).parse(source).find_all(nodes.Call):
        if getattr(call.node, "attr", getattr(call.node, "name", "")) == "post":
            action, _, button = call.args
            for words in _texts(button, "…"):
                yield TemplateForm(template, "post", "".join(_texts(action, "{}")), words)


class _Written(HTMLParser):
    """Reads forms in HTML."""

    def __init__(self, template: str) -> None:
        super().__init__()
        self._template, self._in = template, ("", "")
        self._button: str | None = None
        self._buttons = 0
        self.forms: list[TemplateForm] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._in = given.get("method", "get").lower(), _SHOWN.sub("{}", given.get("action", ""))
            self._buttons = 0
        elif tag == "button":
            self._button = ""
        elif tag == "input" and given.get("type") in ("submit", "image"):
            self._take(given.get("value", ""))

    def handle_data(self, data: str) -> None:
        if self._button is not None:
            self._button += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "button" and self._button is not None:
            self._take(_SHOWN.sub("…", self._button).strip())
            self._button = None
        elif tag == "form":
            if not self._buttons:
                self._take("")  # nobody can send it but by Enter
            self._in = "", ""

    def _take(self, words: str) -> None:
        self._buttons += 1
        self.forms.append(TemplateForm(self._template, *self._in, words))


def _texts(node: nodes.Node, other: str) -> Iterator[str]:
    """Yield each text that an expression can be, with a sign for the parts that are not written there."""
    if isinstance(node, nodes.Const):
        yield str(node.value)
    elif isinstance(node, nodes.CondExpr):
        yield from _texts(node.expr1, other)
        yield from () if node.expr2 is None else _texts(node.expr2, other)
    elif isinstance(node, nodes.Mod):  # a text with %s
        yield from (re.sub("%s", other, text) for text in _texts(node.left, other))
    elif isinstance(node, nodes.Concat):
        yield "".join(text for part in node.nodes for text in _texts(part, other))
    else:
        yield other
