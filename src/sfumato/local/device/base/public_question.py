"""The public description of a question that devices answer without a shuffler, and what a device sends."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from sfumato import _check
from sfumato._wire import Format, canonical
from sfumato.local.device.base.client_nonce import NONCE, check_bytes, client_nonce
from sfumato.local.device.base.randomizer import Randomizer

__all__ = ["PublicQuestion"]

_FORMAT: Final = Format("sfumato.local-question")
_NONCE: Final = b"sfumato local 1 nonce\x00"
_FIELDS: Final = frozenset(("name", "randomizer"))
_LONGEST_NAME: Final = 200


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicQuestion:
    r"""A question that is asked once of each device, whose reports a collector stores; all of it is public.

    Parameters
    ----------
    randomizer : Randomizer
        What each device reports by; one whose single record is private without a shuffler.
    name : str
        Distinguishes questions that are equal in all else, such as those of two weeks.

    Attributes
    ----------
    id : bytes
        32 bytes: a digest of both.

    Raises
    ------
    ParameterError
        If the randomizer sends several records, which are private only if a shuffler mixes them, or the name
        is no text of at most 200 characters.

    Notes
    -----
    What a device sends is its nonce and the record. The collector knows the device again by the nonce, in
    this question alone, so that it counts once.

    Guarantee: the loss of ``randomizer`` under replace-one, against everybody: the nonce is a function of the
    device's secret and of public values, not of its answer. That a device takes part, when, from what address
    and in which questions is outside of it. Several questions cost the sum of their losses.

    A record states the randomizer that made it and not the question: whoever saw one may send it to another
    question with the same randomizer, where it is one more forged report.

    Examples
    --------
    >>> from sfumato.local.device import Domain, RandomizedResponseRandomizer
    >>> asked = PublicQuestion(
    ...     randomizer=RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(["no", "yes"]))
    ... )
    >>> len(asked.submission("yes", secret=bytes(16))) == asked.submission_width == 21
    True
    """

    randomizer: Randomizer
    name: str = ""
    id: bytes = field(init=False, compare=False)

    def __post_init__(self) -> None:
        _check.instance("randomizer", self.randomizer, Randomizer, "pass protocol.device")
        if self.randomizer.messages != 1:
            remedy = "use a shuffler: several are private only when they are mixed"
            _check.refuse("randomizer", "be one that sends one record", self.randomizer.messages, remedy)
        name: object = self.name
        if not isinstance(name, str) or len(name) > _LONGEST_NAME:
            _check.refuse_type("name", f"be a text of at most {_LONGEST_NAME} characters", name, "shorten it")
        text = canonical(self._with(self.randomizer.digest.hex()))
        object.__setattr__(self, "id", hashlib.sha256(text.encode()).digest())

    def _with(self, randomizer: object) -> dict[str, Any]:
        return _FORMAT.wrap({"name": self.name, "randomizer": randomizer})

    @property
    def submission_width(self) -> int:
        """Bytes of what every device sends."""
        return NONCE + self.randomizer.width

    def nonce(self, secret: bytes) -> bytes:
        """Return the nonce of the device that holds a secret: another one for each question.

        Parameters
        ----------
        secret : bytes
            Drawn once on the device and stored there, the same for all questions; 16 bytes or more.

        Returns
        -------
        bytes
            16 of them; the same at every call.

        Raises
        ------
        ParameterError
            If the secret is not at least 16 bytes; the message does not show it.
        """
        return client_nonce(secret, _NONCE + self.id)

    def packed(self, report: bytes, nonce: bytes) -> bytes:
        """Return what a device sends of a report that was randomized before, such as one of a memo.

        Parameters
        ----------
        report : bytes
            What ``randomizer.randomize(value)`` returned.
        nonce : bytes
            The device's own: see `nonce`.

        Returns
        -------
        bytes
            `submission_width` of them. To send it again, send these same bytes.

        Raises
        ------
        ParameterError
            If report or nonce is not of the right length; the message does not show it.
        """
        check_bytes("report", report, self.randomizer.width, "pass what randomizer.randomize returned")
        check_bytes("nonce", nonce, NONCE, "use question.nonce(secret)")
        return nonce + report

    def submission(self, value: Any, secret: bytes) -> bytes:
        """Return what one device sends: its nonce and its answer, randomized.

        Parameters
        ----------
        value
            The truth; it does not leave this call.
        secret : bytes
            See `nonce`.

        Returns
        -------
        bytes
            `submission_width` of them.

        Raises
        ------
        ParameterError
            If the value cannot be reported; the message does not show it.

        Notes
        -----
        Call it once and store what it returns until the collector has taken it: each call randomizes anew,
        which costs epsilon again where somebody sees both. The operating system's entropy is drawn from; what
        is seeded is for simulation, and is sent nowhere.
        """
        return self.packed(self.randomizer.randomize(value), self.nonce(secret))

    def specification(self) -> dict[str, Any]:
        """Return all of it, as JSON; `from_specification` makes it again.

        Returns
        -------
        dict
            What `json.dumps` writes.
        """
        return self._with(self.randomizer.specification())

    @staticmethod
    def from_specification(specification: Mapping[str, Any], **given: Any) -> PublicQuestion:
        """Return the question that `specification` described.

        Parameters
        ----------
        specification : mapping
        **given
            What JSON could not hold; see `Randomizer.from_specification`.

        Returns
        -------
        PublicQuestion

        Raises
        ------
        ParameterError
            If it is of another format, or one of its parts breaks its rule.
        """
        _, parts = _FORMAT.unwrap("question", specification, known=_FIELDS)
        randomizer = parts.get("randomizer")
        _check.instance("randomizer", randomizer, dict, "use the whole document")
        return PublicQuestion(
            randomizer=Randomizer.from_specification(randomizer or {}, **given), name=parts.get("name", "")
        )
