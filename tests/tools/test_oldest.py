"""Constraints for the oldest dependencies."""

from __future__ import annotations

import pytest

from tools.oldest import oldest


def project(*needs: str) -> dict[str, object]:
    return {
        "project": {
            "name": "demo",
            "dependencies": [*needs],
            "optional-dependencies": {"x": ["demo[y]", "q>=2"]},
        }
    }


def test_each_lower_bound_becomes_the_newest_patch_of_it() -> None:
    assert list(oldest(project("numpy>=1.26", "rich>=13", "sqlglot>=30,<31"))) == [
        "numpy==1.26.*",
        "rich==13.0.*",
        "sqlglot==30.0.*",
        "q==2.0.*",
    ]


def test_a_dependency_without_a_lower_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="numpy must have a lower bound"):
        list(oldest(project("numpy")))


def test_a_dependency_of_one_version_needs_no_constraint() -> None:
    assert list(oldest(project("torch==2.13.0; python_version == '3.11'"))) == ["q==2.0.*"]
