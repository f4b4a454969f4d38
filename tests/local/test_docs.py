"""The guide to local privacy runs as it stands, from top to bottom."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path

from sfumato import local
from tests.cases import cases

PAGE = (Path(__file__).parents[2] / "docs" / "local.md").read_text(encoding="utf-8")


def test_the_guide_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) > 5
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)


ROWS = re.findall(r"^\| `([\w.]+)` \|[^|]*\|[^|]*\| ([^|]*) \|", PAGE, flags=re.MULTILINE)


def test_every_oracle_has_a_row() -> None:
    assert len(ROWS) == 14


@cases(("name", "told"), ROWS)
def test_the_variances_in_the_guide(name: str, told: str) -> None:
    found = attrgetter(name)(local)(epsilon=1.0, domain=local.Domain(range(1024))).variance(1)
    (number,) = re.findall(r"\d+\.\d+|\d+(?= for)", told)
    digits = len(number.partition(".")[2])
    assert abs(found - float(number)) <= 0.5 * 10**-digits + 0.001 * found
