"""The recipes of CONTRIBUTING.md name files that are there, few of them, and modules that can be imported."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cases import cases

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## How to add\n")[2].partition("\n## ")[0] + "\n##"
RECIPES = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##)", SECTION, re.DOTALL | re.MULTILINE))


def test_there_is_a_recipe_of_each_kind() -> None:
    kinds = ["mechanism", "privacy loss", "engine", "SQL function", "measure", "local protocol"]
    kinds += ["method for published tables", "layer rule"]
    assert [title.split(maxsplit=1)[1] for title in RECIPES] == kinds


@cases("title", list(RECIPES))
def test_a_recipe_is_a_list_of_at_most_five(title: str) -> None:
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", RECIPES[title], re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 1 < len(numbers) <= 5
    assert re.search(r"^(Prove|Show|Every) ", RECIPES[title], re.MULTILINE)
    assert "`python -m pytest tests/" in RECIPES[title].replace("\n", " ")


@cases("title", list(RECIPES))
def test_every_file_that_a_recipe_names_is_there(title: str) -> None:
    named = re.findall(r"(?<![\w/])(?:src|tests|docs|tools|benchmarks)/[\w./-]*\w", RECIPES[title])
    assert len(named) > 2
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_file_that_the_page_names_is_there() -> None:
    quoted = re.findall(r"`((?:\.ci|src|tests|docs|tools|benchmarks)/[^` :]+)", PAGE)
    assert len(quoted) > 30
    assert [name for name in quoted if not any(ROOT.glob(name))] == []
    modules = re.findall(r"`python -m ((?:tests|benchmarks)[\w.]*)", PAGE)
    assert modules
    assert [name for name in modules if not any(ROOT.glob(f"{name.replace('.', '/')}*"))] == []
