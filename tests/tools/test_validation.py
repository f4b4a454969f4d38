"""numpydoc's validation, read from the source: what it must find in a docstring, and what it must leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import cases
from tools.measures.command import House, Limits

pytest.importorskip("numpydoc", reason="numpydoc is in the group of packages for developers")

FACE = '"""A face."""\nfrom demo.leaf import Leaf, grow\n__all__ = ["Leaf", "grow"]\n'

BASE = '''"""Bases."""
from dataclasses import dataclass

@dataclass(kw_only=True)
class Plant:
    """A plant.

    Parameters
    ----------
    height : float
        In metres.
    """

    height: float
    age: int = 0
    count: int = field(init=False)
'''

LEAF = '''"""A leaf."""
from dataclasses import dataclass
from demo.base import Plant

@dataclass(kw_only=True)
class Leaf(Plant):
    """A leaf.

    Parameters
    ----------
    width : float
        In metres.
    height : float
        In metres.
    """

    width: float
    colour: ClassVar[str] = "green"
    _cells: int = 0

    @property
    def area(self) -> float:
        """Square metres."""
        return self.width * self.height

    @overload
    def shown(self) -> str: ...

def grow(leaf: Leaf, days: int, *, light: float = 1.0, **_: object) -> Leaf:
    """Return the leaf after some days.

    Parameters
    ----------
    leaf, days
        What grows, and how long.
    light : float
        In lux.

    Returns
    -------
    Leaf
    """
    return leaf
'''

CHECKS = ["all", "ES01", "SA01", "EX01", "GL01", "GL02", "GL03", "PR04", "PR07", "RT03", "YD01"]


def faults(folder: Path, leaf: str) -> list[str]:
    """The faults of a small package with this module."""
    root = folder / "demo"
    root.mkdir(exist_ok=True)
    for name, text in {"__init__": FACE, "base": BASE, "leaf": leaf}.items():
        (root / f"{name}.py").write_text(text, encoding="utf-8")
    found = House(root, frozenset(), Limits(docstrings=CHECKS)).faults()
    return [fault for fault in found if fault.partition(": ")[2][:2] in {"GL", "SS", "PR", "RT", "Th"}]


def test_a_sound_docstring_has_no_fault(tmp_path: Path) -> None:
    assert faults(tmp_path, LEAF) == []


@cases(
    "old, new, fault",
    [
        ("width : float\n        In metres.\n    ", "", "Leaf: PR01 Parameters {'width'} not documented"),
        ("leaf, days\n", "leaf\n", "grow: PR01 Parameters {'days'} not documented"),
        ("leaf, days\n", "days, leaf\n", "grow: PR03 Wrong parameters order."),
        ("width : float\n", "breadth, width : float\n", "Leaf: PR02 Unknown parameters {'breadth'}"),
        ("height : float\n", "height, count : float\n", "Leaf: PR02 Unknown parameters {'count'}"),
        ("light : float", "light : string", 'grow: PR06 Parameter "light" type should use "str"'),
        ("In lux.", "in lux", 'grow: PR08 Parameter "light" description should start with a capital'),
        ("In lux.", "in lux", 'grow: PR09 Parameter "light" description should finish with "."'),
        ("\n    Returns\n    -------\n    Leaf\n", "", "grow: RT01 No Returns section found"),
        ("    Leaf\n    ", "    it : Leaf\n    ", "grow: RT02 The first line of the Returns section"),
        ("Square metres.", "Square metres", "Leaf.area: SS03 Summary does not end with a period"),
        ("Return the", "Returns the", "grow: SS05 Summary must start with infinitive verb"),
        ("Returns\n    -------", "Gives\n    -----", 'grow: GL06 Found unknown section "Gives".'),
        (
            "    Returns\n    -------",
            "    Parameters\n    ----------",
            "grow: The section Parameters appears",
        ),
        ('"""Square metres."""', "pass", "Leaf.area: GL08 The object does not have a docstring"),
    ],
)
def test_each_fault_is_named(tmp_path: Path, old: str, new: str, fault: str) -> None:
    assert old in LEAF
    assert any(line.startswith(f"demo.leaf.{fault}") for line in faults(tmp_path, LEAF.replace(old, new)))
