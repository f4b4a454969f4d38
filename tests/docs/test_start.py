"""The pages that a newcomer reads first: their code runs, and their maps are those of the tree."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import sfumato

ROOT = Path(__file__).parents[2]
SOURCE = Path(sfumato.__file__).parent
ACS = SOURCE / "cli" / "data" / "acs.parquet"


def blocks(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.sharpest("README.md", "docs/quickstart.md", "docs/index.md")
@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md", "docs/index.md"])
def test_the_code_of_the_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ACS, tmp_path / "acs.parquet")
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    assert found
    space: dict[str, object] = {}
    for block in found:
        exec(compile(block, page, "exec"), space)  # one after the other, as a reader would
    people = space["people"]
    assert isinstance(people, sfumato.Session)
    people.close()


@pytest.mark.sharpest("README.md", "CONTRIBUTING.md", "docs/architecture.md")
@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_the_map_of_the_page_is_that_of_the_tree(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(?:src/sfumato/)?([a-z]+)` \| .+ \|$", text, re.MULTILINE)
    assert sorted(rows) == sorted(face.parent.name for face in SOURCE.glob("*/__init__.py"))


def test_the_picture_of_the_readme_is_of_its_query() -> None:
    drawn = (ROOT / "docs" / "pictures" / "answer.py").read_text(encoding="utf-8")
    (asked,) = re.findall(r'QUERY = """(.*?)"""', drawn, re.DOTALL)
    (shown,) = re.findall(r'people\.sql\("""(.*?)"""', blocks("README.md")[0], re.DOTALL)
    assert asked.split() == shown.split()
    assert (ROOT / "docs" / "pictures" / "answer.svg").is_file()
    assert "docs/pictures/answer.svg" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_ends_before_anyone_scrolls_twice() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first = text.index("## Try it")
    assert text[:first].count("\n") < 30
    assert text.count("\n") < 130
