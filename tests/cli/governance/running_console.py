"""``sfumato console demo`` as a process of its own, and what it printed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RunningDemo", "running_demo"]

_MEMBER = re.compile(r"^ +(\w+) +(\w+) +(http://localhost:\d+)(/\w+) +(sfumato_\w+)$", re.MULTILINE)
_LAST = "Ctrl-C ends the demo.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningDemo:
    """What a visitor reads when the demo has started."""

    text: str
    origin: str
    names: Mapping[str, str]
    """Of members, by role."""
    tokens: Mapping[str, str]
    """Of members, by role."""
    pages: Mapping[str, str]
    """The paths at which they begin, by role."""
    folder: Path
    process: subprocess.Popen[str]

    def stop(self) -> tuple[int, str]:
        """Press Ctrl-C; return the exit code and what else was printed."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out + err


@contextmanager
def running_demo(*options: str) -> Iterator[RunningDemo]:
    """Run the command, and end it by its own id."""
    main = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    main += "from sfumato.cli.main import main; main()"  # in a background shell SIGINT is ignored
    command = [sys.executable, "-c", main, "console", "demo", *options]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            lines = list[str]()
            while not lines or lines[-1] != _LAST:
                lines.append(process.stdout.readline())
                assert lines[-1], process.stderr.read() if process.stderr is not None else ""
            yield _read("".join(lines), process)
        finally:
            process.terminate()  # after which it removes its folder
            process.wait(60)


def _read(text: str, process: subprocess.Popen[str]) -> RunningDemo:
    found = _MEMBER.findall(text)
    key = re.search(r"--key (\S+)", text)
    assert key is not None
    return RunningDemo(
        text=text,
        origin=found[0][2],
        names={role: name for name, role, *_ in found},
        tokens={role: token for _, role, _, _, token in found},
        pages={role: page for _, role, _, page, _ in found},
        folder=Path(key[1]).parent,
        process=process,
    )
