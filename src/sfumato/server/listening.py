"""Where a service listens, with what limits, and what its operator hears."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from sfumato.server.cross_origin import checked_origins
from sfumato.server.limits import Limits

__all__ = ["Listening"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """How a service is reached and watched.

    Parameters
    ----------
    host : str
        An address of this machine.
    port : int
        0 for any that is free.
    limits : Limits
        Of requests and connections; the defaults suit a small machine.
    certificate : tuple of two paths, optional
        A TLS certificate and its key, in PEM; without it, put a proxy with TLS before the service.
    metrics : tuple of str and int, optional
        An address of this machine and a port at which ``/metrics`` is answered.
    say : callable
        Receives lines for the operator; nothing is said of a client.
    structured_log : bool
        Whether each line is a JSON object, with its time.
    origins : sequence of str
        Of pages that may report from browsers, such as ``"https://survey.example"``: none by default.

    Raises
    ------
    ParameterError
        If an origin is none.

    Examples
    --------
    >>> Listening(port=8420).limits.connections
    16384
    """

    host: str = "127.0.0.1"
    port: int = 0
    limits: Limits = field(default_factory=Limits)
    certificate: tuple[Path, Path] | None = None
    metrics: tuple[str, int] | None = None
    say: Callable[[str], None] = print
    structured_log: bool = False
    origins: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "origins", checked_origins(self.origins))
