// redis-semaphore's Mutex, Semaphore or RedlockMutex (the argument): polled every 10 ms, refreshed at 0.8 of its lease.
import { createRequire } from "node:module";
import { Mutex, RedlockMutex, Semaphore, TimeoutError } from "redis-semaphore";
import { connect, outcome, serve } from "./lines.mjs";

const { version } = createRequire(import.meta.url)("redis-semaphore/package.json");
const abort = /^5\.[0-6]\./.test(version) ? "" : "abortSignal"; // older releases take no signal
const KINDS = {
  Mutex: { file: "RedisMutex", make: (resource, options) => new Mutex(links[0], resource, options) },
  Semaphore: {
    file: "RedisSemaphore", traits: { semaphore: true }, mode: "permits", key: "semaphore:{resource}",
    make: (resource, options) => new Semaphore(links[0], resource, settings.permits, options),
  },
  RedlockMutex: {
    file: "RedlockMutex", traits: { nodes: 3 },
    make: (resource, options, lock) => new RedlockMutex(links.map((link) => counted(link, lock)), resource, options),
  },
};
const name = process.argv[2] ?? "Mutex", kind = KINDS[name];
const offer = { wait: ["none", "time", "forever"], wait_unit_ms: 10, lease: ["given", "renewed"] };
let links, settings;

// RedlockMutex takes a command that failed for a refusal: failures are counted, for they leave the outcome unknown.
function counted(link, lock) {
  const count = (error) => {
    if (!error.message.startsWith("NOSCRIPT")) lock.failures++;
    throw error;
  };
  const methods = ["eval", "evalsha", "get", "set", "zrem"];
  return Object.fromEntries(methods.map((method) => [method, (...words) => link[method](...words).catch(count)]));
}

function make(lock, { wait_ms, lease_ms, lock: number }) {
  const options = { lockTimeout: lease_ms ?? settings.lease_ms, onLockLost: () => lost(lock) }; // the default ends the process
  if (lease_ms === undefined ? settings.fixed_lease : lease_ms !== null) options.refreshInterval = 0;
  if (wait_ms === 0) options.acquireAttemptsLimit = 1;
  else if (wait_ms || number) options.acquireTimeout = wait_ms ?? Infinity; // by default it waits for 10 s
  return kind.make(lock.resource, options, lock);
}

async function acquired(mutex, form, signal) {
  const refused = (error) => (error instanceof TimeoutError ? false : Promise.reject(error));
  return form?.startsWith("acquire") ? mutex.acquire(signal).then(() => true, refused) : mutex.tryAcquire(signal);
}

// A refresh without an answer rejects a promise that has no handler: by default that ends the process, too.
process.on("unhandledRejection", (error) => console.error(`a refresh failed: ${error.message}`));

const lost = serve({
  hello: {
    name: `redis-semaphore ${name}`, version, source: `redis-semaphore, src/${kind.file}.ts`, lease: true, renews: true,
    waits: "polling", operations: ["status"], ...kind.traits,
  },
  hello2: {
    threads: 8, owner: "object", modes: [kind.mode ?? "exclusive"], of_object: ["lease_ms", "wait_ms"], cancel: abort !== "",
    lease_key: kind.key ?? "mutex:{resource}", watchdog_divisor: 1, lenient_release: true, timer_ms: 10, poll_ms: 10, // one retry
    forms: [`tryAcquire(${abort})`, `acquire(${abort})`].map((form) => ({ form, ...offer })),
  },
  hello3: { loss_notice: "renewal" },
  open: (opened) => {
    settings = opened;
    links = connect(settings.nodes);
  },
  acquire: async (lock, question, signal) => {
    if (!lock.mutex || !question.lock) lock.mutex = make(lock, question); // version 1: a new one for each acquire
    lock.failures = 0;
    const held = await acquired(lock.mutex, question.form, signal);
    return !held && lock.failures ? { outcome: "unknown", error: "a node did not answer" } : outcome(held);
  },
  // release() does not report whether it still owned the key; isAcquired is false only after a loss that it noticed.
  release: async (lock) => {
    const held = lock.mutex?.isAcquired ?? false;
    lock.failures = 0;
    await lock.mutex?.release();
    return lock.failures ? { outcome: "unknown", error: "a node did not answer" } : outcome(held);
  },
  status: (lock) => ({ held: lock.mutex?.isAcquired ?? false }),
  forget: (lock) => lock.mutex?.stopRefresh(),
});
