"""The face of the room: what it shows is there, and is imported on first use only."""

from __future__ import annotations

import subprocess
import sys

import sfumato.frames


def test_the_face_shows_what_it_names() -> None:
    assert dir(sfumato.frames) == sorted(sfumato.frames.__all__)
    for name in sfumato.frames.__all__:
        assert getattr(sfumato.frames, name).__module__.startswith("sfumato.frames.")


def test_the_face_loads_nothing_before_it_is_asked() -> None:
    code = "import sys, sfumato.frames; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
