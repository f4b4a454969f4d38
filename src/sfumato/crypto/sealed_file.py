"""A small encrypted and authenticated file, locked by one process and replaced as a whole."""

from __future__ import annotations

import os
import stat
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sfumato import _check
from sfumato._durable import lock_beside, replace_file, sync_folder, write_file
from sfumato.errors import SourceError

__all__ = ["KEY_BYTES", "SealedFile", "key_from"]

KEY_BYTES: Final = 32
_MAGIC: Final = b"sfmtMEMO"
_VERSION: Final = 1
_HEADER: Final = struct.Struct("<8sHI12s")
"""Magic, version, bytes of the public part that follows, nonce."""
_MAX_BYTES: Final = 1 << 28


@final
class SealedFile:
    """A file with a public and a secret part, encrypted with AES-256-GCM; both parts are authenticated.

    Parameters
    ----------
    path : Path
        The file. Beside it are ``.lock``, which one process holds at a time, and during a write ``.new``. A
        symbolic link is followed.
    key : bytes
        32 secret bytes.

    Raises
    ------
    SourceError
        If another process holds the file, or its folder cannot be written.

    Notes
    -----
    Each write draws a nonce of 96 bits: with one key write at most 2^32 times (NIST SP 800-38D).

    Examples
    --------
    >>> import os, tempfile
    >>> from pathlib import Path
    >>> file = SealedFile(Path(tempfile.mkdtemp()) / "memos", os.urandom(32))
    >>> file.write(b"public", b"secret")
    >>> file.read()
    (b'public', b'secret')
    >>> file.close()
    """

    __slots__ = ("_cipher", "_lock", "_path", "_process")

    def __init__(self, path: Path, key: bytes) -> None:
        self._cipher, self._process = AESGCM(key), os.getpid()
        # Links are resolved, so that every name of the file has the same lock.
        self._path = Path(os.path.realpath(path))
        self._lock: int | None = _locked(self._path)

    @property
    def exists(self) -> bool:
        """Whether the file has been written."""
        return self._path.exists()

    def read(self) -> tuple[bytes, bytes]:
        """Return the public and the secret part, after checking that neither was altered.

        Returns
        -------
        tuple of bytes
            The public part and the secret part.

        Raises
        ------
        SourceError
            If the file is missing, altered, of another version, or sealed with another key.
        """
        try:
            with self._path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except OSError:
            _refuse("be a file that can be read", self._path, "create() makes one: see what that costs")
        if len(data) < _HEADER.size or not data.startswith(_MAGIC):
            _refuse("be a memo store", self._path, "name another file")
        _, version, size, nonce = _HEADER.unpack_from(data)
        if version != _VERSION:
            _refuse(f"be of version {_VERSION}", self._path, "use a newer sfumato")
        start = _HEADER.size + size
        try:
            secret = self._cipher.decrypt(nonce, data[start:], data[:start])
        except (InvalidTag, ValueError):
            _refuse("be whole, unaltered and of this key", self._path, "a backup of it and its key may be")
        return data[_HEADER.size : start], secret

    def write(self, public: bytes, secret: bytes) -> None:
        """Replace the file: on disk when this returns, all of it or nothing.

        Parameters
        ----------
        public : bytes
            Stored in the clear, authenticated.
        secret : bytes
            Encrypted and authenticated.

        Raises
        ------
        SourceError
            If the file was closed, is used from another process, or cannot be written.
        """
        if self._lock is None or os.getpid() != self._process:
            _refuse("be open, and in the process that opened it", self._path, "open it again")
        nonce = os.urandom(12)
        header = _HEADER.pack(_MAGIC, _VERSION, len(public), nonce) + public
        draft = self._path.with_name(self._path.name + ".new")
        try:
            replace_file(self._path, draft, header + self._cipher.encrypt(nonce, secret, header))
        except OSError:
            _refuse("be written before a report leaves", self._path, "make room, and report again")

    def close(self) -> None:
        """Let another process have the file; calling it again does nothing."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def key_from(given: object, *, create: bool) -> bytes:
    """Return a key that is given, or stored in a file.

    Parameters
    ----------
    given : bytes or path
        32 secret bytes, or the path of a file that holds them: this user's, and readable by nobody else.
    create : bool
        Whether to draw a new key where the file is missing.

    Returns
    -------
    bytes
        `KEY_BYTES` of them.

    Raises
    ------
    ParameterError
        If it is neither 32 bytes nor a path.
    SourceError
        If the file cannot be read, is readable by others, or holds no key.
    """
    if isinstance(given, bytes):
        if len(given) != KEY_BYTES:
            _check.refuse("key", f"be {KEY_BYTES} secret bytes", len(given), "pass os.urandom(32)")
        return given
    if not isinstance(given, str | os.PathLike):
        _check.refuse_type(
            "key",
            f"be {KEY_BYTES} secret bytes or a file of them",
            given,
            "pass bytes or a path",
        )
    path = Path(given)
    if create and not path.exists():
        _keep_new(path)
    try:
        held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(held, "rb") as file:
            facts = os.fstat(held)
            key = file.read(KEY_BYTES + 1)
    except OSError:
        _refuse("be a file that can be read, and no link", path, "name the file that the key is in", "key")
    if not stat.S_ISREG(facts.st_mode) or facts.st_mode & 0o077 or facts.st_uid != os.geteuid():
        _refuse("be a file that this user alone can read", path, "chmod 600 it", "key")
    if len(key) != KEY_BYTES:
        _refuse(f"be a file of {KEY_BYTES} bytes", path, "name the file that the key is in", "key")
    return key


def _keep_new(path: Path) -> None:
    """Draw a key and store it, unless another process was faster."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        write_file(draft, os.urandom(KEY_BYTES))
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
        sync_folder(path.parent)
    except OSError:
        _refuse("be in a folder that can be written", path, "name another", "key")


def _locked(path: Path) -> int:
    """Hold the lock beside a file for as long as the descriptor is open."""
    try:
        return lock_beside(path)
    except BlockingIOError:
        _refuse("be free", path, "another store holds it: close that one first")
    except OSError:
        _refuse("be in a folder that can be written", path, "name another")


def _refuse(rule: str, path: Path, remedy: str, name: str = "store") -> NoReturn:
    raise SourceError(f"{name} must {rule}, got {str(path)!r}; {remedy}") from None
