"""A keyboard interrupt in tests, also where a process ignores it because it began in the background."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["interrupt", "interruptible"]


@contextmanager
def interruptible() -> Iterator[None]:
    """Let an interrupt of this process raise KeyboardInterrupt, as it does in a terminal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    """Interrupt this process."""
    os.kill(os.getpid(), signal.SIGINT)
