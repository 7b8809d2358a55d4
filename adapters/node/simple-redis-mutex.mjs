// simple-redis-mutex: SET NX PX, then INCR for a token; waiters try again when a release is published, and now and then.
import { createRequire } from "node:module";
import { createClient } from "redis";
import { lock as acquireLock, tryLock } from "simple-redis-mutex";
import { outcome, serve } from "./lines.mjs";

const { version } = createRequire(import.meta.url)("simple-redis-mutex/package.json");
const [LOCK, TRY_LOCK] = ["lock(redis, name, options)", "tryLock(redis, name, options)"];
const POLLING_MS = 500; // for those whose holder has crashed
let settings, client, connected;

// A try that fails rejects a promise that has no handler: by default that ends the process.
process.on("unhandledRejection", (error) => console.error(`a try failed: ${error.message}`));

async function acquired(lock, form, timeout, wait_ms) {
  if (form === TRY_LOCK || wait_ms === 0) return tryLock(client, lock.resource, { timeout });
  const options = { timeout, pollingInterval: POLLING_MS, ...(wait_ms && { failAfter: wait_ms }) };
  const refused = (error) => (/could not be acquired/.test(error.message) ? [false] : Promise.reject(error));
  return acquireLock(client, lock.resource, options).then((release) => [true, release], refused);
}

serve({
  hello: {
    name: "simple-redis-mutex", version, source: "simple-redis-mutex, src/redis-mutex.ts", lease: true, token: true,
    waits: "push", operations: [],
  },
  hello2: {
    threads: 8, owner: "object", lenient_release: true,
    lease_key: "@simple-redis-mutex:lock-{resource}", keeps: ["@simple-redis-mutex:fencing-tokens", "@simple-redis-mutex:locks-releases"],
    forms: [
      { form: LOCK, wait: ["time", "forever"], lease: ["given"] },
      { form: TRY_LOCK, wait: ["none"], lease: ["given"] },
    ],
  },
  open: (opened) => {
    settings = opened;
    client = createClient({ socket: { path: settings.nodes[0].unix, reconnectStrategy: 50 } });
    client.on("error", () => {}); // each command reports its own error
    connected = client.connect();
  },
  acquire: async (lock, { form, lease_ms, wait_ms }) => {
    await connected;
    const [held, release] = await acquired(lock, form, lease_ms ?? settings.lease_ms, wait_ms);
    if (held) lock.release = release;
    return held ? { outcome: "ok", token: release.fencingToken } : outcome(false);
  },
  release: async (lock) => {
    const release = lock.release;
    lock.release = undefined;
    await release?.();
    return outcome(release !== undefined);
  },
});
