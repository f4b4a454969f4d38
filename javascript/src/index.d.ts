/** Input that this client refuses: the message names the parameter, the rule, and what to do. No true value is in it. */
export class SfumatoError extends Error {}

/** A true value: a category of the domain (text, whole number or boolean), a number between the bounds, for RAPPOR text or bytes, or a vector. */
export type TrueValue = string | number | bigint | boolean | Uint8Array | readonly number[] | Float32Array | Float64Array;

/** What reports are charged to: the Budget of `sfumato-client/budget`, or one of the program's own. */
export interface Charged {
  /** Spend an epsilon before a report is drawn, or throw and spend nothing. */
  charge(epsilon: number): void | Promise<void>;
}

/** Protocols beside those for frequencies, by their names, such as `means` of `sfumato-client/means`. */
export interface Protocols {
  readonly [name: string]: (fields: never) => Promise<unknown>;
}

export interface Limits {
  /** The most that one report may cost, above 0 and at most 40. No server raises it. */
  maxEpsilon: number;
  /** Digests of the specifications that this device answers, in hexadecimal; from another way than the server. */
  digest: string | readonly string[];
  /** What each report is charged to; null if the program itself limits what all reports cost together. */
  budget: Charged | null;
  /** Protocols beside those for frequencies. */
  protocols?: Protocols;
}

export interface CollectionLimits {
  /** The most that one report may cost, above 0 and at most 40. No server raises it. */
  maxEpsilon: number;
  /** Ids of the collections that this device answers, in hexadecimal; from another way than the server. */
  id: string | readonly string[];
  /** What each report is charged to; null if the program itself limits what all reports cost together. */
  budget: Charged | null;
  /** Protocols beside those for frequencies. */
  protocols?: Protocols;
}

/** A device that reports again and again: a `RapporClient` or `MemoClient` of `sfumato-client/longitudinal`. */
export interface RepeatedClient {
  report(value: TrueValue): Promise<Uint8Array>;
}

/** The device's half of a protocol. Each report costs `epsilon`, whatever bytes are sent. */
export class Randomizer {
  private constructor();
  readonly protocol: string;
  readonly epsilon: number;
  /** 64 hexadecimal digits that identify the specification. */
  readonly digest: string;
  /** Bytes of a record. */
  readonly width: number;
  /**
   * Read a specification, as text, within the device's own limits.
   * @throws SfumatoError if it breaks a rule, costs more than `maxEpsilon`, or has another digest.
   */
  static fromText(text: string, limits: Limits): Promise<Randomizer>;
  /** Return the record of one true value, drawn from the system's cryptographic randomness. */
  randomize(value: TrueValue): Promise<Uint8Array>;
  /** Return a device that reports again and again, where `longitudinal` of `sfumato-client/longitudinal` is among the protocols. */
  client<Client = RepeatedClient>(given: Uint8Array | { maxEpsilon: number; storage?: object; question?: string }): Client;
}

/** A question that a shuffler collects. */
export class Collection {
  private constructor();
  readonly randomizer: Randomizer;
  /** 64 hexadecimal digits that identify the collection. */
  readonly id: string;
  readonly batchSize: number;
  readonly colluders: number;
  readonly name: string;
  /** Bytes of every envelope. */
  readonly envelopeWidth: number;
  /**
   * Read a collection's file, as text, within the device's own limits.
   * @throws SfumatoError if it breaks a rule, costs more than `maxEpsilon`, or has another id.
   */
  static fromText(text: string, limits: CollectionLimits): Promise<Collection>;
  /** Return the nonce of the device that holds a secret of at least 16 bytes. */
  nonce(secret: Uint8Array): Promise<Uint8Array>;
  /** Return what the device sends: its answer, randomized and sealed. Call it once, and store the envelope. */
  envelope(value: TrueValue, secret: Uint8Array): Promise<Uint8Array>;
  /** Return the envelope of a record that was drawn before, such as one of a client with memos. */
  seal(record: Uint8Array, secret: Uint8Array): Promise<Uint8Array>;
}

export interface SendOptions {
  /** How often the request is made before its failure is one; 5 if left out. */
  attempts?: number;
  signal?: AbortSignal;
  fetch?: typeof fetch;
}

/** Send envelopes in one request; to send them again is harmless. */
export function send(
  url: string | URL,
  envelopes: Uint8Array | readonly Uint8Array[],
  options?: SendOptions,
): Promise<{ taken: number; refused: number }>;
