// Protocols that estimate frequencies, by their names on the wire.
import {
  bitFlip, localHashing, noisyHistogram, randomizedResponse, subsetSelection, unary,
} from "./categories.js";
import { hadamardResponse, oneColumn, projectiveGeometry } from "./designs.js";
import { rappor, sketch } from "./hashes.js";

export const frequency = {
  "binary-local-hashing": localHashing,
  "bit-flip": bitFlip,
  "count-mean-sketch": sketch(),
  "hadamard-count-mean-sketch": sketch(true),
  "hadamard-response": hadamardResponse,
  "noisy-histogram": noisyHistogram,
  "one-bit-hadamard": oneColumn(0),
  "optimal-local-hashing": localHashing,
  "optimized-unary-encoding": unary(),
  "projective-geometry-response": projectiveGeometry,
  rappor,
  "randomized-response": randomizedResponse,
  "signed-hadamard": oneColumn(1),
  "subset-selection": subsetSelection,
  "symmetric-unary-encoding": unary(true),
};
