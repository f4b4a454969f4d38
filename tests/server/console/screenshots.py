"""The documentation's pictures of the console, taken while its guide is followed.

``python -m tests.server.console.screenshots`` writes them anew, into ``docs/pictures/console``. It needs what
the browser's tests need. The ledger is a real one: noise, times and digests are others each time.
"""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path
from typing import Final

from tests.browser import browsing, needed
from tests.cli.governance.running_console import running_demo
from tests.server.console.guide import DOCS, follow_guide
from tests.server.console.visitor import Visitor

__all__ = ["FOLDER", "take_pictures"]

FOLDER: Final = DOCS / "pictures" / "console"

_WIDTH: Final = 900
_HEIGHT: Final = 640
_COLORS: Final = 32
_GUIDE: Final = {
    (1, "*What does it cost?*"): "price",
    (2, "*Look again*"): "answer",
    (4, "*Release 1*"): "review",
    (5, "`sfumato review sign statement.json --key KEY`"): "statement",
    (7, "*Release 1*"): "release",
}
"""After which act of the guide a picture is taken, and its name."""

_SCREENS: Final = (
    ("curator", "/budget", "budget"),
    ("curator", "/grants", "grants"),
    ("curator", "/epsilon?epsilon=1", "epsilon"),
    ("auditor", "/log", "log"),
    ("", "/releases", "releases"),
)
"""Who sees which screen, and the picture's name."""


def take_pictures(folder: Path) -> list[Path]:
    """Follow the guide on a demo of its own, and write the pictures.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    list of Path
    """
    found: list[Path] = []
    with running_demo() as demo, browsing() as browser:
        visitor = Visitor(browser, demo.origin)
        browser.resize(_WIDTH, _HEIGHT)
        browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})

        def take(name: str) -> None:
            browser.run("document.activeElement.blur(); scrollTo(0, 0)")
            found.append(folder / f"{name}.png")
            found[-1].write_bytes(_small(base64.b64decode(browser.driver.get_screenshot_as_base64())))

        def seen(step: int, what: str) -> None:
            if name := _GUIDE.get((step, what)):
                take(name)

        follow_guide(demo, visitor, seen)
        for role, path, name in _SCREENS:
            if not role:
                visitor.sign_out()
            elif visitor.name != demo.names[role]:
                visitor.sign_in(demo.names[role], demo.tokens[role])
            visitor.open(path)
            take(name)
    return found


def _small(png: bytes) -> bytes:
    """Return a picture of few colors."""
    with needed("PIL.Image").open(io.BytesIO(png)) as picture, io.BytesIO() as held:
        picture.convert("RGB").quantize(_COLORS, dither=0).save(held, "PNG", optimize=True)
        return held.getvalue()


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in take_pictures(FOLDER):
        sys.stdout.write(f"{path.stat().st_size:6} {path.name}\n")
