// redis-semaphore Semaphore 5.8.0, on an empty redis-server and without any fault:
// client-2 (thread-2, lock-2) was granted a permit: 3 are certainly held, and there are 2
//
// The calls, with their times, are those of a schedule that lockstorm found. Exit status: 1 if this run shows
// that mutual exclusion is broken, otherwise 0.
//
// install: npm install redis-semaphore@5.8.0 ioredis
// run:     node found.mjs [PORT ...]    (of redis-servers here; 6379)
import Redis from "ioredis";
import { Mutex, Semaphore, TimeoutError } from "redis-semaphore";

const ports = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [6379];
const client1 = new Redis(ports[0]);
const client2 = new Redis(ports[0]);
let client1Lock1, client2Lock1, client2Lock2;
const [asked, answered, outcome, aborts] = [{}, {}, {}, {}]; // by the number of a call: times in ms, "ok", "refused" or an error
const begin = performance.now() + 200;
const now = () => performance.now() - begin;
const sleep = (ms) => new Promise((wake) => setTimeout(wake, Math.max(0, ms)));
const at = (ms) => sleep(ms - now());

async function after(number) {
  while (!(number in answered)) await sleep(1);
}

async function call(number, words, work) {
  aborts[number] = new AbortController();
  asked[number] = now();
  try {
    outcome[number] = (await work(aborts[number].signal)) === false ? "refused" : "ok";
  } catch (error) {
    outcome[number] = error instanceof TimeoutError ? "refused" : String(error);
  }
  answered[number] = now();
  console.log(`${asked[number].toFixed(0).padStart(6)} ms to ${answered[number].toFixed(0).padStart(6)} ms  ${words}: ${outcome[number]}`);
}

async function client1Thread1() {
  await at(0);
  client1Lock1 = new Semaphore(client1, "resource-1", 2, { lockTimeout: 2000, acquireAttemptsLimit: 1, onLockLost: () => {} });
  await call(1, "client-1 thread-1: acquire lock-1", async (signal) => client1Lock1.tryAcquire(signal));
  await at(6000);
  await call(6, "client-1 thread-1: release lock-1", async (signal) => client1Lock1.release());
}

async function client2Thread1() {
  await at(25);
  await after(1);
  client2Lock1 = new Semaphore(client2, "resource-1", 2, { lockTimeout: 2000, acquireTimeout: 1000, onLockLost: () => {} });
  await call(2, "client-2 thread-1: acquire lock-1", async (signal) => client2Lock1.acquire(signal));
  await at(4000);
  await call(5, "client-2 thread-1: release lock-1", async (signal) => client2Lock1.release());
}

async function client2Thread2() {
  await at(2000);
  client2Lock2 = new Semaphore(client2, "resource-1", 2, { lockTimeout: 1000, refreshInterval: 0, acquireTimeout: Infinity, onLockLost: () => {} });
  await call(3, "client-2 thread-2: acquire lock-2", async (signal) => client2Lock2.tryAcquire(signal));
  await call(4, "client-2 thread-2: release lock-2", async (signal) => client2Lock2.release());
}

client1Thread1();
client2Thread1();
client2Thread2();
await at(6300);
const expected = { 1: "ok", 2: "ok" };
const isSame = Object.keys(expected).every((number) => outcome[number] === expected[number]);
const isBroken = isSame && outcome[3] === "ok" && answered[3] < (asked[5] ?? now());
console.log(isBroken ? "BROKEN" : isSame ? "kept" : "not shown: calls end in another way");
process.exit(isBroken ? 1 : 0);
