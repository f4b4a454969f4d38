"""Every measure of the house is broken once, and the check must say so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tools.measures.command import House, Limits, main
from tools.measures.imports import optional_libraries
from tools.measures.sizes import code_lines

FACE = '''"""A face."""
from typing import TYPE_CHECKING
from sfumato._lazy import attach
if TYPE_CHECKING:
    from demo.leaf import Leaf
__all__ = ["Leaf"]
__getattr__, __dir__ = attach(__name__, {"Leaf": "demo.leaf"})
'''

LEAF = '''"""A leaf."""
class Leaf:
    """A class."""
    def grow(self, by: int, *more: int) -> int:
        """Return the size."""
        import pandas
        return by
'''


def house(folder: Path, files: dict[str, str]) -> House:
    root = folder / "demo"
    for name, text in {"__init__.py": FACE, "leaf.py": LEAF, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return House(root, frozenset({"pandas"}))


def test_a_sound_package_has_no_fault(tmp_path: Path) -> None:
    sound = house(tmp_path, {"_private.py": "def bare(x): return x\n"})
    assert sound.faults() == []
    assert sound.measures()["files"] == 3


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("long.py", '"""Doc."""\n' + "x = 1\n" * 400, "demo.long: 401 lines, over 400"),
        ("bare.py", "x = 1\n", "demo.bare: no docstring"),
        ("bare.py", '"""D."""\ndef f() -> int: return 1\n', "demo.bare.f: no docstring"),
        ("bare.py", '"""D."""\ndef f(x) -> int:\n    """D."""\n', "demo.bare.f: not fully typed"),
        ("bare.py", '"""D."""\ndef f(*, x: int):\n    """D."""\n', "demo.bare.f: not fully typed"),
        (
            "bare.py",
            '"""D."""\nclass C:\n    """D."""\n    def m(self) -> None: ...\n',
            "demo.bare.C.m: no docstring",
        ),
        ("_in.py", "def f():\n    import os\n", "demo._in.f: imports os inside the function"),
        ("_in.py", "def f():\n    from . import leaf\n", "demo._in.f: imports demo inside the function"),
        ("_in.py", "def f():\n    import demo.leaf\n", "demo._in.f: imports demo.leaf inside the function"),
        ("_in.py", '__all__ = ["lost"]\n', "demo._in: __all__ names lost, which it does not define"),
        (
            "__init__.py",
            FACE.replace('["Leaf"]', '["Leaf", "Twig"]'),
            "demo: __all__ and what it exports differ in Twig",
        ),
        (
            "__init__.py",
            FACE.replace("import Leaf", "import Twig"),
            "demo: __all__ and what it shows to type checkers differ in Leaf, Twig",
        ),
        (
            "__init__.py",
            FACE.replace("Leaf", "leaf"),
            "demo.leaf is a module and a name of the face; importing the module would hide the name",
        ),
        ("leaf.py", '"""Empty."""\n', "demo.Leaf: demo.leaf does not define it"),
    ],
)
def test_each_breach_is_named(tmp_path: Path, file: str, text: str, fault: str) -> None:
    assert fault in house(tmp_path, {file: text}).faults()


@pytest.mark.parametrize(
    "statement", ["import demo.b", "from demo import b", "from . import b", "from .b import x"]
)
def test_a_circle_is_found_however_it_is_written(tmp_path: Path, statement: str) -> None:
    faults = house(
        tmp_path, {"_a.py": f"{statement}\n", "b.py": '"""D."""\nfrom demo import _a\nx = 1\n'}
    ).faults()
    assert len(faults) == 1
    assert faults[0].startswith("circle of imports: ")


def test_a_circle_through_a_lazy_face_is_found(tmp_path: Path) -> None:
    faults = house(
        tmp_path, {"leaf.py": "from demo import _a\n" + LEAF, "_a.py": "from demo import Leaf\n"}
    ).faults()
    assert any(fault.startswith("circle of imports: ") for fault in faults)


def test_what_only_a_type_checker_reads_closes_a_circle_too(tmp_path: Path) -> None:
    lazy = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from demo import _b\n"
    faults = house(tmp_path, {"_a.py": lazy, "_b.py": "from demo import _a\n"}).faults()
    assert [fault.partition(":")[0] for fault in faults] == ["circle of imports"]


def test_a_crowded_folder_is_named_unless_it_is_a_family(tmp_path: Path) -> None:
    many = {f"room/_m{n}.py": "" for n in range(21)} | {"room/__init__.py": '"""A room."""\n'}
    crowded = house(tmp_path, many)
    assert crowded.faults() == ["demo.room: 21 modules in one folder, over 20"]
    assert replace(crowded, limits=Limits(families=["demo.room"])).faults() == []


def test_a_name_stands_once_in_a_room_but_for_parallel_folders(tmp_path: Path) -> None:
    part = '"""D."""\nclass Part:\n    """D."""\n'
    made = {f"room/{name}": '"""D."""\n' for name in ("__init__.py", "a/__init__.py", "b/__init__.py")}
    twice = house(tmp_path, made | {"room/a/part.py": part, "room/b/part.py": part, "part.py": part})
    modules = "demo.room: one name for demo.room.a.part, demo.room.b.part"
    classes = "demo.room: one name for demo.room.a.part.Part, demo.room.b.part.Part"
    assert twice.faults() == [modules, classes]
    assert replace(twice, limits=Limits(parallel=["demo.room.b"])).faults() == [classes]
    assert replace(twice, limits=Limits(parallel=["demo.room.*"])).faults() == [classes]
    assert replace(twice, limits=Limits(parallel=["demo.*.*"])).faults() == [classes]
    assert replace(twice, limits=Limits(parallel=["demo.room.c"])).faults() == [modules, classes]
    assert replace(twice, limits=Limits(modules_twice=1, classes_twice=1)).faults() == []


def test_a_folder_without_tests_and_tests_without_a_folder_are_named(tmp_path: Path) -> None:
    room = {"room/__init__.py": '"""D."""\n', "room/a.py": '"""D."""\n'}
    tests = tmp_path / "tests"
    (tests / "room" / "gone").mkdir(parents=True)
    (tests / "room" / "gone" / "test_x.py").write_text("")
    mirrored = replace(house(tmp_path, room), tests=tests)
    missing = "room: no tests in a folder of this name"
    assert mirrored.faults() == [missing, "tests/room/gone: no source in a folder of this name"]
    (tests / "room" / "gone" / "test_x.py").rename(tests / "room" / "test_a.py")
    assert mirrored.faults() == []


def test_a_word_of_our_own_is_counted_as_a_whole_word_and_in_names(tmp_path: Path) -> None:
    said = house(tmp_path, {"_a.py": "told = 1\nas_told = 2  # told, untold\n"})
    assert replace(said, limits=Limits(words={"told": 3})).faults() == []
    assert replace(said, limits=Limits(words={"told": 2})).faults() == [
        "the word 'told' stands in the source 3 times, over 2"
    ]


def test_what_public_documentation_lacks_is_measured(tmp_path: Path) -> None:
    poor = house(tmp_path, {})
    assert list(poor.undocumented()) == [
        "demo.leaf.Leaf: no Examples",
        "demo.leaf.Leaf.grow: no Parameters, Returns",
    ]
    assert poor.measures()["documented"] == 0.4
    assert replace(poor, limits=Limits(documented=0.5)).faults() == [
        "40.0% of what public names need is documented, under 50.0%"
    ]


def test_lines_of_code_are_neither_blank_nor_comment_nor_docstring(tmp_path: Path) -> None:
    text = '"""One.\n\nTwo."""\n\n# why\ndef f():\n    """D."""\n    return (\n        1  # one\n    )\n'
    assert code_lines(text) == 4


def test_a_face_may_compute_its_mapping(tmp_path: Path) -> None:
    computed = FACE.replace('{"Leaf": "demo.leaf"}', '{name: f"{__name__}.leaf" for name in __all__}')
    assert computed != FACE
    assert house(tmp_path, {"__init__.py": computed}).faults() == []


def test_long_functions_and_a_long_median_are_named(tmp_path: Path) -> None:
    long = '"""D."""\ndef f() -> None:\n    """D."""\n' + "    print()\n" * 200
    faults = house(tmp_path, {"a.py": long, "b.py": long, "c.py": long}).faults()
    assert any("the median file has 203 lines" in fault for fault in faults)
    assert any("demo.a.f (202)" in fault for fault in faults)


def test_only_extras_may_be_imported_late() -> None:
    project = {
        "project": {"optional-dependencies": {"x": ["Scikit-Learn>=1", "polars[a]"], "test": ["pytest"]}}
    }
    assert optional_libraries(project) == {"sklearn", "polars"}


def test_the_command_fails_when_there_is_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    house(tmp_path, {})
    arguments = [str(tmp_path / "demo"), "--project", str(tmp_path / "pyproject.toml")]
    assert main(arguments) == 1
    assert "fault: demo.leaf.grow: imports pandas inside the function" in capsys.readouterr().out
    (tmp_path / "demo" / "leaf.py").write_text(LEAF.replace("import pandas", "pass"), encoding="utf-8")
    assert main(arguments) == 0
    assert capsys.readouterr().out.endswith("0 faults\n")
