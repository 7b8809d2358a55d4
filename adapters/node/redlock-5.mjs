// node-redlock 5: a majority of nodes, validity by Date.now() from the first try on; the library never checks it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { connect, serve, validUntil } from "./lines.mjs";

const require = createRequire(import.meta.url);
const { default: Redlock, ResourceLockedError } = require("redlock-5");
const { version } = JSON.parse(readFileSync(new URL("node_modules/redlock-5/package.json", import.meta.url)));
const hello = {
  outcome: "ok", protocol: 1, name: "node-redlock 5", version,
  source: "node-redlock, src/index.ts", lease: true, waits: "polling", nodes: 5, operations: ["renew", "status"],
};
const RETRY_MS = 100;
let redlock, resource, lease, held, errors;

// The library raises an ExecutionError for any reason; its error events say whether a node did not answer.
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
    redlock = new Redlock(connect(request.nodes));
    redlock.on("error", (error) => (errors += error instanceof ResourceLockedError ? 0 : 1));
    [resource, lease] = [request.resource, request.lease_ms];
    return { outcome: "ok" };
  },
  acquire: ({ wait_ms }) =>
    attempt(async () => {
      const waits = { retryCount: Math.ceil(wait_ms / RETRY_MS), retryDelay: RETRY_MS, retryJitter: 0 };
      held = await redlock.acquire([resource], lease, wait_ms === null ? {} : waits);
      return { valid_until_ms: validUntil(held.expiration) };
    }),
  release: () =>
    attempt(async () => {
      if (!held) throw new Error("nothing is held");
      const mine = held;
      held = undefined;
      await mine.release();
    }),
  renew: () =>
    attempt(async () => {
      if (!held) throw new Error("nothing is held");
      held = await held.extend(lease);
    }),
  status: () => ({ outcome: "ok", held: held !== undefined && held.expiration > Date.now() }),
});
