"""A page as PDF: its structure for screen readers, all of its text, and what is said without the library."""

from __future__ import annotations

import io
import sys
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from sfumato.errors import MissingExtra
from sfumato.report import ReleasePage
from sfumato.report.markup.pdf import pdf_of
from tests.browser import needed, text_of_pdf
from tests.report.making import kinds_of_pages


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sfumato\[pdf\]'"):
        ReleasePage(html="<!DOCTYPE html>", language="en").to_pdf()


def structure(pdf: bytes) -> tuple[dict[str, Any], list[str], list[str]]:
    """What a PDF says of itself, the tags of its structure, and what pictures are called."""
    root = needed("pypdf").PdfReader(io.BytesIO(pdf)).trailer["/Root"]
    tags: list[str] = []
    names: list[str] = []

    def walk(node: Any) -> None:
        node = node.get_object() if hasattr(node, "get_object") else node
        if isinstance(node, list):
            for each in node:
                walk(each)
        elif isinstance(node, dict):
            if "/S" in node:
                tags.append(node["/S"])
            if "/Alt" in node:
                names.append(node["/Alt"])
            if "/K" in node:
                walk(node["/K"])

    walk(root["/StructTreeRoot"])
    said = {"lang": root["/Lang"], "marked": root["/MarkInfo"]["/Marked"]}
    return (
        {**said, "title": root["/ViewerPreferences"]["/DisplayDocTitle"], "xmp": root["/Metadata"]},
        tags,
        names,
    )


@pytest.mark.browser
@pytest.mark.parametrize("language", ["en", "de"])
def test_each_kind_of_page_is_a_pdf_with_structure_and_all_text(language: str) -> None:
    """In the other language one kind in three; the first of each is the same whenever it is made."""
    needed("weasyprint")
    pages = kinds_of_pages(language)[:: 1 if language == "en" else 3]
    assert len(pages) >= 5
    assert pages[0][1].to_pdf() == pages[0][1].to_pdf()
    for _, page in pages:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pdf = page.to_pdf()
        said, tags, pictures = structure(pdf)
        assert (said["lang"], bool(said["marked"]), bool(said["title"])) == (language, True, True)
        assert b"pdfuaid:part" in said["xmp"].get_data()
        assert tags.count("/H1") == 1
        assert tags.count("/H2") == page.html.count("<h2>")
        # a table, or a list, that goes on on the next sheet is two
        assert tags.count("/TR") >= page.html.count("<tr>")
        assert len(pictures) >= page.html.count("<svg ")
        printed = text_of_pdf(pdf).replace(" ", "")
        for heading in page.html.split("<h2>")[1:]:
            assert "".join(heading.partition("<")[0].split()) in printed


@pytest.mark.browser
def test_nothing_is_fetched(tmp_path: Path) -> None:
    needed("weasyprint")
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    (tmp_path / "secret.txt").write_text("secret")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            here = f"http://127.0.0.1:{server.server_port}/x.png"
            file = (tmp_path / "secret.txt").as_uri()
            body = f'<img src="{here}" alt="none"/><p>text</p><a rel="attachment" href="{file}">file</a>'
            head = f'<head><title>t</title><link rel="stylesheet" href="{here}"/></head>'
            made = pdf_of(f'<!DOCTYPE html><html lang="en">{head}<body>{body}</body></html>')
        finally:
            server.shutdown()
            thread.join()
    assert asked == []
    assert text_of_pdf(made) == "text file none"
    assert b"EmbeddedFile" not in made
