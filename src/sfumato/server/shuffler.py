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

    Raises
    ------
    ParameterError
        If the key is not the collection's shuffler's, the folder is another collection's, another process
        has it open, or it holds batches that its ``waiting.db`` does not know of: an older copy of that file
        would release reports again.

    Notes
    -----
    What a `Collector` guarantees: durable when it is taken, one report for each nonce, whole batches in
    random order. It reads no record, and releases sealed ones.

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

    __slots__ = ("_collection", "_keys")

    def __init__(
        self, collection: PublicCollection | SparseCollection, key: SecretKey | KeyRing, folder: Path
    ) -> None:
        if isinstance(collection, SparseCollection):
            SparseHistogram(collection)  # refuses what its noise cannot be calibrated for
        else:
            _check.instance("collection", collection, PublicCollection, "pass that of sfumato.local.device")
        self._collection = collection
        self._keys = self._ring(key)
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
    def analyst(self) -> PublicKey:
        """Whose word released batches are handed out for."""
        return self._collection.analyst

    def _ring(self, key: object) -> KeyRing:
        if not isinstance(key, KeyRing):
            _check.instance("key", key, SecretKey, "use SecretKey.from_file")
        ring = key if isinstance(key, KeyRing) else KeyRing.of(key)  # type: ignore[arg-type]
        ring.check(self._collection)
        return ring

    def change_keys(self, keys: KeyRing) -> None:
        """Open envelopes by other keys from now on.

        Parameters
        ----------
        keys : KeyRing
            One of them is the collection's own, which may have been destroyed.
        """
        self._keys = self._ring(keys)

    def key_offer(self) -> dict[str, Any]:
        """Return which keys devices are to seal for, as JSON.

        Returns
        -------
        dict
            What `sfumato.local.device.offered_key` reads.
        """
        return self._keys.offer(self._collection)

    def _report(self, envelope: bytes) -> Report | str:
        known = self._collection
        if len(envelope) != known.envelope_width:
            return "shape"
        opened = self._keys.opened(envelope, known.envelope_context)
        return "seal" if opened is None else (opened[:NONCE], opened[NONCE:])

    def _mixed(self, number: int, clients: Records) -> bytes:
        if isinstance(self._collection, SparseCollection):
            return SparseHistogram(self._collection).release(number, clients, self._source)
        records = self._shuffled(clients, self._collection.sealed_width)
        return MixedBatch(self._collection.id, number, records).to_bytes()
