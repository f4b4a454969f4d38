"""The guide to protocols over time runs as it stands, and its figures are what the code gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sfumato import local
from tests.cases import cases

PAGE = (Path(__file__).parents[3] / "docs" / "longitudinal.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| `(\w+)`(?:, `(\w+)=(\d+)`)? \|[^|]*\|[^|]*\| ([^|]*) \| (\d+\.\d) \| (\d+\.\d\d) \|$",
    PAGE,
    flags=re.MULTILINE,
)


def test_the_guide_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 6
    space: dict[str, Any] = {}
    exec(blocks[0], space)
    printed = list(map(float, capsys.readouterr().out.split()))
    said = [
        float(number) for number in re.findall(r"# .*?: (?:just below )?([\d.]+)$", blocks[0], re.MULTILINE)
    ]
    assert printed == pytest.approx(said, rel=2e-3)
    for block in blocks[1:]:
        exec(block, space)
    out = capsys.readouterr().out
    ratio = float(re.search(r"about ([\d.]+)$", blocks[3], re.MULTILINE).group(1))  # type: ignore[union-attr]
    change = space["rounds"].change(1, 2, covariance=space["covariance"]).stddev
    assert (change / space["rounds"].change(1, 2).stddev).mean() == pytest.approx(ratio, abs=0.02)
    assert out.count("\n") > 5


@cases("row", ROWS)
def test_the_table_is_right(row: tuple[str, ...]) -> None:
    name, option, number, most, epsilon, variance = row
    shape: dict[str, Any] = {option: int(number)} if option else {}
    if name != "MemoizedBitFlip":
        shape["permanent_epsilon"] = 2.0
    oracle = getattr(local, name)(epsilon=1.0, domain=local.Domain(range(1024)), max_memos=10, **shape)
    assert oracle.longitudinal_loss().epsilon(0.0) == pytest.approx(float(epsilon), rel=1e-3)
    assert abs(oracle.variance(1) - float(variance)) <= 0.0051
    if most.isdigit():
        assert oracle.device.memo_limit == int(most)
    else:
        assert oracle.device.max_keys == 1024


def test_all_rows_are_read() -> None:
    assert len(ROWS) == 5
