"""A run's secrets, sealed in a file apart from its checkpoint, under a key that lies with the ledger."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sfumato._durable import write_whole
from sfumato.errors import LedgerCorrupt, LedgerUnavailable

__all__ = ["key_file_of", "read_key", "sealed", "unsealed"]

KEY_BYTES = 32
NONCE_BYTES = 12


def key_file_of(ledger: Path) -> Path:
    """Return where the key lies that seals the secrets of a ledger's runs."""
    return ledger.with_name(f"{ledger.name}.training-key")


def read_key(path: Path, *, make: bool) -> bytes:
    """Return the key in a file, making it if there is none; readable for its owner only.

    Raises
    ------
    LedgerUnavailable
        There is none, or it cannot be made.
    LedgerCorrupt
        It is no key.
    """
    try:
        if make:
            _make(path)
        key = path.read_bytes()
    except OSError as error:
        raise LedgerUnavailable(
            f"training key must be a file beside the ledger, got none at {str(path)!r}; pass key_file="
        ) from error
    if len(key) != KEY_BYTES:
        raise LedgerCorrupt(
            f"training key must have {KEY_BYTES} bytes, got {len(key)}; restore it from a backup"
        )
    return key


def _make(path: Path) -> None:
    """Make a key, whole or not at all: written under another name, then linked to its own."""
    if path.exists():
        return
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    write_whole(draft, secrets.token_bytes(KEY_BYTES), mode=0o600)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def sealed(key: bytes, run: str, content: dict[str, str]) -> bytes:
    """Return secrets encrypted for one run (AES-256-GCM)."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, json.dumps(content).encode(), run.encode())


def unsealed(key: bytes, run: str, data: bytes) -> dict[str, str]:
    """Return the secrets of one run.

    Raises
    ------
    LedgerCorrupt
        They were sealed with another key, for another run, or were altered.
    """
    try:
        plain = AESGCM(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], run.encode())
    except (InvalidTag, ValueError) as error:
        raise LedgerCorrupt(
            "secrets must be those of this run, sealed with the ledger's training key, got others; restore "
            "the file that was saved with the checkpoint"
        ) from error
    content: dict[str, str] = json.loads(plain)
    return content
