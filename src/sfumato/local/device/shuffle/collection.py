"""The public description of a shuffled collection, and the envelope that a device sends to it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from sfumato import _check
from sfumato._wire import Format, canonical
from sfumato.crypto.hpke import SEAL, PublicKey
from sfumato.local.device.base.client_nonce import NONCE, check_bytes, client_nonce
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["PublicCollection", "check_parties", "later_analyst", "later_key"]

_FORMAT: Final = Format("sfumato.collection", 2, oldest=2)
_INNER: Final = b"sfumato shuffle 2 report\x00"
_OUTER: Final = b"sfumato shuffle 2 envelope\x00"
_LATER: Final = b"sfumato shuffle 2 later analyst\x00"
_NONCE: Final = b"sfumato shuffle 2 nonce\x00"
_PARTS: Final = ("name", "randomizer", "batch_size", "colluders", "analyst", "shuffler")
_KNOWN: Final = frozenset((*_PARTS, "protocol"))  # which is the analyst's, and not the device's


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicCollection:
    r"""A question that is asked once of each client, by way of a shuffler; all of it is public.

    Parameters
    ----------
    randomizer : Randomizer
        What each client reports by.
    batch_size : int
        How many clients' reports the shuffler mixes and releases together, exactly; at least 2.
    colluders : int
        How many of them may work for the analyst without breaking what is promised; below ``batch_size``.
    analyst, shuffler : PublicKey
        Of two parties that do not work together.
    name : str
        Distinguishes collections that are equal in all else, such as those of two weeks.

    Attributes
    ----------
    id : bytes
        32 bytes: a digest of all parameters.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or both keys are one.

    Notes
    -----
    An envelope is sealed twice (`sfumato.crypto.hpke`). Each record of a report is sealed for the
    analyst on its own, so that nothing links those of one client; then all of them, with the client's nonce,
    for the shuffler. So the shuffler, who sees where an envelope comes from, reads no record; the analyst,
    who reads records, does not see the envelopes. All envelopes to a collection have one length. Both seals
    are bound to the collection's id and the randomizer's digest: what was sealed for another is refused.

    *A later key of the analyst* (``analyst=`` of `envelope`) opens a report's records in the place of the
    collection's own. Who reads records sees which key opens them, so that reports under different keys do not
    hide one another. Therefore the envelope's seal is bound to the key too, and a batch of
    `sfumato.server.Shuffler` has reports under one key alone: all ``batch_size`` of them, as the loss
    assumes.

    Guarantee: whatever the shuffler sees, with the analyst's key unknown to it, reveals nothing of an answer
    (if HPKE is secure against chosen ciphertexts); whatever the analyst sees has the loss of
    `sfumato.local.shuffle.Collection`, if the shuffler does as it should. If they work together, what
    the randomizer promises of one client's messages is left, which is nothing for split sums. That a client
    takes part is not hidden.

    Examples
    --------
    >>> from sfumato.crypto import SecretKey
    >>> from sfumato.local.device import Domain, RandomizedResponseRandomizer
    >>> asked = PublicCollection(
    ...     randomizer=RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(["no", "yes"])),
    ...     batch_size=1000,
    ...     analyst=SecretKey.generate("analyst").public,
    ...     shuffler=SecretKey.generate("shuffler").public,
    ... )
    >>> len(asked.envelope("yes", secret=bytes(16))) == asked.envelope_width
    True
    """

    randomizer: Randomizer
    batch_size: int
    analyst: PublicKey
    shuffler: PublicKey
    colluders: int = 0
    name: str = ""
    id: bytes = field(init=False, compare=False)

    def __post_init__(self) -> None:
        _check.instance("randomizer", self.randomizer, Randomizer, "pass protocol.device")
        size = _check.integer("batch_size", self.batch_size, minimum=2)
        colluders = _check.integer("colluders", self.colluders)
        if colluders >= size:
            remedy = "tolerate fewer: somebody in a batch must be honest"
            _check.refuse("colluders", f"be below the batch_size {size}", colluders, remedy)
        check_parties(self.analyst, self.shuffler, self.name)
        object.__setattr__(self, "batch_size", size)
        object.__setattr__(self, "colluders", colluders)
        text = canonical(self._with(self.randomizer.digest.hex()))
        object.__setattr__(self, "id", hashlib.sha256(text.encode()).digest())

    def _with(self, randomizer: object) -> dict[str, Any]:
        return _FORMAT.wrap(
            {
                "name": self.name,
                "randomizer": randomizer,
                "batch_size": self.batch_size,
                "colluders": self.colluders,
                "analyst": self.analyst.to_text(),
                "shuffler": self.shuffler.to_text(),
            }
        )

    @property
    def report_context(self) -> bytes:
        """What the seals of records are bound to."""
        return _INNER + self.randomizer.digest + self.id

    @property
    def envelope_context(self) -> bytes:
        """What the seals of envelopes are bound to, with records for the collection's own key."""
        return _OUTER + self.randomizer.digest + self.id

    def context_under(self, analyst: PublicKey) -> bytes:
        """Return what the seals of envelopes are bound to, with records for some key of the analyst.

        Parameters
        ----------
        analyst : PublicKey
            The collection's own, or a later one.

        Returns
        -------
        bytes
            `envelope_context` for the collection's own.
        """
        if analyst == self.analyst:
            return self.envelope_context
        return _LATER + self.randomizer.digest + self.id + bytes.fromhex(analyst.id)

    @property
    def messages(self) -> int:
        """How many records each client sends."""
        return self.randomizer.messages

    @property
    def sealed_width(self) -> int:
        """Bytes of a record under its seal for the analyst."""
        return 1 + self.randomizer.width + SEAL

    @property
    def envelope_width(self) -> int:
        """Bytes of every envelope."""
        return NONCE + self.messages * self.sealed_width + SEAL

    def nonce(self, secret: bytes) -> bytes:
        """Return the nonce of the client that holds a secret: another one for each collection.

        Parameters
        ----------
        secret : bytes
            Drawn once on the device and stored there, the same for all collections; 16 bytes or more.

        Returns
        -------
        bytes
            `NONCE` of them; the same at every call.

        Raises
        ------
        ParameterError
            If the secret is not at least 16 bytes; the message does not show it.
        """
        return client_nonce(secret, _NONCE + self.id)

    def seal(
        self,
        report: bytes,
        nonce: bytes,
        *,
        simulated: bool = False,
        key: PublicKey | None = None,
        analyst: PublicKey | None = None,
    ) -> bytes:
        """Return the envelope of a report that was randomized before.

        Parameters
        ----------
        report : bytes
            What ``randomizer.randomize(value)`` returned.
        nonce : bytes
            The client's own, 16 bytes: see `nonce`.
        simulated : bool
            Whether its randomness followed from a seed; the estimate will say so.
        key : PublicKey, optional
            Of the shuffler, as `sfumato.local.device.offered_key` returned it; the collection's own by
            default.
        analyst : PublicKey, optional
            Of the analyst, as `sfumato.local.device.offered_analyst_key` returned it; the collection's own
            by default.

        Returns
        -------
        bytes
            `envelope_width` of them. To send it again, send these same bytes.

        Raises
        ------
        ParameterError
            If a key is none of that party, or report or nonce is not of the right length; the message does
            not show it.
        """
        width = self.randomizer.width
        check_bytes("report", report, self.messages * width, "pass what randomizer.randomize returned")
        check_bytes("nonce", nonce, NONCE, "use collection.nonce(secret)")
        mark, context = bytes([bool(simulated)]), self.report_context
        records = (report[start : start + width] for start in range(0, len(report), width))
        outer = self.shuffler if key is None else later_key(key, self.analyst)
        inner = self.analyst if analyst is None else later_analyst(analyst, self.shuffler, outer)
        sealed = b"".join(inner.seal(mark + record, context) for record in records)
        return outer.seal(nonce + sealed, self.context_under(inner))

    def envelope(
        self,
        value: Any,
        secret: bytes,
        rng: Rng = None,
        *,
        key: PublicKey | None = None,
        analyst: PublicKey | None = None,
    ) -> bytes:
        """Return what one device sends: its answer, randomized and sealed.

        Parameters
        ----------
        value
            The truth; it does not leave this call.
        secret : bytes
            See `nonce`.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.
        key, analyst : PublicKey, optional
            See `seal`.

        Returns
        -------
        bytes
            `envelope_width` of them.

        Raises
        ------
        ParameterError
            If the value cannot be reported; the message does not show it.

        Notes
        -----
        Call it once and store the envelope until the shuffler has taken it: each call randomizes anew, which
        costs epsilon again where somebody sees both.
        """
        source = random_source(rng)
        report = self.randomizer.randomize(value, source)
        nonce = self.nonce(secret)
        return self.seal(report, nonce, simulated=source.simulated, key=key, analyst=analyst)

    def specification(self) -> dict[str, Any]:
        """Return all of it, as JSON; `from_specification` makes it again.

        Returns
        -------
        dict
            What `json.dumps` writes.
        """
        return self._with(self.randomizer.specification())

    @staticmethod
    def from_specification(specification: Mapping[str, Any], **given: Any) -> PublicCollection:
        """Return the collection that `specification` described.

        Parameters
        ----------
        specification : mapping
        **given
            What JSON could not hold; see `Randomizer.from_specification`.

        Returns
        -------
        PublicCollection

        Raises
        ------
        ParameterError
            If it is of another format, or one of its parts breaks its rule.
        """
        _, parts = _FORMAT.unwrap("collection", specification, known=_KNOWN)
        randomizer = parts.get("randomizer")
        _check.instance("randomizer", randomizer, dict, "use the whole file")
        return PublicCollection(
            randomizer=Randomizer.from_specification(randomizer or {}, **given),
            batch_size=parts.get("batch_size", 0),
            colluders=parts.get("colluders", 0),
            analyst=PublicKey.from_text(parts.get("analyst", ""), "analyst"),
            shuffler=PublicKey.from_text(parts.get("shuffler", ""), "shuffler"),
            name=parts.get("name", ""),
        )


def check_parties(analyst: object, shuffler: object, name: object) -> None:
    """Refuse what are no keys of two parties, and what is no name of a collection."""
    for role, key in (("analyst", analyst), ("shuffler", shuffler)):
        if not isinstance(key, PublicKey):
            _check.instance(role, key, PublicKey, "pass SecretKey.public")
        elif key.role != role:
            _check.refuse(role, f"be the key of one {role}", key.role, "make one for each")
    if isinstance(analyst, PublicKey) and isinstance(shuffler, PublicKey) and analyst.point == shuffler.point:
        point = shuffler.point.hex()
        _check.refuse("shuffler", "have another key than the analyst", point, "make one for each")
    if not isinstance(name, str) or len(name) > 200:
        _check.refuse_type("name", "be a text of at most 200 characters", name, "shorten it")


def later_key(key: PublicKey, analyst: PublicKey) -> PublicKey:
    """Return a later key of the shuffler, or refuse what is none."""
    _check.instance("key", key, PublicKey, "use offered_key")
    if key.role != "shuffler" or key.point == analyst.point:
        _check.refuse("key", "be a shuffler's, and not the analyst's", key.role, "use offered_key")
    return key


def later_analyst(analyst: PublicKey, *shufflers: PublicKey) -> PublicKey:
    """Return a later key of the analyst, or refuse what is none."""
    _check.instance("analyst", analyst, PublicKey, "use offered_analyst_key")
    if analyst.role != "analyst" or any(analyst.point == each.point for each in shufflers):
        _check.refuse(
            "analyst", "be an analyst's, and not the shuffler's", analyst.role, "use offered_analyst_key"
        )
    return analyst
