"""The texts of pages: the same keys and names in each language, all of them used."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path
from string import Formatter

import pytest

import sfumato.report
from sfumato.errors import ParameterError
from sfumato.report.texts.catalog import LANGUAGES, Texts

SOURCE = Path(sfumato.report.__file__).parent


def names_of(language: str) -> dict[str, set[str | None]]:
    text = resources.files("sfumato.report.texts").joinpath(f"{language}.toml").read_text(encoding="utf-8")
    return {
        f"{section}.{name}": {field for _, field, _, _ in Formatter().parse(said) if field is not None}
        for section, texts in tomllib.loads(text).items()
        for name, said in texts.items()
    }


def test_each_language_has_each_text_with_the_same_names() -> None:
    english = names_of("en")
    assert {file.stem for file in (SOURCE / "texts").glob("*.toml")} == set(LANGUAGES)
    for language in LANGUAGES:
        assert names_of(language) == english


def test_no_text_is_left_over_and_none_is_missing() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    sections = "|".join({key.partition(".")[0] for key in names_of("en")})
    asked = set(re.findall(rf'"((?:{sections})\.[a-z_0-9]+)"', source))
    assert asked == set(names_of("en"))


def test_german_is_no_english() -> None:
    english, german = Texts("en"), Texts("de")
    values = {name: "x" for names in names_of("en").values() for name in names if name}
    same = {key for key in names_of("en") if english(key, **values) == german(key, **values)}
    assert same <= {"check.ledger", "check.file", "check.export", "model.ledger", "model.software"}


def test_what_is_filled_in_is_escaped() -> None:
    assert Texts("en")("page.purpose", purpose="<i>") == "Purpose: &lt;i&gt;"
    with pytest.raises(ParameterError, match="language must be one of en, de, got 'fr'"):
        Texts("fr")
