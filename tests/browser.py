"""A real browser that a test drives: it opens pages, presses keys, asks axe, prints, and ends with the block.

Chromium runs without a window, by the system's own chromedriver, in a profile that is thrown away. The driver
looks for nothing in the network. It puts axe-core into a page, so axe runs whatever the page's policy says.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

__all__ = ["Browser", "browsing", "needed", "text_of_pdf"]

SECONDS: Final = 60
OPTIONS: Final = (
    "--headless=new",
    "--no-sandbox",  # which needs more rights than tests have
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
)
_RUN_AXE: Final = """
const finished = arguments[arguments.length - 1];
axe.run(document).then(
  found => finished(found.violations.map(
    each => each.impact + " " + each.id + ": " + each.nodes.map(node => node.html).join(" ")
  )),
  error => finished(["axe did not run: " + error])
);
"""
_MISSING: Final = (
    "the browser's tests need {what}: apt-get install chromium chromium-driver; "
    "pip install --group browser '.[pdf]'; pip install --no-deps axe-playwright-python"
)


class Browser:
    """A browser with one page open.

    Parameters
    ----------
    driver : selenium.webdriver.Chrome
        For whatever is not here.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, address: str | Path) -> None:
        """Open a page, by its address or its file."""
        self.driver.get(address.as_uri() if isinstance(address, Path) else address)

    def scripts(self, *, on: bool) -> None:
        """Let the scripts of pages that are opened from now on run, or not; axe needs them on."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not on})

    def run(self, script: str, *given: Any) -> Any:
        """Return what a script of the test's own returns, which runs in any case."""
        return self.driver.execute_script(script, *given)

    def wait_for(self, script: str) -> Any:
        """Return what a script returns, once that is something."""
        wait = needed("selenium.webdriver.support.wait")
        return wait.WebDriverWait(self.driver, SECONDS).until(lambda _: self.run(script))

    def resize(self, width: int, height: int = 800) -> None:
        """Give the page a size in pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def save_files(self, folder: Path) -> None:
        """Put what pages send as files into a folder, from now on."""
        place = {"behavior": "allow", "downloadPath": str(folder)}
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", place)

    def begin_anew(self) -> None:
        """Open no page, and forget who is signed in anywhere."""
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def violations(self) -> list[str]:
        """Return what axe has against the page: all rules that it runs by default, best practices too."""
        if not self.run("return 'axe' in window"):  # half a megabyte, which a page keeps
            self.run(_axe())
        found: list[str] = self.driver.execute_async_script(_RUN_AXE)
        return found

    def press(self, *keys: str) -> None:
        """Press keys of `selenium.webdriver.common.keys.Keys`, or type text, wherever the focus is."""
        needed("selenium.webdriver").ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> str:
        """Return the tag of what has the focus, with its id or its class: ``a#first``, ``div.scroll``."""
        found: str = self.run(
            "const at = document.activeElement;"
            "return at.localName + (at.id ? '#' + at.id : at.className ? '.' + at.className : '');"
        )
        return found

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        return base64.b64decode(self.driver.print_page())


@contextmanager
def browsing() -> Iterator[Browser]:
    """Start a browser, and end it and its driver with the block."""
    webdriver = needed("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = _program("chromium", "chromium-browser", "google-chrome")
    service = webdriver.ChromeService(_program("chromedriver"))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        service.env = os.environ | {"HOME": profile}
        for option in (*OPTIONS, f"--user-data-dir={profile}"):
            options.add_argument(option)
        driver = webdriver.Chrome(options=options, service=service)
        try:
            driver.set_page_load_timeout(SECONDS)
            driver.set_script_timeout(SECONDS)
            yield Browser(driver)
        finally:
            driver.quit()


def text_of_pdf(pdf: bytes) -> str:
    """Return the text of all pages, with single spaces, and letters in place of ligatures."""
    pages = needed("pypdf").PdfReader(io.BytesIO(pdf)).pages
    text = unicodedata.normalize("NFKC", " ".join(page.extract_text() for page in pages))
    return " ".join(text.split())


def needed(library: str) -> Any:
    """Return a library of the browser's tier; without it skip the test, but in CI fail."""
    try:
        return import_module(library)
    except ModuleNotFoundError:
        _stand_aside(library.partition(".")[0])


@cache
def _axe() -> str:
    """Return axe-core's source, from a package of which nothing else is used."""
    found = find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        _stand_aside("axe-core")
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def _program(*names: str) -> str:
    found = next((path for name in names if (path := shutil.which(name))), None)
    return found or _stand_aside(names[0])


def _stand_aside(what: str) -> NoReturn:
    """Skip the test, but in CI fail."""
    missing = _MISSING.format(what=what)
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)
