"""The console's guides: each picture that they name is there, small, and named; no picture is left over."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = DOCS / "pictures" / "console"
PAGES = [DOCS / "console.md", *sorted((DOCS / "console").glob("*.md"))]
PERSONAS = {"analyst", "reviewer", "curator", "auditor", "public"}

_IMAGE = re.compile(r"```\{image\} (\S+)\n:alt: (\S.*)\n```")


def test_each_persona_has_a_guide_with_a_picture() -> None:
    console, index = ((DOCS / name).read_text(encoding="utf-8") for name in ("console.md", "index.md"))
    assert {page.stem for page in PAGES[1:]} == PERSONAS
    for page in PAGES[1:]:
        assert _IMAGE.search(page.read_text(encoding="utf-8")), page.name
        assert f"console/{page.name}" in console
        assert f"console/{page.stem}\n" in index


def test_pictures_are_there_and_small() -> None:
    named = set[Path]()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        images = _IMAGE.findall(text)
        assert len(images) == text.count("{image}"), page.name
        named |= {(page.parent / path).resolve() for path, _ in images}
    there = set(PICTURES.glob("*.png"))
    assert named == there
    sizes = [path.stat().st_size for path in there]
    assert max(sizes) < 60_000
    assert sum(sizes) < 600_000
    assert all(path.read_bytes().startswith(b"\x89PNG\r\n") for path in there)
