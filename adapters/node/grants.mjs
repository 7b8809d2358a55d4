// Shared by the adapters of node-redlock 4 and 5, whose acquire returns a grant, which is released and extended.
import { connect, serve, validUntil } from "./lines.mjs";

export const RETRY_MS = 100;
export const OFFER = { wait_unit_ms: RETRY_MS, lease: ["given"] };

// The library's settings for a wait; with -1 it has no end. Version 1 has no lock objects: the library's own settings.
function waitsOf({ wait_ms = null, lock }) {
  if (wait_ms === null && lock === undefined) return {};
  return { retryCount: wait_ms === null ? -1 : Math.ceil(wait_ms / RETRY_MS), retryDelay: RETRY_MS, retryJitter: 0 };
}

// Counts the events that say that a node did not answer, since the library raises one error for any reason.
export function counting(redlock, event, counts = () => true) {
  redlock.failures = 0;
  return redlock.on(event, (error) => (redlock.failures += counts(error) ? 1 : 0));
}

async function attempt(redlock, work) {
  const before = redlock?.failures;
  try {
    if (!redlock) throw new Error("nothing is held");
    return { outcome: "ok", ...(await work()) };
  } catch (error) {
    return { outcome: redlock?.failures > before ? "unknown" : "refused", error: error.message };
  }
}

// `forms`: by its name, how each form acquires. It returns { grant, release }, and may return { isHeld }, if it has no
// grant. `redlockFor` makes the library's object for an acquire.
export function serveGrants({ hello, hello2, hello3, redlockFor, forms }) {
  const usual = Object.keys(forms)[0];
  let links, lease;
  const lost = serve({
    hello: { ...hello, lease: true, waits: "polling", nodes: 5, operations: ["renew", "status"] },
    // A wait is a number of tries, whose timers together may be late by one of them.
    hello2: {
      ...hello2, threads: 8, owner: "object", lease_key: "{resource}", renew_lease: true, timer_ms: RETRY_MS,
      poll_ms: RETRY_MS,
    },
    hello3,
    open: (question) => {
      links = connect(question.nodes);
      lease = question.lease_ms;
    },
    acquire: (lock, question) => {
      const [form, ttl, waits] = [question.form ?? usual, question.lease_ms ?? lease, waitsOf(question)];
      const redlock = redlockFor(links, form, waits, lock);
      return attempt(redlock, async () => {
        const held = await forms[form](redlock, lock, ttl, waits, lost);
        lock.held = { ...held, redlock, ttl };
        return held.grant && { valid_until_ms: validUntil(held.grant.expiration) };
      });
    },
    release: (lock) => {
      const { held } = lock;
      lock.held = undefined;
      return attempt(held?.redlock, async () => void (await held.release()));
    },
    renew: ({ held }, { lease_ms }) =>
      attempt(held?.redlock, async () => {
        held.grant = await held.grant.extend(lease_ms ?? held.ttl);
      }),
    status: ({ held }) => ({ held: held?.isHeld?.() ?? held?.grant.expiration > Date.now() }),
    forget: async ({ held }) => held?.isHeld && held.release().catch(() => {}), // only that ends what extends it
  });
}
