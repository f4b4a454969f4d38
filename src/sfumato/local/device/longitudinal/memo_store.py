"""Storage of a device's memos: an encrypted file that is on disk before any report leaves."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, final

import numpy as np

from sfumato import _check
from sfumato.crypto.sealed_file import SealedFile, key_from
from sfumato.errors import ParameterError, SourceError
from sfumato.local.device.longitudinal.memory import MemoizingRandomizer, Memory
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["MemoClient", "MemoStore"]

_PUBLIC: Final = struct.Struct("<BI")
"""Whether simulated, and how many questions; then for each its digest and the bytes of its part."""
_QUESTION: Final = struct.Struct("<32sI")
_COUNT: Final = struct.Struct("<Q")
_MAX_QUESTIONS: Final = 4096
_MAX_BYTES: Final = 1 << 24
_MAX_WRITES: Final = 1 << 32


@final
class MemoStore:
    r"""The memos of one device, for any number of questions.

    Made by `create` and opened by `open`; usable as a context manager.

    Parameters
    ----------
    file : SealedFile
    simulated : bool
        Whether memos may follow from a seed.

    Notes
    -----
    *Before a report leaves*, the memo that it is made of is on disk: written beside, synchronised, and
    renamed over the old file in one step. A device that is killed at any moment has either the old file and
    sent nothing new, or the new one. Every report writes the file, whether there was anything to memoize or
    not, so that neither its bytes nor the two disk synchronisations of a report reveal which; drawing a memo
    takes some time of its own.

    *What the file shows* without the key: that it is a memo store, which questions it is for (the
    digests of their specifications), and its length. The length follows from the questions alone, as each has
    room for all memos that it can ever have. Values, keys, memos and their number are encrypted and
    authenticated (AES-256-GCM), together with the header.

    *Losing it.* A device without its store memoizes anew, and every value that it reports costs its
    ``permanent_epsilon`` again: what stood for the loss of a lifetime then stands for the time up to the next
    loss. That is why `open` never creates. An *older copy* restored over it loses the memos since. The file
    cannot detect that; an application that stores `generation` elsewhere passes it as ``at_least``.

    The store is for one process at a time (a lock beside the file), and for systems with POSIX locks.

    Examples
    --------
    >>> import os, tempfile
    >>> from sfumato.local.device import Domain, LongitudinalUnaryEncodingRandomizer
    >>> asked = LongitudinalUnaryEncodingRandomizer(epsilon=1.0, domain=Domain(["bus", "car", "train"]))
    >>> key, path = os.urandom(32), os.path.join(tempfile.mkdtemp(), "memos")
    >>> with MemoStore.create(path, key) as store:
    ...     monday = store.client(asked).report("bus")
    >>> with MemoStore.open(path, key) as store:
    ...     tuesday = store.client(asked).report("bus")  # made of the same memo
    >>> len(tuesday), store.generation
    (5, 3)
    """

    __slots__ = ("_clients", "_file", "_generation", "_lock", "_parts", "_simulated")

    def __init__(self, file: SealedFile, simulated: bool) -> None:
        self._file, self._simulated = file, simulated
        self._generation = 0
        self._parts: dict[bytes, bytes] = {}
        self._clients: dict[bytes, MemoClient] = {}
        self._lock = threading.Lock()

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], key: bytes | str | os.PathLike[str], *, simulated: bool = False
    ) -> MemoStore:
        """Return a new, empty store; a file that is there is refused.

        Parameters
        ----------
        path : path
            Of the file; its folder must exist.
        key : bytes or path
            32 secret bytes from the application, or a file to store them in, made if it is missing.
        simulated : bool
            Whether ``rng=`` may seed reports; then nobody is protected.

        Returns
        -------
        MemoStore

        Raises
        ------
        SourceError
            If there is a file already, or none can be written.
        """
        store = cls(SealedFile(Path(path), key_from(key, create=True)), simulated)
        if store._file.exists:
            store.close()
            raise SourceError(f"store must be new, got {str(path)!r}, which is there; use MemoStore.open")
        store._save()
        return store

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        key: bytes | str | os.PathLike[str],
        *,
        at_least: int = 0,
    ) -> MemoStore:
        """Return the store that a file holds.

        Parameters
        ----------
        path, key
            As in `create`; a key's file must be there, and be no one else's to read.
        at_least : int
            The last `generation` that the application knows of: an older copy is refused.

        Returns
        -------
        MemoStore

        Raises
        ------
        SourceError
            If there is none, it is of another key or version, altered, cut off, or older than it should be.
        """
        file = SealedFile(Path(path), key_from(key, create=False))
        try:
            public, secret = file.read()
            store = cls(file, bool(public[0]))
            store._take(public, secret)
            store._refuse_older(_check.integer("at_least", at_least))
        except BaseException:
            file.close()
            raise
        return store

    def _refuse_older(self, generation: int) -> None:
        if self._generation < generation:
            raise SourceError(
                f"store must be of generation {generation} or later, got {self._generation}: an older copy; "
                "pass at_least=0 to go on with it, and pay for the memos since once more"
            )

    @property
    def generation(self) -> int:
        """How often the store was written: at least once for each report."""
        return self._generation

    @property
    def simulated(self) -> bool:
        """Whether memos may follow from a seed."""
        return self._simulated

    @property
    def questions(self) -> tuple[bytes, ...]:
        """The digests of the specifications that the store holds memos for."""
        return tuple(self._digests())

    def client(self, protocol: MemoizingRandomizer) -> MemoClient:
        """Return the device's side of one question: the same memos whenever the specification is the same.

        Parameters
        ----------
        protocol : MemoizingRandomizer
            A client half with memos, such as ``device.LongitudinalUnaryEncodingRandomizer``. A changed
            specification, be it by epsilon or by the domain, is another question with memos of its own, and
            losses add up. Two questions of one specification share their memos: whoever sees reports of both
            sees whether the answers are alike. Let the domains differ.

        Returns
        -------
        MemoClient

        Raises
        ------
        ParameterError
            If it does not memoize, or the store would grow beyond 16 MiB or 4096 questions.
        """
        given: object = protocol
        if not isinstance(given, MemoizingRandomizer):
            remedy = "pass a client half of sfumato.local.device that has max_memos"
            _check.refuse_type("protocol", "be one that memoizes", given, remedy)
        with self._lock:
            if given.digest not in self._clients:
                self._clients[given.digest] = self._read(given)
            return self._clients[given.digest]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the store for a change that is on disk on leaving; one that fails writes nothing.

        Yields
        ------
        None
        """
        with self._lock:
            yield
            self._save()

    def close(self) -> None:
        """Let another process have the file; calling it again does nothing."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _digests(self) -> Iterator[bytes]:
        yield from self._parts
        yield from (digest for digest in self._clients if digest not in self._parts)

    def _read(self, protocol: MemoizingRandomizer) -> MemoClient:
        sizes = {digest: len(part) for digest, part in self._parts.items()}
        sizes |= {digest: _part_size(client.protocol) for digest, client in self._clients.items()}
        size = sum((sizes | {protocol.digest: _part_size(protocol)}).values())
        if size > _MAX_BYTES:
            rule = f"leave a store with at most {_MAX_BYTES} bytes, as each report writes it anew"
            _check.refuse("protocol", rule, size, "allow fewer with max_memos, or use another store")
        part = self._parts.get(protocol.digest)
        if part is not None:
            return MemoClient(self, protocol, _unpacked(protocol, part))
        if len(self.questions) >= _MAX_QUESTIONS:
            _check.refuse_type("protocol", "be one of 4096 at most in a store", protocol, "use another store")
        return MemoClient(self, protocol, None)

    def _save(self) -> None:
        """Write everything as it is now."""
        if self._generation >= _MAX_WRITES:
            raise SourceError(
                "store must be written at most 2**32 times with one key, got more; use a new key"
            )
        for digest, client in self._clients.items():
            if client.memory is not None:
                self._parts[digest] = _packed(client.memory)
        public = _PUBLIC.pack(self._simulated, len(self._parts))
        public += b"".join(_QUESTION.pack(digest, len(part)) for digest, part in self._parts.items())
        self._file.write(public, _COUNT.pack(self._generation + 1) + b"".join(self._parts.values()))
        self._generation += 1

    def _take(self, public: bytes, secret: bytes) -> None:
        """Read what `_save` wrote; it is authenticated."""
        _, count = _PUBLIC.unpack_from(public)
        (self._generation,) = _COUNT.unpack_from(secret)
        at = _COUNT.size
        for digest, size in _QUESTION.iter_unpack(
            public[_PUBLIC.size : _PUBLIC.size + count * _QUESTION.size]
        ):
            self._parts[digest] = secret[at : at + size]
            at += size


@final
class MemoClient:
    """One device's side of one question; made by `MemoStore.client`.

    Parameters
    ----------
    store : MemoStore
    protocol : MemoizingRandomizer
    memory : Memory or None
        What the device remembers; None before its first report.

    Examples
    --------
    >>> import os, tempfile
    >>> from sfumato.local.device import Domain, LongitudinalRandomizedResponseRandomizer
    >>> asked = LongitudinalRandomizedResponseRandomizer(epsilon=1.0, domain=Domain(["no", "yes"]))
    >>> with MemoStore.create(os.path.join(tempfile.mkdtemp(), "memos"), os.urandom(32)) as store:
    ...     client = store.client(asked)
    ...     reports = [client.report("yes") for _ in range(3)]
    >>> client.memos  # three reports of one memo
    1
    """

    __slots__ = ("_store", "memory", "protocol")

    def __init__(self, store: MemoStore, protocol: MemoizingRandomizer, memory: Memory | None) -> None:
        self._store, self.protocol, self.memory = store, protocol, memory

    @property
    def generation(self) -> int:
        """That of the store; see `MemoStore.generation`."""
        return self._store.generation

    @property
    def simulated(self) -> bool:
        """Whether memos may follow from a seed."""
        return self._store.simulated

    @property
    def memos(self) -> int:
        """How many memos were drawn: private, it stays on the device."""
        return 0 if self.memory is None else int(self.memory.used[0])

    def report(self, value: Any, rng: Rng = None) -> bytes:
        """Return one report, after what it is made of is on disk.

        Parameters
        ----------
        value
            The truth of now; it does not leave the device. If the device has all the memos that it may have,
            and none of this value, the report is made of the last of them.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; seeds are for simulated stores.

        Returns
        -------
        bytes

        Raises
        ------
        ParameterError
            If the value cannot be reported; the message does not show it.
        SourceError
            If the store cannot be written; then nothing is reported.
        """
        source = random_source(rng)
        if source.simulated and not self._store.simulated:
            raise ParameterError("rng must be None for a store of real memos; create(..., simulated=True)")
        with self._store.writing():
            memory = Memory.started(self.protocol, 1, source) if self.memory is None else self.memory
            memos = memory.recall([value], source)
            record = self.protocol.fresh(memos, memory.fixed, source)
            self.memory = memory
        return record.tobytes()


def _part_size(protocol: MemoizingRandomizer) -> int:
    """Return how many bytes a question has in the file, however many memos are drawn."""
    return _COUNT.size + protocol.fixed_width + protocol.memo_limit * (8 + protocol.memo_width)


def _packed(memory: Memory) -> bytes:
    parts = memory.fixed, memory.keys.astype("<i8"), memory.memos
    return _COUNT.pack(int(memory.used[0])) + b"".join(part.tobytes() for part in parts)


def _unpacked(protocol: MemoizingRandomizer, part: bytes) -> Memory:
    if len(part) != _part_size(protocol):
        raise SourceError(
            "store must hold this question as it is asked, got another; use the version it is of"
        )
    maximum, fixed = protocol.memo_limit, _COUNT.size + protocol.fixed_width
    (used,) = _COUNT.unpack_from(part)
    keys = np.frombuffer(part, "<i8", count=maximum, offset=fixed).astype(np.int64)
    memos = np.frombuffer(part, np.uint8, offset=fixed + 8 * maximum)
    return Memory(
        protocol,
        np.frombuffer(part, np.uint8, count=protocol.fixed_width, offset=_COUNT.size).reshape(1, -1),
        keys.reshape(1, maximum),
        memos.reshape(1, maximum, protocol.memo_width).copy(),
        np.array([used], np.int64),
    )
