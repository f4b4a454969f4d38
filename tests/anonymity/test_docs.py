"""The guide runs as it stands."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Any

from sfumato import anonymity

PAGE = (Path(__file__).parents[2] / "docs" / "anonymity.md").read_text(encoding="utf-8")


def test_the_guide_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 3
    space: dict[str, Any] = {}
    for block in blocks:
        exec(block, space)


def test_every_measure_of_a_column_is_in_the_guide() -> None:
    measures = ("k", "k_map", "alpha", "distinct_l", "entropy_l", "recursive_c", "t", "basic_beta")
    for name in (*measures, "enhanced_beta", "delta_disclosure", "risk"):
        assert isinstance(vars(anonymity.Report)[name], (property, cached_property))
        assert re.search(rf"`(report\.)?{name}`", PAGE), name
