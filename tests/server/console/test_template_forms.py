"""No form of the console is without somebody who sends it by the keyboard, and none is overlooked."""

from __future__ import annotations

import re
from collections import Counter
from importlib import resources

from sfumato.server.console.screens.catalog import SCREENS
from tests.cases import cases
from tests.server.console.keyboard_forms import FORMS
from tests.server.console.template_forms import MACROS, TemplateForm, forms_in, template_forms


def test_every_form_of_the_templates_is_sent_by_the_keyboard() -> None:
    sent, written = Counter(one.form for one in FORMS), template_forms()
    assert written - sent == Counter(), "add what is typed, said and done to keyboard_forms.FORMS"
    assert set(sent) == set(written), "a form that is no more"


def test_every_route_that_changes_something_has_a_form() -> None:
    routes = {re.sub(r"\{\w+\}", "{}", screen.path) for screen in SCREENS if screen.method == "POST"}
    actions = {form.action for form in template_forms() if form.method == "post"}
    assert actions == routes | {"/sign-in", "/sign-out"}


def test_only_one_macro_writes_forms() -> None:
    templates = resources.files("sfumato.server.console").joinpath("templates")
    source = templates.joinpath(MACROS).read_text(encoding="utf-8")
    assert list(forms_in(MACROS, source)) == [TemplateForm(MACROS, "post", "{}", "…")]
    assert "{% macro post(action, csrf, button) %}\n<form " in source


def test_enter_in_a_field_does_what_the_only_button_says() -> None:
    for file in resources.files("sfumato.server.console").joinpath("templates").iterdir():
        for form in file.read_text(encoding="utf-8").split("<form ")[1:]:
            assert form.partition("</form>")[0].count("<button") == 1, (file.name, form)


CALL = 'forms.post("/a/" ~ b.c ~ "/d", csrf, "E %s" % f)'
EITHER = 'forms.post("/a", csrf, "B" if c else d.e("f"))'


@cases(
    ("source", "forms"),
    [
        (
            '<form class="a" action="/b" method="POST"><p><button name="c">\nD e</button></form>',
            ["post /b D e"],
        ),
        ('<FORM action="/a/{{ b }}"><button>C {{ d }}</button></FORM>', ["get /a/{} C …"]),
        ('<form action="/a"><button>B</button><button>C</button></form>', ["get /a B", "get /a C"]),
        ('<form action="/a"><input type="submit" value="B"></form>', ["get /a B"]),
        ('<form method="post" action="/a"><input name="b"></form>', ["post /a "]),
        ('<form action="/a"><button>B</button></form><button form="c">D</button>', ["get /a B", "  D"]),
        ("{% call " + CALL + " %}{% endcall %}", ["post /a/{}/d E …"]),
        ("{% if a %}{{ " + EITHER + " }}{% endif %}", ["post /a B", "post /a …"]),
        ('{% from "macros.html" import post %}{{ post("/a", csrf, "B") }}', ["post /a B"]),
        ('<p>A form</p><a href="/b">C</a>', []),
    ],
)
def test_forms_are_found_however_they_are_written(source: str, forms: list[str]) -> None:
    assert [" ".join(form[1:]) for form in forms_in("a.html", source)] == forms
