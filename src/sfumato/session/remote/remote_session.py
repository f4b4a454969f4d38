"""A session with a console: the same questions as to one's own data, charged and answered there."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any, Final, Self, final
from urllib.parse import quote

from sfumato import _check
from sfumato.errors import EngineError, QueryCancelled, SourceError
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.neighboring import Neighboring
from sfumato.session.remote.remote_answer import RemoteAnswer
from sfumato.session.remote.transport import Transport

__all__ = ["RemoteSession"]

_ARROW: Final = "application/vnd.apache.arrow.stream"
_LONGEST_PAUSE: Final = 60.0
_ENDED: Final = ("done", "refused", "failed", "cancelled")


@final
class RemoteSession:
    """Asks private questions of a console; made by :func:`~sfumato.connect` for an address.

    Parameters
    ----------
    transport : Transport
    purpose : str
        What the answers are for: one line, which every charge carries.
    period : str
        Where the budget renews, the period that all questions are about.
    epsilon : float, optional
        Of private SELECTs whose text states none.

    Notes
    -----
    Guarantee: a question is charged at most once, however often connections break: it has a random id from
    the first attempt on, under which the console knows it. What is guaranteed to those in the data is the
    console's ledger's, as for `sfumato.session.Session`.
    """

    __slots__ = ("_epsilon", "_period", "_purpose", "_transport")

    def __init__(
        self, transport: Transport, *, purpose: str = "", period: str = "", epsilon: float | None = None
    ) -> None:
        self._transport, self._purpose, self._period, self._epsilon = transport, purpose, period, epsilon

    def sql(
        self, text: str, *, params: Mapping[str, Any] | None = None, request: str | None = None
    ) -> RemoteAnswer:
        """Answer a private SELECT: it is charged, waits for its turn, and comes at a deadline of its plan.

        Parameters
        ----------
        text : str
            As for `sfumato.session.Session.sql`.
        params : mapping, optional
            What ``@name`` stands for: truth values, numbers, texts, and lists of these.
        request : str, optional
            The id of an earlier attempt, to resume it; a random one by default.

        Returns
        -------
        RemoteAnswer

        Raises
        ------
        QueryError, ParameterError
            If the question is refused; nothing is charged.
        BudgetExceeded
            If it does not fit into the budget; nothing is charged.
        SourceError
            If the console does not answer; the message has the id with which to resume.
        EngineError
            If the run failed after the charge; the charge stays.
        KeyboardInterrupt
            If it was interrupted: the job goes on, and the message says its id.
        """
        request = secrets.token_hex(16) if request is None else request
        job = ""
        try:
            job = self.submit(text, params=params, request=request)
            return self.wait(job)
        except KeyboardInterrupt:
            how = f"session.wait({job!r})" if job else f"session.sql(..., request={request!r})"
            raise KeyboardInterrupt(f"the question may be charged and goes on; {how} waits for it") from None
        except SourceError as error:  # all others say what became of it
            error.add_note(f"to resume without another charge: session.sql(..., request={request!r})")
            raise

    def submit(
        self, text: str, *, params: Mapping[str, Any] | None = None, request: str | None = None
    ) -> str:
        """Charge a question and return the id of its job, without waiting for the answer.

        Parameters
        ----------
        text, params, request
            As for `sql`.

        Returns
        -------
        str
        """
        request = secrets.token_hex(16) if request is None else request
        body = {**self._question(text, params), "request": request}
        return str(self._transport.ask("POST", "/questions", body).document()["id"])

    def wait(self, job: str) -> RemoteAnswer:
        """Wait for a job as the console asks it, and return its answer, which costs nothing again.

        Parameters
        ----------
        job : str
            Its id.

        Returns
        -------
        RemoteAnswer

        Raises
        ------
        EngineError
            If it ended without an answer; its charge stays.
        """
        found = self.job(job)
        while found["state"] not in _ENDED:
            time.sleep(min(float(found["retry_after"] or 1.0), _LONGEST_PAUSE))
            found = self.job(job)
        if found["state"] != "done":
            raise (QueryCancelled if found["state"] == "cancelled" else EngineError)(found["message"])
        arrived = self._transport.get(f"/jobs/{quote(job, safe='')}/answer", accept=_ARROW)
        return RemoteAnswer.from_stream(arrived.content)

    def job(self, job: str) -> dict[str, Any]:
        """Return how far a job is: its state, its question, what it cost, and when to look again.

        Parameters
        ----------
        job : str

        Returns
        -------
        dict
        """
        return self._transport.get(_place(job)).document()

    def cancel(self, job: str) -> dict[str, Any]:
        """Cancel a job, at a step of the console's grid of time; its charge stays.

        Parameters
        ----------
        job : str

        Returns
        -------
        dict
            As `job`.
        """
        return self._transport.ask("DELETE", _place(job)).document()

    def history(self, *, limit: int = 25, offset: int = 0) -> list[dict[str, Any]]:
        """Return one's own jobs, the newest first, at most 100.

        Parameters
        ----------
        limit, offset : int

        Returns
        -------
        list of dict
        """
        limit = _check.integer("limit", limit, minimum=1)
        path = f"/jobs?limit={limit}&offset={_check.integer('offset', offset)}"
        return list(self._transport.get(path).document()["jobs"])

    def price(self, text: str, *, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Say what a question costs and how wrong its answer will be; nothing is charged.

        Parameters
        ----------
        text, params
            As for `sql`.

        Returns
        -------
        dict
            ``sentence``, ``cost``, ``columns`` with expected errors, ``fits``, ``offer`` and more.
        """
        return self._transport.ask("POST", "/questions/price", self._question(text, params)).document()

    def explain(self, text: str, *, params: Mapping[str, Any] | None = None) -> str:
        """Say what a question would do and cost; nothing is charged.

        Parameters
        ----------
        text, params
            As for `sql`.

        Returns
        -------
        str
        """
        priced = self.price(text, params=params)
        return f"{priced['explanation']}\n{priced['sentence']}"

    def dry_run(
        self, text: str, *, params: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> RemoteAnswer:
        """Answer a question on made-up rows with simulated noise; nothing is charged.

        Parameters
        ----------
        text, params
            As for `sql`.
        seed : int, optional
            Of rows and noise.

        Returns
        -------
        RemoteAnswer
            A simulated one.
        """
        body = self._question(text, params) | ({} if seed is None else {"seed": seed})
        arrived = self._transport.ask("POST", "/dry-runs", body, accept=_ARROW)
        about = {"epsilon": 0.0, "delta": 0.0, "privacy_unit": self.privacy_unit, "receipts": []}
        return RemoteAnswer.from_stream(arrived.content, about)

    @property
    def dataset(self) -> dict[str, Any]:
        """Tables, columns, who is protected, and what was declared."""
        return self._transport.get("/dataset").document()

    @property
    def account(self) -> dict[str, Any]:
        """One's own budget, what is left, and what one asked for."""
        return self._transport.get(self._of_period("/account")).document()

    @property
    def privacy_unit(self) -> str:
        """Who is protected."""
        return str(self.dataset["privacy_unit"])

    def remaining(self) -> Guarantee:
        """Return what is left of one's own budget, rounded down.

        Returns
        -------
        Guarantee

        Raises
        ------
        ParameterError
            If one has no account.
        """
        left = self.account["left"]
        if left is None:
            found = "it was not opened, or is closed"
            _check.refuse_state("account", "be open", found, "ask for it: session.request_budget(...)")
        return Guarantee(neighboring=Neighboring.ADD_REMOVE, **left["amounts"])

    def request_budget(self, *, purpose: str, **amounts: float) -> dict[str, Any]:
        """Ask the curator for a budget of the kind that the dataset's has.

        Parameters
        ----------
        purpose : str
        **amounts
            ``epsilon`` and ``delta``, ``rho`` or ``mu``.

        Returns
        -------
        dict
            The account, with the request.
        """
        return self._transport.ask("POST", "/account/requests", {"purpose": purpose, **amounts}).document()

    def releases(self) -> list[dict[str, Any]]:
        """Return what was published, the newest first; all may see it.

        Returns
        -------
        list of dict
        """
        return list(self._transport.get("/releases").document()["releases"])

    def close(self) -> None:
        """Close the connection; jobs go on."""
        self._transport.close()

    def _question(self, text: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        if not isinstance(text, str):
            _check.refuse_type("text", "be a text", text, "write SELECT ... FROM ...")
        stated = {"sql": text, "params": dict(params or {}), "purpose": self._purpose, "period": self._period}
        return stated if self._epsilon is None else {**stated, "epsilon": self._epsilon}

    def _of_period(self, path: str) -> str:
        return f"{path}?period={quote(self._period, safe='')}" if self._period else path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RemoteSession({self._transport.url!r})"


def _place(job: str) -> str:
    if not job:
        _check.refuse("job", "be the id of a job", job, "take it from history()")
    return f"/jobs/{quote(job, safe='')}"
