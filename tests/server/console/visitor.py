"""Somebody at the console who has a keyboard and nothing else: no mouse, and no scripts in the pages.

What is to be pressed or filled in is found by the words that stand on the page, and reached by Tab.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tests.browser import Browser, needed

__all__ = ["WIDTHS", "Visitor"]

WIDTHS: Final = (360, 1200)
"""Of a telephone and of a desk, in pixels."""

_MOST: Final = 120
"""Maximum number of times that Tab is pressed for one thing."""

_PRESSED: Final = """
const [words, begins] = arguments;
return [...document.querySelectorAll("a[href], button")].find(each => {
  const said = each.textContent.replace(/\\s+/g, " ").trim();
  return begins ? said.startsWith(words) : said === words;
});
"""
_FILLED: Final = """
const label = [...document.querySelectorAll("label")].find(each => each.textContent.trim() === arguments[0]);
return label && document.getElementById(label.htmlFor);
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
return Math.max(0, stops.indexOf(arguments[0]) - stops.indexOf(document.activeElement));
"""
_STOPS: Final = f"""{_SOME}
window.stops = stops;
return stops.map(each => each.outerHTML.slice(0, 80));
"""
_STOP: Final = """
const at = document.activeElement, style = getComputedStyle(at);
const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
return [stops.indexOf(at), seen && at.getBoundingClientRect().right > 0];
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

    def press(self, words: str) -> None:
        """Press a link or a button, and wait for the page that comes."""
        thing = self._thing(words)
        assert thing is not None, f"nothing to press says {words!r} on {self.path}: {self.text}"
        self._reach(thing)
        with self._another_page():
            self.browser.press(self.keys.ENTER)
        self.pressed += 1

    def fill(self, words: str, text: str) -> None:
        """Type a text into the field of a label, in place of what is there."""
        field = self.browser.run(_FILLED, words)
        assert field is not None, f"no field is called {words!r} on {self.path}: {self.text}"
        self._reach(field)
        chains = needed("selenium.webdriver").ActionChains(self.browser.driver)
        chains.key_down(self.keys.CONTROL).send_keys("a").key_up(self.keys.CONTROL).send_keys(text).perform()
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
        self.browser.driver.refresh()
        expected: list[str] = self.browser.run(_STOPS)
        missed = []
        for place, each in enumerate(expected):
            self.browser.press(self.keys.TAB)
            if self.browser.run(_STOP) != [place, True]:
                missed.append(each)
        self.browser.driver.refresh()
        self.browser.press(self.keys.TAB, self.keys.ENTER)
        return missed if self.browser.focused() == "main#content" else ["the content", *missed]

    def menu(self) -> list[str]:
        """Return the paths of the screens that the page offers."""
        found: list[str] = self.browser.run(
            "return [...document.querySelectorAll('nav[aria-label=Screens] a')].map(each => each.pathname)"
        )
        return found

    def _thing(self, words: str) -> Any:
        links = [words.removesuffix("…").rstrip(), words.endswith("…")]
        if links[0] == "Sign in" and self.path == "/sign-in":  # the button, not the link to this page
            return self.browser.run("return document.querySelector('main button')")
        return self.browser.run(_PRESSED, *links)

    def _reach(self, thing: Any) -> None:
        """Press Tab until something has the focus: first as often as the order of the page says."""
        if ahead := self.browser.run(_AHEAD, thing):
            self.browser.press(self.keys.TAB * ahead)
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
        wait = needed("selenium.webdriver.support.wait").WebDriverWait(self.browser.driver, _SECONDS, 0.05)
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
