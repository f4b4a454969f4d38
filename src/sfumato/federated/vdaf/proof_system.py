"""Proofs on shared data: that a circuit's equations hold for an encoding that no verifier sees whole.

The fully linear proof system of Boneh, Boyle, Corrigan-Gibbs, Gilboa and Ishai (CRYPTO 2019, Theorem 4.3),
with polynomials given by their values at roots of unity, as the VDAF draft has it. The proof holds a random
seed for each input wire of the gadget, and the gadget's polynomial: the gadget applied to the polynomials
through the seed and the successive inputs of each wire. A verifier reads the outputs of all calls from its
share of that polynomial, and compares the polynomial with the gadget at one random point. Two different
polynomials agree at a random point with probability at most their degree over the modulus less the number of
points that are refused; the verifiers' view of a valid proof can be simulated without the encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.crypto.fields.field import Elements
from sfumato.crypto.fields.ntt_field import NttField
from sfumato.federated.vdaf.circuits.circuit import Circuit, next_power

__all__ = ["ProofSystem"]

_BLOCK_BYTES: Final = 1 << 20


@final
@dataclass(frozen=True, slots=True)
class ProofSystem:
    """Proofs for one circuit; all methods work on rows, one report each.

    Parameters
    ----------
    circuit : Circuit
        The validity circuit.

    Examples
    --------
    >>> from sfumato.federated.vdaf.circuits.scalar import Count
    >>> ProofSystem(Count()).proof_length
    5
    """

    circuit: Circuit

    @property
    def nodes(self) -> int:
        """Values that give a wire's polynomial."""
        return next_power(1 + self.circuit.calls)

    @property
    def polynomial_length(self) -> int:
        """Values that give the gadget's polynomial."""
        return self.circuit.gadget.degree * (self.nodes - 1) + 1

    @property
    def prove_length(self) -> int:
        """Random elements that the prover needs."""
        return self.circuit.gadget.arity

    @property
    def query_length(self) -> int:
        """Random elements that the verifiers share."""
        equations = self.circuit.equations
        return 1 + (equations if equations > 1 else 0)

    @property
    def proof_length(self) -> int:
        """Elements of a proof."""
        return self.circuit.gadget.arity + self.polynomial_length

    @property
    def verifier_length(self) -> int:
        """Elements of a verifier's share."""
        return self.circuit.gadget.arity + 2

    def blocks(self, rows: int) -> Iterator[slice]:
        """Return slices of reports that are computed at once.

        Parameters
        ----------
        rows : int
            How many reports there are.

        Returns
        -------
        iterator of slice
        """
        each = self.circuit.gadget.arity * self.nodes * self.circuit.field.size
        size = max(1, _BLOCK_BYTES // each)
        return (slice(start, min(start + size, rows)) for start in range(0, rows, size))

    def prove(self, encoded: Elements, randomness: Elements, joint: Elements) -> Elements:
        """Return proofs that encodings are valid.

        Parameters
        ----------
        encoded : numpy.ndarray
            Whole encodings.
        randomness : numpy.ndarray
            Of shape ``(rows, prove_length, limbs)``.
        joint : numpy.ndarray
            Of shape ``(rows, joint_length, limbs)``.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, proof_length, limbs)``.
        """
        circuit, field = self.circuit, self.circuit.field
        wires = field.zeros(len(encoded), circuit.gadget.arity, self.nodes)
        wires[:, :, 0] = randomness
        wires[:, :, 1 : 1 + circuit.calls] = circuit.inputs(encoded, joint, 1).swapaxes(1, 2)
        while wires.shape[2] < self.polynomial_length:
            wires = field.doubled(wires)
        polynomial = circuit.gadget.evaluate(field, wires)
        return np.concatenate([randomness, polynomial[:, : self.polynomial_length]], axis=1)

    def query(
        self, encoded: Elements, proof: Elements, randomness: Elements, joint: Elements, shares: int
    ) -> tuple[Elements, NDArray[np.bool_]]:
        """Return a verifier's shares of what all verifiers together check.

        Parameters
        ----------
        encoded : numpy.ndarray
            Shares of encodings.
        proof : numpy.ndarray
            Shares of proofs.
        randomness : numpy.ndarray
            Of shape ``(rows, query_length, limbs)``, the same for all verifiers and unknown to the prover.
        joint : numpy.ndarray
            Of shape ``(rows, joint_length, limbs)``.
        shares : int
            How many verifiers there are.

        Returns
        -------
        tuple
            Shares of shape ``(rows, verifier_length, limbs)``, and a flag for each row: where it is false,
            the random point is one at which the polynomials would show inputs, and the share is zero.
        """
        circuit, field = self.circuit, self.circuit.field
        arity, calls = circuit.gadget.arity, circuit.calls
        whole = next_power(self.polynomial_length)
        polynomial = _completed(field, proof[:, arity:], whole)
        step = whole // self.nodes
        outputs = polynomial[:, step : step * calls + 1 : step]
        equations = circuit.evaluate(encoded, outputs, shares)
        if circuit.equations > 1:
            reduced = field.dots(equations[:, None], randomness[:, :-1])[:, 0]
        else:
            reduced = equations[:, 0]
        point = randomness[:, -1]
        gap = field.subtracted(field.power(point, self.nodes.bit_length() - 1), field.vector([1]))
        hidden = np.asarray(gap.any(axis=-1))
        weights = field.lagrange_weights(point, self.nodes)[:, : 1 + calls]
        at_inputs = field.combined_rows(circuit.inputs(encoded, joint, shares), weights[:, 1:])
        at_wires = field.added(field.multiplied(proof[:, :arity], weights[:, :1]), at_inputs)
        at_gadget = field.dots(polynomial[:, None], field.lagrange_weights(point, whole))
        verifier = np.concatenate([reduced[:, None], at_wires, at_gadget], axis=1)
        verifier[~hidden] = 0
        return verifier, hidden

    def decide(self, verifier: Elements) -> NDArray[np.bool_]:
        """Return whether the sum of all verifiers' shares shows a valid encoding.

        Parameters
        ----------
        verifier : numpy.ndarray
            Of shape ``(rows, verifier_length, limbs)``.

        Returns
        -------
        numpy.ndarray
            A flag for each row.
        """
        field, arity = self.circuit.field, self.circuit.gadget.arity
        expected = self.circuit.gadget.evaluate(field, verifier[:, 1 : 1 + arity, None])[:, 0]
        fails = verifier[:, 0].any(axis=-1) | (expected != verifier[:, 1 + arity]).any(axis=-1)
        return np.asarray(~fails)


def _completed(field: NttField, values: Elements, whole: int) -> Elements:
    """Return all values at a root's powers of polynomials known by as many as their coefficients."""
    known = values.shape[1]
    if known == whole:
        return values
    missing = [field.dots(values[:, None], row.repeat(len(values), 0)) for row in _rows(field, known, whole)]
    return np.concatenate([values, *missing], axis=1)


@lru_cache(maxsize=64)
def _rows(field: NttField, known: int, whole: int) -> tuple[Elements, ...]:
    """Return weights of the known values in each missing one: Lagrange's, by the polynomial x^whole - 1."""
    p, root = field.modulus, field.root(whole)
    nodes = [1]
    for _ in range(whole - 1):
        nodes.append(nodes[-1] * root % p)
    absent, rows = nodes[known:], []
    scales = nodes[:known]
    for y in absent:
        scales = [scale * (x - y) % p for scale, x in zip(scales, nodes, strict=False)]
    for y in absent:
        below = y
        for other in absent:
            below = below * (y - other) % p if other != y else below
        gaps = field.inverted(field.vector([(y - x) * below for x in nodes[:known]]))
        rows.append(field.multiplied(field.vector(scales), gaps)[None])
    return tuple(rows)
