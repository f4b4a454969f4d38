"""The options of commands that serve with TLS."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from sfumato import _check

__all__ = ["Certificate", "CertificateKey", "certificate_pair"]

Certificate: TypeAlias = Annotated[Path | None, typer.Option("--certificate", help="For TLS, PEM.")]
CertificateKey: TypeAlias = Annotated[Path | None, typer.Option("--certificate-key", help="Its key, PEM.")]


def certificate_pair(certificate: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    """Return both files, or None where neither is given.

    Raises
    ------
    ParameterError
        If one is given without the other.

    Examples
    --------
    >>> certificate_pair(Path("a.pem"), None)
    Traceback (most recent call last):
    ...
    sfumato.errors.ParameterError: --certificate must come with --certificate-key, ...
    """
    if (certificate is None) != (key is None):
        _check.refuse("--certificate", "come with --certificate-key", None, "pass both, or a proxy with TLS")
    return None if certificate is None or key is None else (certificate, key)
