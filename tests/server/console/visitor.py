"""Somebody at the console who has a keyboard and nothing else: no mouse, and no scripts in the pages.

What is to be pressed or filled in is found by the words that stand on the page, and reached by Tab.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from tests.browser import Browser, needed

__all__ = ["TICKED", "WIDTHS", "Visitor"]

TICKED: Final = "ticked"
"""What a box is filled in with."""

WIDTHS: Final = (360, 1200)
"""Of a telephone and of a desk, in pixels."""

_MOST: Final = 120
"""Maximum number of times that Tab is pressed for one thing."""

_UNDER: Final = """
const under = (heading, things) => {
  const found = [...document.querySelectorAll(`h2, ${things}`)];
  if (!heading) return found.filter(each => each.matches(things));
  const begins = found.findIndex(each => each.matches("h2") && each.textContent.trim() === heading);
  if (begins < 0) return [];
  const ends = found.findIndex((each, place) => place > begins && each.matches("h2"));
  return found.slice(begins + 1, ends < 0 ? undefined : ends);
};
"""
_PRESSED: Final = f"""{_UNDER}
const [words, begins, heading] = arguments;
return under(heading, "a[href], button").find(each => {{
  const said = each.textContent.replace(/\\s+/g, " ").trim();
  return begins ? said.startsWith(words) : said === words;
}});
"""
_FILLED: Final = f"""{_UNDER}
const [words, heading] = arguments;
const label = under(heading, "label").find(each => each.textContent.trim() === words);
return label && document.getElementById(label.htmlFor);
"""
_SENDS: Final = """
const form = arguments[0].form;
return form ? [form.method, new URL(form.action).pathname] : [];
"""
_OPTIONS: Final = """
const select = arguments[0];
return [[...select.options].map(each => each.text), select.selectedIndex];
"""
_TICKED: Final = """
const set = [...document.querySelectorAll("fieldset")].find(
  each => each.querySelector("legend").textContent.trim() === arguments[0]
);
return set ? [...set.querySelectorAll("input[type=checkbox]")] : [];
"""
_PAGE: Final = "return document.documentElement"
_WHOLE: Final = "return document.readyState === 'complete' ? document.documentElement : null"
_SECONDS: Final = 60
_TEXT: Final = "return document.body.innerText"
_SOME: Final = """
const some = "a[href], button, input, select, textarea, [tabindex='0']";
const stops = [...document.querySelectorAll(some)].filter(each => each.type !== "hidden");
"""
_AHEAD: Final = f"""{_SOME}
return stops.indexOf(arguments[0]) - stops.indexOf(document.activeElement);
"""
_STOPS: Final = f"""{_SOME}
window.reached = [];
document.addEventListener("focusin", event => {{
  const style = getComputedStyle(event.target);
  const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  reached.push([stops.indexOf(event.target), seen && event.target.getBoundingClientRect().right > 0]);
}});
return stops.map(each => each.outerHTML.slice(0, 80));
"""
_PARTS: Final = """
const some = "main :is(h1, h2, caption, [role=alert])";
return [...document.querySelectorAll(some)].map(each => each.role || each.textContent);
"""
_FOCUS: Final = "return document.activeElement"


class Visitor:
    """A person with a keyboard.

    Parameters
    ----------
    browser : Browser
    origin : str
        Of the console.
    """

    def __init__(self, browser: Browser, origin: str) -> None:
        self.browser, self.origin = browser, origin
        self.keys: Any = needed("selenium.webdriver.common.keys").Keys
        self.pressed = 0
        self.filled = 0
        self.name = ""
        browser.scripts(on=False)

    @property
    def text(self) -> str:
        """What stands on the page."""
        found: str = self.browser.run(_TEXT)
        return found

    @property
    def path(self) -> str:
        """Where the page is."""
        return str(self.browser.driver.current_url).removeprefix(self.origin)

    def page(self) -> Any:
        """Return the element of the page's document."""
        return self.browser.run(_PAGE)

    def open(self, path: str) -> None:
        """Open a page of the console by its address."""
        self.browser.open(f"{self.origin}{path}")

    def finds(self, words: str) -> bool:
        """Return whether there is something to press with these words; an ellipsis stands for more."""
        return self._thing(words) is not None

    def press(self, words: str, under: str = "", *, comes: bool = True) -> list[str]:
        """Press a link or a button, and wait for the page that comes, if one does.

        Parameters
        ----------
        words : str
            That stand on it; an ellipsis at their end stands for more.
        under : str
            The heading that it stands under, where that says which one is meant.
        comes : bool
            Whether a page comes; with a file none does.

        Returns
        -------
        list of str
            Of a form that was sent, its method and its path.
        """
        thing = self._thing(words, under)
        assert thing is not None, f"nothing to press says {words!r} on {self.path}: {self.text}"
        self._reach(thing)
        sends: list[str] = self.browser.run(_SENDS, thing)
        with self._another_page() if comes else nullcontext():
            self.browser.press(self.keys.ENTER)
        self.pressed += 1
        return sends

    def press_enter(self) -> list[str]:
        """Press Enter in the field that was filled in last, and wait for the page; return what was sent."""
        sends: list[str] = self.browser.run(_SENDS, self.browser.run(_FOCUS))
        with self._another_page():
            self.browser.press(self.keys.ENTER)
        return sends

    def fill(self, words: str, text: str, under: str = "") -> None:
        """Fill in the field of a label in place of what is there: type, choose by the arrows, or tick it."""
        field = self.browser.run(_FILLED, words, under)
        assert field is not None, f"no field is called {words!r} on {self.path}: {self.text}"
        self._reach(field)
        if field.tag_name == "select":
            options, chosen = self.browser.run(_OPTIONS, field)
            steps = options.index(text) - chosen
            self.browser.press((self.keys.ARROW_DOWN if steps > 0 else self.keys.ARROW_UP) * abs(steps))
            assert self.browser.run(_OPTIONS, field)[1] == options.index(text)
        elif field.get_attribute("type") == "checkbox":
            self.browser.press(self.keys.SPACE)
            assert field.is_selected() is (text == TICKED)
        else:
            keys, chains = self.keys, needed("selenium.webdriver").ActionChains(self.browser.driver)
            chains.key_down(keys.CONTROL).send_keys("a").key_up(keys.CONTROL).send_keys(text).perform()
        self.filled += 1

    def hint(self, words: str) -> str:
        """Return what is said of the field of a label."""
        field = self.browser.run(_FILLED, words).get_attribute("aria-describedby")
        found: str = self.browser.run("return document.getElementById(arguments[0]).textContent", field)
        return found

    def tick(self, words: str) -> int:
        """Tick everything under a heading of boxes; return how many there are."""
        boxes = self.browser.run(_TICKED, words)
        for box in boxes:
            self._reach(box)
            self.browser.press(self.keys.SPACE)
            assert box.is_selected()
        self.filled += len(boxes)
        return len(boxes)

    def go_back(self) -> None:
        """Go back to the page before."""
        with self._another_page():
            self.browser.driver.back()

    def sign_in(self, name: str, token: str) -> None:
        """Sign in, after whoever was here before is signed out."""
        if self.name:
            self.sign_out()
        elif not self.finds("Sign in"):
            self.open("/releases")
        if self.path != "/sign-in":
            self.press("Sign in")
        self.fill("Token", token)
        self.press("Sign in")
        self.name = name
        assert f"Signed in as {name}" in self.text

    def sign_out(self) -> None:
        """Sign out."""
        if not self.finds("Sign out"):  # a release's page is of its own
            self.open("/releases")
        self.press("Sign out")
        self.name = ""

    def violations(self, widths: Sequence[int] = WIDTHS) -> list[str]:
        """Return what axe has against this page, on a telephone and on a desk."""
        found = []
        with self._scripts():
            for width in widths:
                self.browser.resize(width)
                found += [f"{width}: {each}" for each in self.browser.violations()]
        return found

    def stops(self) -> list[str]:
        """Return what Tab should come to and does not, in the order of the page, or comes to unseen.

        The first stop leads to the content.
        """
        with self._scripts():  # of which the page has none: it is the test's own that notes where Tab comes
            self.browser.driver.refresh()
            expected: list[str] = self.browser.run(_STOPS)
            self.browser.press(self.keys.TAB * len(expected))
            reached = self.browser.run("return reached")
        missed = [
            each for place, each in enumerate(expected) if reached[place : place + 1] != [[place, True]]
        ]
        self.browser.driver.refresh()
        self.browser.press(self.keys.TAB, self.keys.ENTER)
        return missed if self.browser.focused() == "main#content" else ["the content", *missed]

    def menu(self) -> list[str]:
        """Return the paths of the screens that the page offers."""
        found: list[str] = self.browser.run(
            "return [...document.querySelectorAll('nav[aria-label=Screens] a')].map(each => each.pathname)"
        )
        return found

    def parts(self) -> tuple[str, ...]:
        """Return what tells this page from others of its kind: headings, tables, and that it warns."""
        return tuple(self.browser.run(_PARTS))

    def signed_in_as(self) -> str:
        """Return the name that the page says somebody is signed in by; "" where it names nobody."""
        found: str = self.browser.run("return document.querySelector('header .who bdi')?.textContent ?? ''")
        return found

    def _thing(self, words: str, under: str = "") -> Any:
        links = [words.removesuffix("…").rstrip(), words.endswith("…")]
        if links[0] == "Sign in" and self.path == "/sign-in":  # the button, not the link to this page
            return self.browser.run("return document.querySelector('main button')")
        return self.browser.run(_PRESSED, *links, under)

    def _reach(self, thing: Any) -> None:
        """Press Tab until something has the focus: first as often as the order of the page says."""
        ahead = self.browser.run(_AHEAD, thing)
        if ahead > 0:
            self.browser.press(self.keys.TAB * ahead)
        elif ahead < 0:
            keys, chains = self.keys, needed("selenium.webdriver").ActionChains(self.browser.driver)
            chains.key_down(keys.SHIFT).send_keys(keys.TAB * -ahead).key_up(keys.SHIFT).perform()
        for _ in range(_MOST):
            if self.browser.run(_FOCUS) == thing:
                return
            self.browser.press(self.keys.TAB)
        raise AssertionError(f"Tab does not reach {thing.get_attribute('outerHTML')} on {self.path}")

    @contextmanager
    def _another_page(self) -> Iterator[None]:
        """Wait at the end until a page has come in place of this one."""
        before = self.page()
        yield
        self.await_page(before)

    def await_page(self, before: Any) -> None:
        """Wait until a page has come in place of one, by the element of its document."""
        wait = needed("selenium.webdriver.support.wait").WebDriverWait(self.browser.driver, _SECONDS, 0.02)
        wait.until(lambda _: self.browser.run(_WHOLE) not in (None, before))

    @contextmanager
    def _scripts(self) -> Iterator[None]:
        self.browser.scripts(on=True)
        try:
            yield
        finally:
            self.browser.scripts(on=False)


def read_only(visitor: Visitor) -> Mapping[str, str]:
    """Return what stands in the fields that are there to be copied."""
    found: dict[str, str] = visitor.browser.run(
        "return Object.fromEntries([...document.querySelectorAll('textarea[readonly]')]"
        ".map(each => [document.querySelector(`label[for=${each.id}]`).textContent.trim(), each.value]))"
    )
    return found
