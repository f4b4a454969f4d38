// Bring envelopes to a shuffler's service.
import { SfumatoError, refuse } from "./errors.js";
import { concat } from "./bytes.js";

const LATER = [429, 503];
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * Send envelopes in one request, and return how many were taken and how many refused. A request that failed, or was
 * put off, is made again with the same bytes: the shuffler knows their nonces.
 */
export async function send(url, envelopes, { attempts = 5, signal, fetch: ask = globalThis.fetch } = {}) {
  const list = envelopes instanceof Uint8Array ? [envelopes] : envelopes;
  if (!Array.isArray(list) || !list.length || !list.every((one) => one instanceof Uint8Array)) {
    refuse("envelopes", "be one envelope or a list of them", "others", "pass what collection.envelope returned");
  }
  const place = new URL("/v1/reports", url);
  for (let attempt = 1; ; attempt++) {
    const answer = await asked(ask, place, concat(...list), signal);
    if (answer && !LATER.includes(answer.status)) return counts(answer, place);
    if (attempt >= attempts) throw new SfumatoError(`${place.origin} must take envelopes, got ${answer?.status ?? "no answer"}; send the same ones later`);
    await pause(Math.min(2000, 100 * 2 ** attempt));
  }
}

async function asked(ask, place, body, signal) {
  const options = { method: "POST", body, signal, credentials: "omit", referrerPolicy: "no-referrer", redirect: "error" };
  try {
    return await ask(place, options);
  } catch {
    if (signal?.aborted) throw signal.reason;
    return null;
  }
}

async function counts(answer, place) {
  const found = await answer.json().catch(() => null);
  if (![200, 422].includes(answer.status) || !Number.isInteger(found?.taken) || !Number.isInteger(found?.refused)) {
    throw new SfumatoError(`${place.origin} must be a shuffler's service, got status ${answer.status}; check the URL`);
  }
  return { taken: found.taken, refused: found.refused };
}
