// advisory-lock: PostgreSQL's advisory locks, each with a connection of its own while it is held.
import { createRequire } from "node:module";
import { outcome, serve } from "./lines.mjs";

const require = createRequire(import.meta.url);
const { version } = require("advisory-lock/package.json"), createFactory = require("advisory-lock").default;
const [LOCK, TRY_LOCK, WITH_LOCK] = ["lock()", "tryLock()", "withLock(fn)"];
const [PATIENCE_MS, NO_LIMIT_MS] = [10_000, 50_000];
let createMutex;

// The library listens to no errors of its connections: by default one that the server ends, ends the process.
process.on("uncaughtException", (error) => console.error(`a connection failed: ${error.message}`));

// Within `withLock` the lock is held until the promise of its function is fulfilled.
function used(mutex) {
  return new Promise((resolve, reject) => {
    const whole = mutex.withLock(() => new Promise((end) => resolve(() => (end(), whole))));
    whole.catch(reject);
  });
}

// The library has no limits, version 1 has. Who gives a call up gives back what it is granted later.
function within(call, limit_ms, atEnd) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      call.then((unlock) => unlock?.(), () => {});
      atEnd(resolve, reject);
    }, limit_ms);
    call.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

function acquired(mutex, { form, wait_ms = null }) {
  if (form) return form === WITH_LOCK ? used(mutex) : form === TRY_LOCK ? mutex.tryLock() : mutex.lock();
  const silent = (_, reject) => reject(new Error("no answer in time"));
  if (wait_ms === null) return within(mutex.lock(), NO_LIMIT_MS, silent);
  if (wait_ms === 0) return within(mutex.tryLock(), PATIENCE_MS, silent);
  return within(mutex.lock(), wait_ms, (resolve) => resolve());
}

serve({
  hello: {
    name: "advisory-lock", version, source: "advisory-lock, src/index.ts", service: "postgres", tcp: true,
    waits: "in-server", operations: [],
  },
  hello2: {
    threads: 8, owner: "object",
    forms: [
      { form: LOCK, wait: ["forever"], lease: ["endless"] },
      { form: TRY_LOCK, wait: ["none"], lease: ["endless"] },
      { form: WITH_LOCK, wait: ["forever"], lease: ["endless"] },
    ],
  },
  open: ({ nodes: [{ host, port }] }) => {
    createMutex = createFactory(`postgres://lockstorm@${host}:${port}/postgres?sslmode=disable`);
  },
  acquire: async (lock, question) => {
    lock.mutex ??= createMutex(lock.resource);
    const unlock = await acquired(lock.mutex, question);
    if (unlock) lock.unlock = unlock;
    return outcome(unlock !== undefined);
  },
  release: async (lock) => {
    const { unlock } = lock;
    lock.unlock = undefined;
    await unlock?.();
    return outcome(unlock !== undefined);
  },
});
