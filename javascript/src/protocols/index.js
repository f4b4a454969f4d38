// By its name on the wire, what each protocol needs and how it is made.
import {
  bitFlip, localHashing, noisyHistogram, randomizedResponse, subsetSelection, unary,
} from "./categories.js";
import { hadamardResponse, oneBitHadamard, projectiveGeometry, signedHadamard } from "./designs.js";
import { countMeanSketch, hadamardCountMeanSketch, rappor } from "./hashes.js";
import { hybridMean, laplaceMean, windowMean } from "./means.js";

/** Protocols about a category of a domain. */
export const CATEGORICAL = {
  "binary-local-hashing": localHashing,
  "bit-flip": bitFlip,
  "count-mean-sketch": countMeanSketch,
  "hadamard-count-mean-sketch": hadamardCountMeanSketch,
  "hadamard-response": hadamardResponse,
  "noisy-histogram": noisyHistogram,
  "one-bit-hadamard": oneBitHadamard,
  "optimal-local-hashing": localHashing,
  "optimized-unary-encoding": unary(false),
  "projective-geometry-response": projectiveGeometry,
  "randomized-response": randomizedResponse,
  "signed-hadamard": signedHadamard,
  "subset-selection": subsetSelection,
  "symmetric-unary-encoding": unary(true),
};

/** Protocols about a text or a number. */
export const OTHER = {
  "hybrid-mean": hybridMean,
  "laplace-mean": laplaceMean,
  "one-bit-mean": windowMean(true),
  "piecewise-mean": windowMean(false),
  rappor,
  "square-wave": windowMean(false),
  "stochastic-rounding-mean": windowMean(false),
};
