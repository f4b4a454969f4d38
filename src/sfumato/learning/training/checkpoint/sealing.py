"""A run's secrets, sealed in a file apart from its checkpoint, under a key that lies with the ledger."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sfumato._durable import write_whole
from sfumato._wire import BYTES, Format, canonical, parse
from sfumato.errors import LedgerCorrupt, LedgerUnavailable, ParameterError

__all__ = ["RunSecrets", "key_file_of", "read_key", "seal", "unseal"]

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
KEY: Final = Format("sfumato.training-key", 1)
SEALED: Final = Format("sfumato.sealed-run-secrets", 1)
SECRETS: Final = Format("sfumato.run-secrets", 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunSecrets:
    """What a run's noise and batches follow from; neither is shown.

    Parameters
    ----------
    noise_key : bytes of length 32
    sampling_seed : bytes of length 32
    """

    noise_key: bytes = field(repr=False)
    sampling_seed: bytes = field(repr=False)


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
        content = path.read_bytes()
    except OSError as error:
        raise LedgerUnavailable(
            f"training key must be a file beside the ledger, got none at {str(path)!r}; pass key_file="
        ) from error
    (key,) = _fields("training key", KEY, content, "key")
    if len(key) != KEY_BYTES:
        raise LedgerCorrupt(
            f"training key must have {KEY_BYTES} bytes, got {len(key)}; restore it from a backup"
        )
    return key


def _fields(name: str, form: Format, content: bytes, *fields: str) -> tuple[bytes, ...]:
    """Return the fields of a document of bytes.

    Raises
    ------
    LedgerUnavailable
        It is of a later version.
    LedgerCorrupt
        It is none of this format.
    """
    try:
        document = parse(name, content)
    except ParameterError as error:
        raise LedgerCorrupt(f"{name} must be a file of the format {form.name}; restore it") from error
    if not isinstance(document, dict) or document.get("format") != form.name:
        raise LedgerCorrupt(f"{name} must be a file of the format {form.name}, got another; restore it")
    try:
        _, found = form.unwrap(name, document)
    except ParameterError as error:
        raise LedgerUnavailable(str(error)) from error
    if found.keys() != set(fields):
        raise LedgerCorrupt(f"{name} must have the fields {', '.join(fields)}, got others; restore it")
    try:
        return tuple(BYTES.decode(field, found[field]) for field in fields)
    except ParameterError as error:
        raise LedgerCorrupt(f"{name} must hold hexadecimal digits, got others; restore it") from error


def _make(path: Path) -> None:
    """Make a key, whole or not at all: written under another name, then linked to its own."""
    if path.exists():
        return
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    document = KEY.wrap({"key": BYTES.encode(secrets.token_bytes(KEY_BYTES))})
    write_whole(draft, canonical(document).encode(), mode=0o600)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def seal(key: bytes, run: str, content: RunSecrets) -> bytes:
    """Return secrets encrypted for one run (AES-256-GCM).

    Parameters
    ----------
    key : bytes of length 32
    run : str
        Which run they are of: they open for no other.
    content : RunSecrets
    """
    nonce = secrets.token_bytes(NONCE_BYTES)
    fields = {"noise_key": content.noise_key.hex(), "sampling_seed": content.sampling_seed.hex()}
    plain = canonical(SECRETS.wrap(fields))
    encrypted = AESGCM(key).encrypt(nonce, plain.encode(), run.encode())
    return canonical(SEALED.wrap({"nonce": nonce.hex(), "encrypted": encrypted.hex()})).encode()


def unseal(key: bytes, run: str, data: bytes) -> RunSecrets:
    """Return the secrets of one run.

    Raises
    ------
    LedgerUnavailable
        They are of a later version.
    LedgerCorrupt
        They were sealed with another key, for another run, or were altered.
    """
    nonce, encrypted = _fields("secrets", SEALED, data, "nonce", "encrypted")
    try:
        plain = AESGCM(key).decrypt(nonce, encrypted, run.encode())
    except (InvalidTag, ValueError) as error:
        raise LedgerCorrupt(
            "secrets must be those of this run, sealed with the ledger's training key, got others; restore "
            "the file that was saved with the checkpoint"
        ) from error
    noise_key, sampling_seed = _fields("secrets", SECRETS, plain, "noise_key", "sampling_seed")
    return RunSecrets(noise_key=noise_key, sampling_seed=sampling_seed)
