"""Without torch, the parts that need it name the extra; nothing else does."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sfumato._lazy import attach
from sfumato.errors import MissingExtra


def test_a_part_whose_library_is_absent_names_the_extra() -> None:
    lookup, _ = attach(
        "sfumato.learning", {"Engine": "no_such_library.engine"}, extras={"no_such_library": "torch"}
    )
    with pytest.raises(MissingExtra, match=r"Engine needs no_such_library; pip install 'sfumato\[torch\]'"):
        lookup("Engine")


def test_another_missing_module_is_told_as_it_is() -> None:
    lookup, _ = attach("sfumato.learning", {"Engine": "no_such_library.engine"}, extras={"torch": "torch"})
    with pytest.raises(ModuleNotFoundError) as raised:
        lookup("Engine")
    assert not isinstance(raised.value, MissingExtra)


def test_the_room_loads_no_heavy_library() -> None:
    code = "import sys, sfumato.learning; print(sorted({'torch', 'sklearn', 'pandas'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "library"), [("PrivateTrainer", "transformers"), ("PrivacyCallback", "lightning")]
)
def test_an_adapter_whose_library_is_absent_names_the_extra(name: str, library: str) -> None:
    pytest.importorskip("torch")
    code = f"""
import sys

class Absent:
    @staticmethod
    def find_spec(name, *_):
        if name.partition(".")[0] == "{library}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent)
import sfumato.learning
from sfumato.errors import MissingExtra
try:
    sfumato.learning.{name}
except MissingExtra as told:
    print(told)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"{name} needs {library}; pip install 'sfumato[{library}]'"
