// etcd3's Lock: a key that is made if it is not there, tied to a lease of its own that is kept alive.
import { createRequire } from "node:module";
import { Etcd3, EtcdLockFailedError } from "etcd3";
import { outcome, serve } from "./lines.mjs";

const { version } = createRequire(import.meta.url)("etcd3/package.json");
const [ACQUIRE, DO] = ["lock(key).acquire()", "lock(key).do(fn)"];
const ANSWER_MS = 1000; // for each call but the streams; the library has no limit by itself
const RETRY_MS = 100; // the library does not wait for a lock: without a form the adapter tries again
let settings, client;

// Within `do` the lock is held until the promise of its function is fulfilled.
function done(lock) {
  return new Promise((resolve, reject) => {
    const whole = lock.do(() => new Promise((end) => resolve(() => (end(), whole))));
    whole.catch(reject);
  });
}

async function acquired(lock, form) {
  if (form === DO) return done(lock);
  await lock.acquire();
  return () => lock.release();
}

// As the README shows, each use has a Lock of its own.
async function tried(lock, form) {
  const made = client.lock(`/${lock.resource}`).ttl(Math.ceil(settings.lease_ms / 1000));
  try {
    lock.release = await acquired(made, form);
    return true;
  } catch (error) {
    if (error instanceof EtcdLockFailedError) return false;
    throw error;
  }
}

// A keep-alive that fails after its lock was given up rejects promises that have no handler.
process.on("unhandledRejection", (error) => console.error(`in the background: ${error.message}`));

serve({
  hello: {
    name: "etcd3", version, source: "etcd3, src/lock.ts", service: "etcd", lease: true, renews: true,
    lease_unit_ms: 1000, waits: "polling", operations: [],
  },
  hello2: {
    threads: 8, owner: "object",
    forms: [ACQUIRE, DO].map((form) => ({ form, wait: ["none"], lease: ["renewed"] })),
  },
  open: (opened) => {
    settings = opened;
    const defaultCallOptions = ({ isStream }) => (isStream ? {} : { deadline: Date.now() + ANSWER_MS });
    client = new Etcd3({ hosts: `unix:${settings.nodes[0].unix}`, defaultCallOptions });
  },
  acquire: async (lock, { form, wait_ms = null }) => {
    const until = Date.now() + (form ? 0 : (wait_ms ?? Infinity));
    do {
      if (await tried(lock, form)) return outcome(true);
      await new Promise((resolve) => setTimeout(resolve, Math.min(RETRY_MS, Math.max(0, until - Date.now()))));
    } while (Date.now() < until);
    return outcome(false);
  },
  release: async (lock) => {
    const { release } = lock;
    lock.release = undefined;
    await release?.();
    return outcome(release !== undefined);
  },
});
