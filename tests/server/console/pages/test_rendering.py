"""Templates: all compile, their frame is accessible, and what is shown is escaped."""

from __future__ import annotations

from importlib import resources

from sfumato.server.console.access.identity import PUBLIC
from sfumato.server.console.pages.answer import Page
from sfumato.server.console.pages.rendering import Renderer


def test_all_templates_compile() -> None:
    renderer = Renderer("data", frozenset())
    names = [file.name for file in resources.files("sfumato.server.console").joinpath("templates").iterdir()]
    assert len(names) > 15
    for name in names:
        renderer.template(name)


def test_text_is_escaped_and_a_token_made_only_for_a_form() -> None:
    renderer = Renderer("<data>", frozenset({"/releases"}))
    page = Page(template="message.html", title="<b>", facts={"message": "<i>\u202e\n", "back": ""})
    asked: list[str] = []

    def token() -> str:
        asked.append("a form")
        return "token"

    html = renderer.html(page, PUBLIC, path="/releases/1", csrf=token)
    for tag in ("<b>", "<i>", "<data>"):
        assert tag not in html
    assert "\u202e" not in html
    assert asked == []
    assert '<a href="/releases" aria-current="page">' in html
    assert '<html lang="en">' in html
    signing = Page(template="sign_in.html", title="Sign in", facts={"refused": "", "oidc": False})
    assert 'value="token"' in renderer.html(signing, PUBLIC, path="/sign-in", csrf=token)
