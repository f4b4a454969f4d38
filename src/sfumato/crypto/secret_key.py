"""The secret keys of the two parties of a shuffled collection: the analyst's and the shuffler's."""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from sfumato import _check
from sfumato._durable import new_file, private_content
from sfumato.crypto.hpke import (
    ROLES,
    PublicKey,
    check_cipher,
    checked_line,
    decoded_line,
    encoded_line,
    unsealed,
)
from sfumato.crypto.hpke_recipient import Recipient
from sfumato.errors import ParameterError, SourceError

__all__ = ["SecretKey"]

_LINE: Final = "sfumato-{role}-secret-2:"
_OLD: Final = "sfumato-{role}-secret-1:"
"""Of lines without algorithms and without a checksum, which are still read."""
_LONGEST: Final = 1000


@final
@dataclass(frozen=True, slots=True, eq=False)
class SecretKey:
    """A secret key: it opens what was sealed for one party, and identifies that party to servers.

    Parameters
    ----------
    role : str
        ``"analyst"`` or ``"shuffler"``.
    seed : bytes
        32 random bytes, from which the key and the word both follow.
    cipher : str
        What messages are encrypted with: ``"chacha20-poly1305"``, or ``"aes-256-gcm"``, which browsers have.

    Attributes
    ----------
    public : PublicKey
        The half to publish.
    word : bytes
        Identifies the owner to a server; the public half holds only its digest.

    Examples
    --------
    >>> key = SecretKey.generate("analyst")
    >>> key.opened(key.public.seal(b"yes", b"context"), b"context")
    b'yes'
    >>> key.public.known_by(key.word)
    True
    """

    role: str
    seed: bytes = field(repr=False)
    cipher: str = "chacha20-poly1305"
    public: PublicKey = field(init=False)
    word: bytes = field(init=False, repr=False)
    _key: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        seed: object = self.seed
        if self.role not in ROLES:
            _check.refuse("role", f"be one of {', '.join(ROLES)}", self.role, "name the owner's role")
        check_cipher(self.cipher)
        if not isinstance(seed, bytes) or len(seed) != 32:
            _check.refuse_type("seed", "be 32 bytes", seed, "use SecretKey.generate(role)")
        key = X25519PrivateKey.from_private_bytes(self._derived(b"seal"))
        word = base64.urlsafe_b64encode(self._derived(b"word"))
        point = key.public_key().public_bytes_raw()
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "word", word)
        public = PublicKey(self.role, point, hashlib.sha256(word).digest(), self.cipher)
        object.__setattr__(self, "public", public)

    def _derived(self, use: bytes) -> bytes:
        info = b"sfumato shuffle 1 " + self.role.encode() + b" " + use
        return HKDFExpand(SHA256(), 32, info).derive(self.seed)

    @staticmethod
    def generate(role: str, cipher: str = "chacha20-poly1305") -> SecretKey:
        """Return a new key, drawn from the operating system's entropy.

        Parameters
        ----------
        role : str
            ``"analyst"`` or ``"shuffler"``.
        cipher : str
            ``"chacha20-poly1305"`` or ``"aes-256-gcm"``.

        Returns
        -------
        SecretKey
        """
        return SecretKey(role, os.urandom(32), cipher)

    def opened(self, sealed: bytes, context: bytes) -> bytes | None:
        """Return a message that was sealed for this key and a context.

        Parameters
        ----------
        sealed : bytes
            What `PublicKey.seal` returned.
        context : bytes
            The context that it was sealed with.

        Returns
        -------
        bytes or None
            None if it was altered, or sealed for another key or context.
        """
        return unsealed(sealed, self._key, context, self.cipher)

    def recipient(self, context: bytes) -> Recipient:
        """Return what opens many messages of one context, in less time than `opened` takes for each.

        Parameters
        ----------
        context : bytes
            The context that they were sealed with.

        Returns
        -------
        Recipient
        """
        return Recipient(self._key, context, self.cipher)

    def to_file(self, path: Path) -> None:
        """Write the key to a new file that its owner alone may read.

        Parameters
        ----------
        path : Path
            Of a file that does not exist yet; created with mode 600.

        Raises
        ------
        ParameterError
            If the file exists already, or cannot be made.
        """
        text = encoded_line(_LINE.format(role=self.role), self.cipher, self.seed) + "\n"
        try:
            new_file(path, text.encode())
        except OSError as error:
            why = (error.strerror or "a failure").lower()
            _check.refuse("the key's file", f"be a new one ({why})", str(path), "name another file")

    @staticmethod
    def from_file(path: Path, role: str) -> SecretKey:
        """Return the key that `to_file` wrote, which must be of the given role.

        Parameters
        ----------
        path : Path
            Of a file that only its owner can read.
        role : str
            ``"analyst"`` or ``"shuffler"``.

        Returns
        -------
        SecretKey

        Raises
        ------
        SourceError
            If the file cannot be read.
        ParameterError
            If others may read it, it is no key of that role, or it is damaged; the message shows nothing of
            it.
        """
        if path.name.startswith(_LINE.format(role=role)):
            # The line of a key, where the name of its file belongs: it is not shown.
            _check.refuse_type("the key's file", "be the name of a file", path, "write the key to a file")
        try:
            content = private_content(path, _LONGEST)
        except OSError as error:
            raise SourceError(f"the key's file must be readable, got {str(path)!r}; check it") from error
        if content is None:
            _check.refuse("the key's file", "be one that its owner alone can read", str(path), "chmod 600 it")
        return SecretKey.from_text(content.decode("ascii", "replace"), role, repr(str(path)))

    @staticmethod
    def from_text(text: str, role: str, where: str = "text") -> SecretKey:
        """Return the key of a line that `to_file` wrote, such as one in the environment of a process.

        Parameters
        ----------
        text : str
            The line.
        role : str
            ``"analyst"`` or ``"shuffler"``.
        where : str
            What errors call the place of the line.

        Returns
        -------
        SecretKey

        Raises
        ------
        ParameterError
            If it is no key of that role, or is damaged; the message shows nothing of it.
        """
        prefix = _LINE.format(role=role)
        whole = decoded_line(text, prefix)
        if whole is not None:
            cipher, seed = checked_line(f"the secret key in {where}", prefix, whole, 32)
            return SecretKey(role, seed, cipher)
        old = decoded_line(text, _OLD.format(role=role))
        if old is None or len(old) != 32:
            raise ParameterError(
                f"{where} must hold the secret key of one {role}, got something else; "
                f"make one with `sfumato shuffle keygen {role}`"
            )
        return SecretKey(role, old)
