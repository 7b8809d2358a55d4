// redis-semaphore's Mutex: SET NX PX, polled every 10 ms, refreshed at 0.8 of its lease for as long as it is held.
import { createRequire } from "node:module";
import { Mutex } from "redis-semaphore";
import { connect, outcome, serve } from "./lines.mjs";

const require = createRequire(import.meta.url);
const hello = {
  outcome: "ok", protocol: 1, name: "redis-semaphore Mutex", version: require("redis-semaphore/package.json").version,
  source: "redis-semaphore, src/RedisMutex.ts", lease: true, renews: true, waits: "polling", operations: ["status"],
};
let link, asked, mutex;

function made(wait) {
  const options = { lockTimeout: asked.lease_ms, onLockLost: () => {} }; // by itself it ends the process
  if (asked.fixed_lease) options.refreshInterval = 0;
  return new Mutex(link, asked.resource, { ...options, ...wait });
}

// A refresh that gets no answer is rejected where nobody listens: by itself, that ends the process too.
process.on("unhandledRejection", (error) => console.error(`a refresh failed: ${error.message}`));

serve({
  hello: () => hello,
  open: (opened) => {
    asked = opened;
    [link] = connect(asked.nodes);
    return { outcome: "ok" };
  },
  acquire: async ({ wait_ms }) => {
    const wait = wait_ms === null ? {} : wait_ms === 0 ? { acquireAttemptsLimit: 1 } : { acquireTimeout: wait_ms };
    mutex = made(wait);
    return outcome(await mutex.tryAcquire());
  },
  // It does not say whether the key was still its own; only whether it knows of a loss.
  release: async () => {
    const held = mutex?.isAcquired ?? false;
    await mutex?.release();
    return outcome(held);
  },
  status: () => ({ outcome: "ok", held: mutex?.isAcquired ?? false }),
});
