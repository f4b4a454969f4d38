"""A reviewer's Ed25519 key in a PEM file, as OpenSSL and every other program reads it."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato import _check
from sfumato._durable import new_file
from sfumato.cli.output.writing import read_private

__all__ = ["make_signing_key", "read_signing_key"]


def make_signing_key(path: Path, passphrase: bytes | None) -> Ed25519PrivateKey:
    """Write a new key to a new file that its owner alone may read.

    Parameters
    ----------
    path : Path
    passphrase : bytes or None
        What the file is encrypted with; None leaves it plain.
    """
    key = Ed25519PrivateKey.generate()
    protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        protection = serialization.BestAvailableEncryption(passphrase)
    content = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
    try:
        new_file(path, content)
    except OSError as error:
        _check.refuse("key", "be a new file", str(path), error.strerror or "name another one")
    return key


def read_signing_key(path: Path, passphrase: bytes | None) -> Ed25519PrivateKey:
    """Read a key that `make_signing_key`, or OpenSSL, wrote.

    Parameters
    ----------
    path : Path
    passphrase : bytes or None
        What the file is encrypted with.

    Raises
    ------
    ParameterError
        If it is no such key, or others than its owner can read the file.
    """
    content = read_private("key", path)
    try:
        key = serialization.load_pem_private_key(content, passphrase)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        rule = "be a file of an Ed25519 key in PEM"
        remedy = "pass its passphrase by --passphrase-file, if it has one; 'sfumato review keygen' makes one"
        _check.refuse("key", rule, str(path), remedy)
    return key
