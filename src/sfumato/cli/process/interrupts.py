"""Ctrl-C: exit code 130, and one line that says what was charged, whatever the command was doing."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Final, final

from sfumato.cli.process.failure import failure_line

if TYPE_CHECKING:
    from pathlib import Path

    from sfumato.ledger.ledger import Ledger

__all__ = ["INTERRUPTED", "Interrupts", "interrupts"]

INTERRUPTED: Final = 130
"""Exit code of a command that the keyboard ended, as shells count signals."""

_NOTHING: Final = "interrupted; nothing was charged"
_GRACE: Final = 2.0
"""Seconds that a call of compiled code may delay an interrupt."""


@final
class Interrupts:
    """What this process knows of Ctrl-C, and of the charges that it has made.

    Python hears a signal between two of its own instructions. A call of compiled code that waits, such as for
    a lock of the ledger, can delay that for long; a thread then ends the process in its place.

    Examples
    --------
    >>> Interrupts().line()
    'interrupted; nothing was charged'
    """

    def __init__(self) -> None:
        self._seen = threading.Event()
        self._said = False
        self.as_json = False
        self._stated = ""
        self._ledger: Ledger | None = None
        self._address: str | None = None
        self._checkpoint: Path | None = None

    def install(self) -> None:
        """Listen for Ctrl-C, from the main thread; a process that ignores it goes on ignoring it."""
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return
        signal.signal(signal.SIGINT, self._hear)
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(reading,), name="sfumato-interrupt", daemon=True).start()

    def noticed(self, error: BaseException | None = None) -> bool:
        """Whether Ctrl-C was pressed: a library may have turned it into an error of its own."""
        return self._seen.is_set() or isinstance(error, KeyboardInterrupt)

    @contextlib.contextmanager
    def stating(
        self, ledger: Ledger, address: str | None, *, checkpoint: Path | None = None
    ) -> Iterator[None]:
        """Find out what a ledger was charged, if the block is interrupted.

        Parameters
        ----------
        ledger : Ledger
            What the block charges; open until its end.
        address : str or None
            The ledger's file or address; None where it is in memory.
        checkpoint : Path or None
            What the same command goes on from, once it is there.
        """
        self._ledger, self._address, self._checkpoint = ledger, address, checkpoint
        try:
            yield
        except BaseException as error:
            if self.noticed(error):
                self._stated = self._outcome(certain=True)
            raise
        finally:
            self._ledger = None

    def line(self) -> str:
        """Return the line for the user."""
        return self._stated or _NOTHING

    def say(self) -> None:
        """Print the line to standard error, once."""
        if not self._said:
            self._said = True
            line = failure_line("Interrupted", self.line(), INTERRUPTED, as_json=self.as_json)
            with contextlib.suppress(OSError, ValueError, AttributeError):
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()

    def finish(self) -> None:
        """Ignore Ctrl-C from now on: the command is done, and only Python has to end."""
        if signal.getsignal(signal.SIGINT) == self._hear:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _hear(self, _: int, __: FrameType | None) -> None:
        self._seen.set()
        raise KeyboardInterrupt

    def _watch(self, reading: int) -> None:
        while signal.SIGINT not in os.read(reading, 64):
            pass
        if self._seen.wait(_GRACE):
            return
        if self._ledger is not None:
            self._stated = self._outcome(certain=False)
        self.say()
        os._exit(INTERRUPTED)

    def _outcome(self, *, certain: bool) -> str:
        """Return what was charged; where another thread may be in a commit, that is not certain."""
        ledger, address = self._ledger, self._address
        saved = self._checkpoint is not None and self._checkpoint.exists()
        if ledger is None or not ledger.written:
            return f"{_NOTHING} anew; the same command goes on from {self._checkpoint}" if saved else _NOTHING
        if address is None:
            return "interrupted; the charge ends with this command's budget: no --ledger was named"
        try:
            entries = type(ledger).read(address, lock_timeout=_GRACE)
            with entries:
                found = [entry for entry in entries.entries() if entry.digest in ledger.written]
        except (Exception, KeyboardInterrupt):
            found, certain = [], False
        if not found:
            unknown = "interrupted; it may have been charged: 'sfumato ledger show' says"
            return _NOTHING if certain else unknown
        numbers = ", ".join(str(entry.sequence) for entry in found)
        charges = f"charge {numbers} stays" if len(found) == 1 else f"charges {numbers} stay"
        cost = " + ".join(f"({entry.epsilon:g}, {entry.delta:g})-DP" for entry in found)
        if all(entry.committed for entry in found):
            rest = "with the answer stored: asking again with this --ledger shows it and costs nothing"
        elif any(entry.steps for entry in found):
            rest = "for the run was charged as a whole before its first step"
            rest += f"; the same command goes on from {self._checkpoint}" if saved else ""
        else:
            rest = "for rows may have been read: asking again uses it if no noise was drawn"
        return f"interrupted; {charges}, {cost}, {rest}"


interrupts: Final = Interrupts()
"""Of this process."""
