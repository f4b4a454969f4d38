"""Errors of the interface, in the form of RFC 9457: ``application/problem+json``.

>>> from sfumato.errors import ParameterError
>>> found = problem_of(ParameterError("page must be at least 1, got 0; begin at 1"))
>>> found.status, found.to_json()["title"], found.to_json()["error"]
(400, 'Bad Request', 'ParameterError')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any, Final, final

from sfumato.errors import BudgetExceeded, SfumatoError
from sfumato.privacy.guarantee import Guarantee
from sfumato.server.asgi import Connection, Refused, Send, answer
from sfumato.server.console.api.plain_values import json_bytes
from sfumato.server.console.asking.job_store import TooManyJobs
from sfumato.server.console.failures import OPERATOR_KNOWS, OPERATORS, status_of

__all__ = ["PROBLEM", "Problem", "problem_of", "refuse_as_problem"]

PROBLEM: Final = "application/problem+json"
_NUMBERS: Final = ("epsilon", "delta", "rho", "mu", "answerable_epsilon", "answerable_delta")


@final
class Problem(Exception):
    """Why a request was not answered.

    Parameters
    ----------
    status : int
        Of HTTP.
    detail : str
        For people; it depends on the request, public facts and the ledger only.
    error : str
        The name of the class of `sfumato.errors` that a client raises; "" for none.
    more : mapping of str to value, optional
        Further members.
    headers : mapping of str to str, optional
    """

    def __init__(
        self,
        *,
        status: int,
        detail: str,
        error: str = "",
        more: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.error = status, detail, error
        self.more, self.headers = more or {}, headers or {}

    def to_json(self) -> dict[str, Any]:
        """Return the document."""
        document = {"title": HTTPStatus(self.status).phrase, "status": self.status, "detail": self.detail}
        return {"type": "about:blank", **document, "error": self.error, **self.more}


def problem_of(error: SfumatoError) -> Problem:
    """Return what is said of an error that sfumato raised on purpose.

    Parameters
    ----------
    error : SfumatoError
    """
    name = next(each.__name__ for each in type(error).__mro__ if each.__module__ == "sfumato.errors")
    status = status_of(error)
    if isinstance(error, OPERATORS):
        return Problem(status=status, detail=OPERATOR_KNOWS, error=name, headers={"retry-after": "1"})
    if isinstance(error, TooManyJobs):
        return Problem(status=status, detail=str(error), headers={"retry-after": "1"})
    more = {}
    if isinstance(error, BudgetExceeded):
        amounts = {"remaining": error.remaining, "requested": error.requested}
        more = {each: _numbers(value) for each, value in amounts.items()}
    return Problem(status=status, detail=str(error), error=name, more=more)


def _numbers(guarantee: object) -> dict[str, float]:
    stated = asdict(guarantee) if isinstance(guarantee, Guarantee) else {}
    return {name: stated[name] for name in _NUMBERS if stated.get(name) is not None}


async def refuse_as_problem(_: Connection, send: Send, refused: Refused) -> None:
    """Answer what a guard refused, in the form of all errors of the interface.

    Parameters
    ----------
    send : callable
    refused : Refused
    """
    content = json_bytes(Problem(status=refused.status, detail=refused.why).to_json())
    extra = [*refused.headers, (b"connection", b"close")]
    known = {name.lower() for name, _ in refused.headers}
    if refused.status in {429, 503} and b"retry-after" not in known:
        extra.append((b"retry-after", b"1"))
    await answer(send, refused.status, content, kind=PROBLEM.encode(), extra=extra)
