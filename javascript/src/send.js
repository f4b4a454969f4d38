// Bring envelopes to a shuffler's service.
import { concat } from "./bytes.js";
import { SfumatoError, refuse } from "./errors.js";

/**
 * Send envelopes in one request, and return how many were taken and how many refused. A request that failed, or was
 * put off, is made again with the same bytes: the shuffler knows their nonces.
 */
export async function send(url, envelopes, { attempts = 5, signal, fetch = globalThis.fetch } = {}) {
  const list = [envelopes].flat();
  if (!list.length || !list.every((one) => one instanceof Uint8Array)) {
    refuse("envelopes", "be one envelope or a list of them", "others", "pass what collection.envelope returned");
  }
  const place = new URL("/v1/reports", url);
  const wrong = (rule) => {
    throw new SfumatoError(`${place.origin} must ${rule}`);
  };
  const options = { method: "POST", body: concat(...list), signal, credentials: "omit", referrerPolicy: "no-referrer", redirect: "error" };
  for (let attempt = 1; ; attempt++) {
    const answer = await fetch(place, options).catch(() => signal?.throwIfAborted());
    const status = answer?.status;
    if (status && status !== 429 && status !== 503) {
      const { taken, refused } = Object(await answer.json().catch(() => {}));
      if (!([200, 422].includes(status) && [taken, refused].every(Number.isInteger))) {
        wrong(`be a shuffler's service, got status ${status}; check the URL`);
      }
      return { taken, refused };
    }
    if (attempt >= attempts) wrong(`take envelopes, got ${status ?? "no answer"}; send the same ones later`);
    await new Promise((resolve) => setTimeout(resolve, Math.min(2000, 100 * 2 ** attempt)));
  }
}
