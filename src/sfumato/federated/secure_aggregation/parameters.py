"""What the clients and the server of a round of secure aggregation agree on before any key is made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Final, cast, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import BOOLEAN, INTEGER, Codec, Field, Format, Record, canonical, sequence
from sfumato.crypto.mask_stream import Words

__all__ = ["SecureAggregation"]

_FORMAT: Final = Format("sfumato.secure_aggregation", 1)
_MOST_BITS: Final = 63


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SecureAggregation:
    """One round of secure aggregation: the server learns the sum of its survivors' vectors.

    Parameters
    ----------
    clients : int
        How many, numbered from 0; from 3 to 2^20.
    length : int
        Entries of a vector.
    bounds : tuple of int
        Least and greatest entry; a client clips its entries to them.
    bits : int
        Sums are taken modulo 2^bits; at most 63, and large enough for the sum of all clients.
    minimum_survivors : int
        With fewer vectors the round is aborted before anything is unmasked; a client checks it too.
    degree : int or None, default None
        Neighbors of each client, even, as `plan_neighbors` plans them; None for all others.
    threshold : int or None, default None
        Neighbors whose shares give a secret back; above half of the degree, in the active mode above two
        thirds. None for the least of these.
    active : bool, default False
        Protect against a server that deviates from the protocol: keys, and the lists of who shared and who
        survived, are signed by identities that the clients know from elsewhere. With ``degree``, the
        graph follows from the keys, and ``minimum_survivors`` must be above half of the clients.
    round_number : int, default 0
        Distinguishes the rounds of the same clients; never used twice.
    modular : bool, default False
        Entries are residues modulo 2^bits, and so is the sum: it may wrap around. ``bounds`` are those of the
        residues, ``(-2**(bits - 1), 2**(bits - 1) - 1)``, and entries are reduced to them and not clipped.
        Noise without bounds, as `DistributedDiscreteGaussian` adds, needs this: clipped parts of noise would
        not add up to it.

    Raises
    ------
    ParameterError
        If the parameters do not fit together; no key exists by then.

    Notes
    -----
    Guarantee: computational, in the random oracle model: if X25519's Diffie-Hellman problem (oracle form) is
    hard and AES-256, HKDF-SHA256 and ChaCha20-Poly1305 are what they should be, the joint view of the server
    and colluding clients depends on the other clients' vectors through their sum over the survivors only
    (Bonawitz et al. 2017, Theorems 6.3 and 6.5; Bell et al. 2020, Theorem 3.3). Without ``active`` the server
    follows the protocol, fewer than ``threshold`` neighbors of each honest client collude, and the honest
    survivors are connected in the graph, which `plan_neighbors` makes likely. With it, the server may do
    anything; with all others as neighbors fewer than ``min(threshold, 2 * (threshold + 1) - clients)``
    clients collude, on a sparse graph fewer than ``2 * minimum_survivors - clients``, chosen before the keys,
    and the graph is as ``plan_neighbors(..., active=True)`` makes likely (the proof is in
    `sfumato.federated.secure_aggregation.active_roster`). What is learned is the sum over one list of at
    least ``minimum_survivors``, colluders included. It is no differential privacy: the sum is exact. Clients
    that the server invents are colluders; only ``active`` with an independent register of identities
    excludes them. A client may send any vector within the modulus; nothing proves the bounds.

    References
    ----------
    K. Bonawitz et al. Practical secure aggregation for privacy-preserving machine learning. CCS 2017.

    J. H. Bell et al. Secure single-server aggregation with (poly)logarithmic overhead. CCS 2020.

    Examples
    --------
    >>> plan = SecureAggregation(clients=100, length=8, bounds=(-5, 5), bits=10, minimum_survivors=80)
    >>> plan.degree, plan.threshold
    (99, 50)
    """

    clients: int
    length: int
    bounds: tuple[int, int]
    bits: int
    minimum_survivors: int
    degree: int | None = None
    threshold: int | None = None
    active: bool = False
    round_number: int = 0
    modular: bool = False
    digest: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        clients = _check.integer("clients", self.clients, minimum=3)
        if clients > 1 << 20:
            _check.refuse("clients", "be at most 2^20", clients, "aggregate in several rounds")
        _check.integer("length", self.length, minimum=1)
        _check.integer("round_number", self.round_number)
        self._check_modulus()
        if _check.integer("minimum_survivors", self.minimum_survivors, minimum=2) > clients:
            _check.refuse(
                "minimum_survivors", f"be at most the {clients} clients", self.minimum_survivors, "lower it"
            )
        self._check_graph(clients - 1)
        object.__setattr__(self, "digest", hashlib.sha256(canonical(self.to_json()).encode()).digest())

    def _check_modulus(self) -> None:
        bounds: object = self.bounds
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            _check.refuse_type("bounds", "be a pair of integers", bounds, "pass (lower, upper)")
        for bound in self.bounds:
            _check.integer("bounds", bound, minimum=-(1 << _MOST_BITS))
        lower, upper = (int(bound) for bound in self.bounds)
        object.__setattr__(self, "bounds", (lower, upper))
        if lower > upper:
            _check.refuse("bounds", "be in ascending order", (lower, upper), "pass (lower, upper)")
        bits = _check.integer("bits", self.bits, minimum=1)
        if self.modular:
            self._check_residues(bits)
            return
        need = (self.clients * (upper - lower)).bit_length()
        if not need <= bits <= _MOST_BITS or max(abs(lower), abs(upper)) * self.clients >> _MOST_BITS:
            rule = f"be from {need} to {_MOST_BITS}, so that the sum of all clients does not wrap around"
            _check.refuse("bits", rule, bits, "choose other bits, or narrower bounds")

    def _check_residues(self, bits: int) -> None:
        if bits > _MOST_BITS:
            _check.refuse("bits", f"be at most {_MOST_BITS}", bits, "choose a smaller modulus")
        whole = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        if self.bounds != whole:
            _check.refuse("bounds", f"be {whole} where entries are residues", self.bounds, "pass these")

    def _check_graph(self, others: int) -> None:
        degree = others if self.degree is None else _check.integer("degree", self.degree, minimum=2)
        if degree > others or (degree % 2 and degree != others):
            rule = f"be even, or all {others} other clients"
            _check.refuse("degree", rule, degree, "pass plan_neighbors(...).degree")
        if self.active and degree != others and 2 * self.minimum_survivors <= self.clients:
            rule = "be more than half of the clients in the active mode on a sparse graph"
            _check.refuse("minimum_survivors", rule, self.minimum_survivors, "raise it, or leave degree out")
        part, words = (2 * degree // 3, "two thirds") if self.active else (degree // 2, "half")
        threshold = self.threshold
        threshold = part + 1 if threshold is None else _check.integer("threshold", threshold, minimum=1)
        if not part < threshold <= degree:
            rule = f"be above {words} of the {degree} neighbors, and at most all of them"
            _check.refuse("threshold", rule, threshold, "pass plan_neighbors(...).threshold")
        object.__setattr__(self, "degree", degree)
        object.__setattr__(self, "threshold", threshold)

    @property
    def neighbors(self) -> int:
        """The degree, which is known once the parameters are checked."""
        return cast("int", self.degree)

    @property
    def quorum(self) -> int:
        """How many clients must have signed a list in the active mode, so that no two lists have as many."""
        return self.shares + 1 if self.neighbors == self.clients - 1 else self.minimum_survivors

    @property
    def shares(self) -> int:
        """The threshold, which is known once the parameters are checked."""
        return cast("int", self.threshold)

    def encoded(self, vector: object) -> NDArray[np.int64]:
        """Return a client's vector as integers within the bounds.

        Parameters
        ----------
        vector : array_like of int, shape (length,)

        Returns
        -------
        ndarray of int64, shape (length,)
            Clipped to the bounds, or reduced to them if the sum is modular.

        Raises
        ------
        ParameterError
            If its shape or type is another; nothing of the values is shown.
        """
        given = np.asarray(vector)
        if given.dtype.kind not in "iu" or given.shape != (self.length,):
            rule = f"be {self.length} integers"
            _check.refuse_type("vector", rule, vector, "round it first, and cut or pad it")
        if self.modular:
            return self.decoded(given.astype(np.uint64), 1)
        clipped: NDArray[np.int64] = np.clip(given, *self.bounds).astype(np.int64)
        return clipped

    def decoded(self, total: Words, survivors: int) -> NDArray[np.int64]:
        """Return the sum of the survivors from its residues: the one within ``survivors`` times the bounds.

        A modular sum is the one within the bounds.

        Parameters
        ----------
        total : ndarray of unsigned int
            Modulo 2^bits.
        survivors : int
            How many vectors were added.

        Returns
        -------
        ndarray of int64
        """
        least = self.bounds[0] if self.modular else survivors * self.bounds[0]
        offset = np.uint64(least % (1 << 64))
        above = (total.astype(np.uint64) - offset) & np.uint64((1 << self.bits) - 1)
        return above.astype(np.int64) + least

    def to_json(self) -> dict[str, object]:
        """Return the parameters as a JSON document.

        Returns
        -------
        dict
            What `from_json` reads.
        """
        return _FORMAT.wrap((_MODULAR_RECORD if self.modular else _RECORD).encode(self))

    @staticmethod
    def from_json(document: object) -> SecureAggregation:
        """Return the parameters that `to_json` wrote.

        Parameters
        ----------
        document : dict

        Returns
        -------
        SecureAggregation

        Raises
        ------
        ParameterError
            If it is no such document.

        Examples
        --------
        >>> plan = SecureAggregation(clients=3, length=1, bounds=(0, 1), bits=2, minimum_survivors=2)
        >>> SecureAggregation.from_json(plan.to_json()) == plan
        True
        """
        fields = _FORMAT.unwrap("document", document)[1]
        return (_MODULAR_RECORD if "modular" in fields else _RECORD).decode("document", fields)


_FIELDS: Final[dict[str, Codec[Any] | Field]] = {
    "clients": INTEGER,
    "length": INTEGER,
    "bounds": sequence(INTEGER),
    "bits": INTEGER,
    "minimum_survivors": INTEGER,
    "degree": INTEGER,
    "threshold": INTEGER,
    "active": BOOLEAN,
    "round": Field("round_number", INTEGER),
}
_RECORD: Final = Record("parameters of a round", SecureAggregation, _FIELDS)
_MODULAR_RECORD: Final = Record(
    "parameters of a modular round", SecureAggregation, _FIELDS | {"modular": BOOLEAN}
)
