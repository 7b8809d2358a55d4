// node-redlock 4: a majority of nodes, validity by Date.now().
import { createRequire } from "node:module";
import { connect, serve, validUntil } from "./lines.mjs";

const require = createRequire(import.meta.url);
const Redlock = require("redlock-4");
const hello = {
  outcome: "ok", protocol: 1, name: "node-redlock 4", version: require("redlock-4/package.json").version,
  source: "node-redlock, redlock.js", lease: true, waits: "polling", nodes: 5, operations: ["renew", "status"],
};
const RETRY_MS = 100;
let links, resource, lease, held, errors;

function redlock(options) {
  const made = new Redlock(links, options);
  made.on("clientError", () => errors++);
  return made;
}

// The library raises a LockError for any reason; only a client error means that a node did not answer.
async function attempt(work) {
  errors = 0;
  try {
    return { outcome: "ok", ...(await work()) };
  } catch (error) {
    return { outcome: errors > 0 ? "unknown" : "refused", error: error.message };
  }
}

serve({
  hello: () => hello,
  open: (request) => {
    links = connect(request.nodes);
    [resource, lease] = [request.resource, request.lease_ms];
    return { outcome: "ok" };
  },
  acquire: ({ wait_ms }) =>
    attempt(async () => {
      const waits = { retryCount: Math.ceil(wait_ms / RETRY_MS), retryDelay: RETRY_MS, retryJitter: 0 };
      held = await redlock(wait_ms === null ? {} : waits).lock(resource, lease);
      return { valid_until_ms: validUntil(held.expiration) };
    }),
  release: () =>
    attempt(async () => {
      if (!held) throw new Error("nothing is held");
      const mine = held;
      held = undefined;
      await mine.unlock();
    }),
  renew: () =>
    attempt(async () => {
      if (!held) throw new Error("nothing is held");
      held = await held.extend(lease);
    }),
  status: () => ({ outcome: "ok", held: held !== undefined && held.expiration > Date.now() }),
});
