"""The entry point of ``sfumato``: it listens for Ctrl-C before it imports anything that takes time."""

from __future__ import annotations

import importlib
import sys

from sfumato.cli.process.failure import wants_json
from sfumato.cli.process.interrupts import INTERRUPTED, interrupts

__all__ = ["main"]


def main() -> None:
    """Run the command line on the arguments of this process."""
    interrupts.install()
    interrupts.as_json = wants_json(sys.argv[1:])
    code: object = 0
    try:
        importlib.import_module("sfumato.cli.commands").run()
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        if not interrupts.noticed(error):
            raise
        code = INTERRUPTED
    if interrupts.noticed() and code not in (0, None):
        code = INTERRUPTED
    if code == INTERRUPTED:
        interrupts.say()
    interrupts.finish()
    sys.exit(code)  # type: ignore[arg-type]
