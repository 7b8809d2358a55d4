// redis-semaphore's Mutex: SET NX PX, polled every 10 ms, refreshed at 0.8 of its lease for as long as it is held.
import { createRequire } from "node:module";
import { Mutex } from "redis-semaphore";
import { connect, outcome, serve } from "./lines.mjs";

const require = createRequire(import.meta.url);
const hello = {
  outcome: "ok", protocol: 1, name: "redis-semaphore Mutex", version: require("redis-semaphore/package.json").version,
  source: "redis-semaphore, src/RedisMutex.ts", lease: true, renews: true, waits: "polling", operations: ["status"],
};
let link, settings, mutex;

function newMutex(wait) {
  const options = { lockTimeout: settings.lease_ms, onLockLost: () => {} }; // the default ends the process
  if (settings.fixed_lease) options.refreshInterval = 0;
  return new Mutex(link, settings.resource, { ...options, ...wait });
}

// A refresh without an answer rejects a promise that has no handler: by default that ends the process, too.
process.on("unhandledRejection", (error) => console.error(`a refresh failed: ${error.message}`));

serve({
  hello: () => hello,
  open: (opened) => {
    settings = opened;
    [link] = connect(settings.nodes);
    return { outcome: "ok" };
  },
  acquire: async ({ wait_ms }) => {
    const wait = wait_ms === null ? {} : wait_ms === 0 ? { acquireAttemptsLimit: 1 } : { acquireTimeout: wait_ms };
    mutex = newMutex(wait);
    return outcome(await mutex.tryAcquire());
  },
  // release() does not report whether it still owned the key; isAcquired is false only after a loss that it noticed.
  release: async () => {
    const held = mutex?.isAcquired ?? false;
    await mutex?.release();
    return outcome(held);
  },
  status: () => ({ outcome: "ok", held: mutex?.isAcquired ?? false }),
});
