"""Connecting to a console: what such a session can be given, and what the console alone decides."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sfumato import _check
from sfumato.session.remote.bearer_token import BearerToken
from sfumato.session.remote.remote_session import RemoteSession
from sfumato.session.remote.transport import Transport

__all__ = ["connect_console"]


def connect_console(
    address: str,
    *,
    token: str | os.PathLike[str] | None = None,
    purpose: str = "",
    period: str = "",
    defaults: Mapping[str, object] | None = None,
    given: Mapping[str, object] | None = None,
) -> RemoteSession:
    """Return a session with a console; nothing is sent before the first question.

    Parameters
    ----------
    address : str
        ``https://console.example``, or ``http://`` on this machine.
    token : str or path, optional
        The member's; a `pathlib.Path` is its file, and ``SFUMATO_TOKEN`` is taken if there is none.
    purpose, period : str
        As for `sfumato.connect`.
    defaults : mapping of str to object, optional
        ``{"epsilon": 0.1}``: of private SELECTs whose text states none.
    given : mapping of str to object, optional
        Arguments that are for data of one's own; any that is given is refused.

    Returns
    -------
    RemoteSession

    Raises
    ------
    ParameterError
        If the address or the token is none, or something is given that the console decides.
    """
    for name, value in (given or {}).items():
        if value:
            found = "the console decides it"
            _check.refuse_state(name, "be left out for a console's address", found, "leave it out")
    stated = dict(defaults or {})
    epsilon = stated.pop("epsilon", None)
    if stated:
        found = f"there is {min(stated)}"
        _check.refuse_state("defaults", "have epsilon alone for a console", found, "state it in OPTIONS")
    if epsilon is not None:
        epsilon = _check.positive("epsilon", epsilon, "write 0.25, say")
    transport = Transport(address, BearerToken.of(token))
    return RemoteSession(transport, purpose=purpose, period=period, epsilon=epsilon)
