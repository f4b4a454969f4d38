// Protocols of devices that report again and again: pass them as `protocols`.
import {
  longitudinalHashing, longitudinalResponse, longitudinalUnary, memoizedBitFlip, memoizedOneBitMean, memoizedRappor,
} from "./protocols/memoizing.js";
import { rappor } from "./protocols/rappor_client.js";

export const longitudinal = {
  "longitudinal-local-hashing": longitudinalHashing,
  "longitudinal-randomized-response": longitudinalResponse,
  "longitudinal-unary-encoding": longitudinalUnary,
  "memoized-bit-flip": memoizedBitFlip,
  "memoized-one-bit-mean": memoizedOneBitMean,
  "memoized-rappor": memoizedRappor,
  rappor,
};
