"""What a client of Mastic computes: keys of the point function, and the proof of its weight."""

from __future__ import annotations

import numpy as np

from sfumato.crypto.fields.field import Elements
from sfumato.crypto.idpf.tree_steps import KEY_SIZE
from sfumato.crypto.vidpf.verifiable_tree import VerifiableTree
from sfumato.crypto.xof.turboshake import SEED_SIZE
from sfumato.federated.vdaf.mastic.mastic_seeds import MasticComponents
from sfumato.federated.vdaf.seed_expansion import Rows

__all__ = ["shard_weights"]


def shard_weights(
    components: MasticComponents, paths: Rows, encoded: Elements, nonces: Rows, rand: Rows
) -> tuple[Rows, Rows, Rows]:
    """Return public shares, and the input shares of both aggregators.

    Parameters
    ----------
    components : MasticComponents
        What the function is made of.
    paths : numpy.ndarray
        The strings, as rows of zeros and ones.
    encoded : numpy.ndarray
        The encoded weights.
    nonces, rand : numpy.ndarray
        Of shape ``(rows, 16)`` and ``(rows, rand_size)``.

    Returns
    -------
    tuple of numpy.ndarray

    Examples
    --------
    >>> from sfumato.federated import mastic_count
    >>> mastic, zeros = mastic_count(bits=4), np.zeros((1, 96), np.uint8)
    >>> weight, nonces = mastic.circuit.encode([1]), zeros[:, :16]
    >>> parts = shard_weights(mastic.components, zeros[:, :4], weight, nonces, zeros)
    >>> [part.shape for part in parts]
    [(1, 257), (1, 56), (1, 48)]
    """
    vidpf, proof, seeds = components.vidpf, components.proof, components.seeds
    field, circuit, rows = vidpf.field, proof.circuit, len(paths)
    keys = np.ascontiguousarray(rand[:, : 2 * KEY_SIZE]).reshape(rows, 2, KEY_SIZE)
    drawn = np.ascontiguousarray(rand[:, 2 * KEY_SIZE :]).reshape(rows, -1, SEED_SIZE)
    counters = np.broadcast_to(field.vector([1]), (rows, 1, field.limbs))
    public = vidpf.generate(paths, np.concatenate([counters, encoded], axis=1), nonces, keys)
    joint, leader, helper = field.zeros(rows, 0), nonces[:, :0], nonces[:, :0]
    if circuit.joint_length:
        trees = [VerifiableTree(vidpf, j, nonces, public, keys[:, j]) for j in range(2)]
        first, second = (tree.root_values()[:, 1:] for tree in trees)
        own = seeds.joint_part(drawn[:, 2], nonces, first)
        other = seeds.joint_part(drawn[:, 1], nonces, field.subtracted(field.zeros(1), second))
        joint = seeds.joint_randomness(seeds.joint_seed(own, other), circuit.joint_length)
        leader, helper = np.concatenate([drawn[:, 2], other], axis=1), own
    proved = []
    for part in proof.blocks(rows):
        random = seeds.prove_randomness(drawn[part, 0], proof.prove_length)
        whole = proof.prove(encoded[part], random, joint[part])
        shared = seeds.proof_share(drawn[part, 1], proof.proof_length)
        proved.append(field.encoded(field.subtracted(whole, shared)))
    return (
        public,
        np.concatenate([keys[:, 0], np.concatenate(proved), leader], axis=1),
        np.concatenate([keys[:, 1], drawn[:, 1], helper], axis=1),
    )
