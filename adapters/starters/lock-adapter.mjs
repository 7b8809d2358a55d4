#!/usr/bin/env node
// A lock library for lockstorm, through an adapter: change the five marked places to use your own.

import Redis from "ioredis";
import readline from "node:readline";
import { Mutex, TimeoutError } from "redis-semaphore"; // 1. your library

// 2. Its description; docs/adapters.md has all keys. HELLO_2: for calls of several tasks about several lock objects.
const HELLO = { name: "my lock", lease: true, renews: true, operations: ["status"] };
const HELLO_2 = {
  threads: 8, owner: "object", of_object: ["lease_ms", "wait_ms"], cancel: true, lease_key: "mutex:{resource}",
  watchdog_divisor: 1, timer_ms: 10, lenient_release: true, // it renews after 0.8 of a lease
  forms: [{ form: "acquire(abortSignal)", wait: ["time", "forever"], wait_unit_ms: 10, lease: ["given", "renewed"] }],
};

const HELLO_3 = { loss_notice: "renewal" }; // the library tells by itself that a hold is lost

// 3. A connection, and a lock object. The trial's proxy listens at the nodes: connect to these addresses only.
function connected(nodes) {
  const once = { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false }; // by default ioredis sends again
  const link = new Redis({ path: nodes[0].unix, commandTimeout: 1000, retryStrategy: () => 50, ...once });
  return link.on("error", () => {}); // each command reports its own error
}

function made({ resource = opened.resource, lock, wait_ms, lease_ms }) {
  const onLockLost = () => protocol === 3 && console.log(JSON.stringify({ notice: "lost", lock, resource }));
  const options = { lockTimeout: lease_ms ?? opened.lease_ms, onLockLost }; // the default ends the process
  if (lease_ms === undefined ? opened.fixed_lease : lease_ms !== null) options.refreshInterval = 0;
  if (wait_ms === 0) options.acquireAttemptsLimit = 1;
  else options.acquireTimeout = wait_ms ?? (protocol === 1 ? 10_000 : Infinity); // its default, or no limit
  return new Mutex(link, resource, options);
}

// 4. One question: true it succeeded, false it was refused. `outcome` handles exceptions.
async function answered(mutex, verb, signal) {
  if (verb === "acquire") return mutex.acquire(signal).then(() => true);
  const held = mutex.isAcquired; // release() does not say whether it was ours
  return mutex.release().then(() => held);
}

async function outcome(question, signal) {
  const number = question.lock ?? 1; // in version 1 each acquire makes a lock object
  if (!locks.has(number) || (protocol === 1 && question.op === "acquire")) locks.set(number, made(question));
  if (question.op === "status") return { held: locks.get(number).isAcquired };
  try {
    return (await answered(locks.get(number), question.op, signal)) ? {} : { outcome: "refused" };
  } catch (error) { // 5. what your library throws if another holds the lock; else the server may have executed it
    const cancelled = signal.aborted && error === signal.reason && { cancelled: true };
    const refused = error instanceof TimeoutError || cancelled;
    return { outcome: refused ? "refused" : "unknown", ...cancelled, error: String(error.message) };
  }
}

function write(question, answer) {
  underWay.delete(question.id);
  console.log(JSON.stringify({ id: question.id, outcome: "ok", ...answer }));
}

let link, opened, protocol = 1;
const threads = new Map(), locks = new Map(), underWay = new Map();
process.on("unhandledRejection", (error) => console.error(error.message)); // a refresh that failed: it goes on
for await (const line of readline.createInterface({ input: process.stdin })) {
  const question = JSON.parse(line), { id, op, thread = 1 } = question;
  if (op === "hello") {
    protocol = Math.min(3, question.protocol);
    write(question, { protocol, ...HELLO, ...(protocol > 1 && HELLO_2), ...(protocol > 2 && HELLO_3) });
  } else if (op === "open") {
    [opened, link] = [question, connected(question.nodes)];
    write(question, {});
  } else if (op === "cancel" || op === "forget") {
    const call = underWay.get(question.call), done = op === "cancel" ? call : underWay.size === 0;
    if (done && op === "forget") locks.forEach((mutex) => mutex.stopRefresh());
    if (done) op === "cancel" ? call.abort() : [locks, threads].forEach((each) => each.clear());
    write(question, { outcome: done ? "ok" : "refused" });
  } else { // a thread makes one call after the other
    const call = new AbortController();
    underWay.set(id, call);
    const answer = async () => write(question, await outcome(question, call.signal));
    threads.set(thread, Promise.resolve(threads.get(thread)).then(answer));
  }
}
process.exit(0); // ends the timers of the library, too
