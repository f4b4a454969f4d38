"""The shuffler: takes envelopes, forgets where they came from, and releases whole batches in random order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, final

from sfumato import _check
from sfumato.crypto.hpke import PublicKey
from sfumato.crypto.secret_key import SecretKey
from sfumato.local.device.base.client_nonce import NONCE
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.local.device.shuffle.sparse_collection import SparseCollection
from sfumato.local.shuffle.mixed_batch import MixedBatch
from sfumato.local.shuffle.sparse_histogram import SparseHistogram
from sfumato.server.collector import Collector
from sfumato.server.periods.analyst_keys import AnalystKeys
from sfumato.server.periods.key_ring import KeyRing
from sfumato.server.store import Report

__all__ = ["Shuffler", "collection_of"]


def collection_of(specification: Mapping[str, Any]) -> PublicCollection | SparseCollection:
    """Return the collection that a document describes, of the kind that its format names."""
    if specification.get("format") == SparseCollection.wire_name:
        return SparseCollection.from_specification(specification)
    return PublicCollection.from_specification(specification)


@final
class Shuffler(Collector):
    """One collection's shuffler, without the network: what it is given is bytes, and no address.

    Parameters
    ----------
    collection : sfumato.local.device.PublicCollection or SparseCollection
        Batches of the second kind are not mixed records but noisy counts above a threshold.
    key : SecretKey or KeyRing
        The shuffler's; or all that it has in the course of the collection.
    folder : Path
        Its own: ``waiting.db`` holds what waits, ``batches`` what is released. Made if there is none.
    analysts : AnalystKeys, optional
        The analyst's keys in the course of the collection; the collection's own alone, by default.

    Raises
    ------
    ParameterError
        If the key is not the collection's shuffler's, none of the analyst's is the collection's own, the
        folder is another collection's, another process has it open, or it holds batches that its
        ``waiting.db`` does not know of: an older copy of that file would release reports again.

    Notes
    -----
    What a `Collector` guarantees: durable when it is taken, one report for each nonce, whole batches in
    random order. It reads no record, and releases sealed ones.

    A batch has reports under one key of the analyst alone. Who reads records sees which key opens them, and
    so could tell clients under one key from those under another; within a batch nothing but the report itself
    distinguishes two clients, as `sfumato.local.shuffle.Collection.privacy_loss` assumes. Reports under each
    key wait apart; those that wait for a key whose time is over may wait for good. A nonce counts once,
    whichever key it came under.

    Examples
    --------
    Four clients' reports become one batch, which the analyst opens:

    >>> import tempfile
    >>> from sfumato import local
    >>> from sfumato.local.shuffle import Collection
    >>> analyst, shuffler = SecretKey.generate("analyst"), SecretKey.generate("shuffler")
    >>> oracle = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(["yes", "no"]))
    >>> collection = Collection(
    ...     protocol=oracle, batch_size=4, analyst=analyst.public, shuffler=shuffler.public
    ... )
    >>> opening = collection.opening(analyst)
    >>> with tempfile.TemporaryDirectory() as folder, Shuffler(collection.device, shuffler, folder) as server:
    ...     envelopes = [collection.device.envelope("yes", bytes([client]) * 32) for client in range(4)]
    ...     taken = server.take(envelopes)
    ...     opened = opening.add(server.path(1).read_bytes())
    >>> all(taken), opened, opening.estimate().reports
    (True, 4, 4)
    """

    owner: ClassVar = "shuffler"
    suffix: ClassVar = ".mixed"
    reasons: ClassVar = ("shape", "seal")

    __slots__ = ("_analysts", "_collection", "_keys")

    def __init__(
        self,
        collection: PublicCollection | SparseCollection,
        key: SecretKey | KeyRing,
        folder: Path,
        analysts: AnalystKeys | None = None,
    ) -> None:
        if isinstance(collection, SparseCollection):
            SparseHistogram(collection)  # refuses what its noise cannot be calibrated for
        else:
            _check.instance("collection", collection, PublicCollection, "pass that of sfumato.local.device")
        self._collection = collection
        self._keys, self._analysts = self._checked(key, analysts)
        super().__init__(
            folder,
            store_id=collection.id,
            collection_id=collection.id,
            batch_size=collection.batch_size,
            envelope_width=collection.envelope_width,
            stored_width=collection.messages * collection.sealed_width,
        )

    @property
    def collection(self) -> PublicCollection | SparseCollection:
        """What is collected."""
        return self._collection

    @property
    def analysts(self) -> tuple[PublicKey, ...]:
        """The analyst's keys that are in use, for whose word released batches are handed out."""
        return self._analysts.in_use()

    def _checked(self, key: object, analysts: AnalystKeys | None) -> tuple[KeyRing, AnalystKeys]:
        if not isinstance(key, KeyRing):
            _check.instance("key", key, SecretKey, "use SecretKey.from_file")
        ring = key if isinstance(key, KeyRing) else KeyRing.of(key)  # type: ignore[arg-type]
        ring.check(self._collection)
        known = AnalystKeys.of(self._collection.analyst) if analysts is None else analysts
        known.check(self._collection, ring.public)
        return ring, known

    def change_keys(self, keys: KeyRing, analysts: AnalystKeys | None = None) -> None:
        """Open envelopes by other keys, and take reports under other keys of the analyst, from now on.

        Parameters
        ----------
        keys : KeyRing
            One of them is the collection's own, which may have been destroyed.
        analysts : AnalystKeys, optional
            One of them is the collection's own, which is the only one by default.
        """
        self._keys, self._analysts = self._checked(keys, analysts)

    def key_offer(self) -> dict[str, Any]:
        """Return which keys devices are to seal for, as JSON.

        Returns
        -------
        dict
            What `sfumato.local.device.offered_key` and `sfumato.local.device.offered_analyst_key` read.
        """
        # Of the other kind the analyst opens no record.
        sealed = isinstance(self._collection, PublicCollection)
        return self._keys.offer(self._collection, self._analysts if sealed else None)

    def _report(self, envelope: bytes) -> Report | str:
        known = self._collection
        if len(envelope) != known.envelope_width:
            return "shape"
        if isinstance(known, SparseCollection):
            found = self._keys.opened(envelope, (known.envelope_context,))
            return "seal" if found is None else Report(found[0][:NONCE], found[0][NONCE:])
        analysts = self._analysts.in_use()
        found = self._keys.opened(envelope, [known.context_under(each) for each in analysts])
        if found is None:
            return "seal"
        content, under = found[0], analysts[found[1]]
        lane = b"" if under == known.analyst else bytes.fromhex(under.id)
        return Report(content[:NONCE], content[NONCE:], lane)

    def _mixed(self, number: int, clients: Records) -> bytes:
        if isinstance(self._collection, SparseCollection):
            return SparseHistogram(self._collection).release(number, clients, self._source)
        records = self._shuffled(clients, self._collection.sealed_width)
        return MixedBatch(self._collection.id, number, records).to_bytes()
