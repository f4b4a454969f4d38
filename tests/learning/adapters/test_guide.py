"""The guide's code and the example run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.run_time import run_time

if run_time(__name__):
    from examples.text_classifier import encoded, made, main

PAGE = Path(__file__).parents[3] / "docs" / "adapters.md"


@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # lightning's own
@pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning")
def test_the_code_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    space: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), space)  # one after the other, as a reader would


def test_the_example_trains_a_few_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "reviews.csv"
    lines = [f'"{text}",{label}' for text, label in made(400, seed=1)]
    file.write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    assert 0 <= main(["--csv", str(file), "--steps", "2", "--epsilon", "5"]) <= 1
    assert "of 80 reviews, at epsilon 5.00, delta 1e-05" in capsys.readouterr().out


def test_the_example_reads_words_by_a_public_hash() -> None:
    one, same, other = encoded([("a good film", 1), ("A good FILM", 0), ("a bad film", 0)])
    assert one["input_ids"] == same["input_ids"] != other["input_ids"]
    assert one["attention_mask"] == [1] * 3 + [0] * 9
