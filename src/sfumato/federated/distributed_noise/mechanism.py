"""What all mechanisms have in common whose noise comes from the clients: who is counted, and what is sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato._wire import Format, Record
from sfumato.federated.distributed_noise.rotation import MAX_DIMENSION, padded_dimension
from sfumato.federated.secure_aggregation.parameters import SecureAggregation
from sfumato.numerics.randomness.source import Rng
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["DistributedMechanism"]

_LARGEST_NORM: Final = 2.0**400
"""No square of a number in units of vectors leaves the floats, nor does one over it."""


class DistributedMechanism(ABC):
    """A noisy sum of clients' vectors, priced for the fewest honest survivors of a round."""

    __slots__ = ()

    _wire_name: ClassVar[str]
    _format: ClassVar[Format]
    _record: ClassVar[Record[Any]]

    clients: int
    minimum_survivors: int
    colluders: int
    dimension: int
    clip_norm: float
    bits: int

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """What one round costs, under zero-out: the noise of the fewest honest survivors."""
        return self.loss_against(self.colluders)

    @abstractmethod
    def loss_against(self, colluders: int) -> PrivacyLoss:
        """Return what one round costs, under zero-out, if so many clients work with the server."""

    @abstractmethod
    def encode(self, vector: ArrayLike, seed: bytes, rng: Rng = None) -> NDArray[np.int64]:
        """Return a client's message for secure aggregation."""

    @abstractmethod
    def decode(self, total: ArrayLike, seed: bytes) -> NDArray[np.float64]:
        """Return the noisy sum of the survivors' vectors from the sum of their messages."""

    @abstractmethod
    def variance(self, survivors: int) -> float:
        """Return a bound on the variance of each entry of the decoded sum, for so many survivors."""

    def to_json(self) -> dict[str, object]:
        """Return the parameters as a JSON document, which all clients and the server of a round share.

        Returns
        -------
        dict
            What `from_json` reads.
        """
        return self._format.wrap({"mechanism": self._wire_name, **self._record.encode(self)})

    @classmethod
    def from_json(cls, document: object) -> Self:
        """Return the parameters that `to_json` wrote.

        Parameters
        ----------
        document : dict
            Of this class.

        Returns
        -------
        DistributedMechanism

        Raises
        ------
        ParameterError
            If it is no such document.
        """
        fields = cls._format.unwrap("document", document)[1]
        if fields.pop("mechanism", None) != cls._wire_name:
            _check.refuse_type("document", f"be one of {cls.__name__}", document, "read it as its class")
        return cls(**cls._record.decode("document", fields))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_clients(self) -> None:
        _check.integer("clients", self.clients, minimum=3)
        if _check.integer("dimension", self.dimension, minimum=1) > MAX_DIMENSION:
            _check.refuse("dimension", "be at most 2^28", self.dimension, "aggregate the vector in parts")

    def _check_clip_norm(self) -> None:
        self._set("clip_norm", _check.positive("clip_norm", self.clip_norm))
        if not 1 / _LARGEST_NORM <= self.clip_norm <= _LARGEST_NORM:
            _check.refuse("clip_norm", "be from 2^-400 to 2^400", self.clip_norm, "use other units")

    def _check_survivors(self) -> None:
        if _check.integer("minimum_survivors", self.minimum_survivors, minimum=2) > self.clients:
            rule = f"be at most the {self.clients} clients"
            _check.refuse("minimum_survivors", rule, self.minimum_survivors, "lower it")
        if _check.integer("colluders", self.colluders) >= self.minimum_survivors:
            rule = f"be below the {self.minimum_survivors} survivors, so that an honest one is among them"
            _check.refuse("colluders", rule, self.colluders, "raise minimum_survivors")

    def _check_vector(self, vector: ArrayLike) -> NDArray[np.float64]:
        given = np.asarray(vector)
        if given.dtype.kind not in "iuf" or given.shape != (self.dimension,):
            rule = f"be {self.dimension} numbers"
            _check.refuse_type("vector", rule, vector, "flatten it, and cut or pad it")
        return given.astype(np.float64)

    def _check_total(self, total: ArrayLike) -> NDArray[np.float64]:
        """Return a sum's residues that are centred on 0."""
        given = np.asarray(total)
        if given.dtype.kind not in "iu" or given.shape != (self.padded,):
            _check.refuse_type("total", f"be {self.padded} integers", total, "pass the round's total")
        return self._residues(given.astype(np.int64)).astype(np.float64)

    def _check_count(self, survivors: int) -> int:
        count = _check.integer("survivors", survivors, minimum=self.minimum_survivors)
        if count > self.clients:
            _check.refuse("survivors", f"be at most the {self.clients} clients", count, "lower it")
        return count

    def _residues(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        half = 1 << (self.bits - 1)
        centred: NDArray[np.int64] = ((values + half) & ((1 << self.bits) - 1)) - half
        return centred

    @property
    def honest_survivors(self) -> int:
        """The fewest survivors that do not collude, whose noise alone is counted."""
        return self.minimum_survivors - self.colluders

    @property
    def padded(self) -> int:
        """Entries of a message: the dimension, padded to a power of two."""
        return padded_dimension(self.dimension)

    def _honest(self, colluders: int) -> int:
        """Return the fewest honest survivors; the client in question is one of them."""
        if _check.integer("colluders", colluders) >= self.minimum_survivors:
            rule = f"be below the {self.minimum_survivors} survivors, so that an honest one is among them"
            _check.refuse("colluders", rule, colluders, "nothing is left against so many")
        return self.minimum_survivors - colluders

    def secure_aggregation(self, **options: Any) -> SecureAggregation:
        """Return the parameters of a round of secure aggregation that carries the messages.

        Parameters
        ----------
        **options
            ``degree``, ``threshold``, ``active`` and ``round_number`` of `SecureAggregation`.

        Returns
        -------
        SecureAggregation
            Modular, and aborted below ``minimum_survivors``.
        """
        half = 1 << (self.bits - 1)
        return SecureAggregation(
            clients=self.clients,
            length=self.padded,
            bounds=(-half, half - 1),
            bits=self.bits,
            minimum_survivors=self.minimum_survivors,
            modular=True,
            **options,
        )
