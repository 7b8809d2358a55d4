// node-redlock 4 4.2.0, on an empty redis-server and without any fault:
// acquire (lockWithOptions(resource, ttl, options)) of client-1 (thread-2, lock-2) took 1000 ms; it was to wait for 0 ms
//
// The calls, with their times, are those of a schedule that lockstorm found. Exit status: 1 if this run shows
// that wait is broken, otherwise 0.
//
// install: npm install redlock@4.2.0 ioredis bluebird
// run:     node found.mjs [PORT ...]    (of redis-servers here; 6379)
import Bluebird from "bluebird";
import Redis from "ioredis";
import Redlock from "redlock";

const ports = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [6379];
const client1 = ports.map((port) => new Redis(port));
let client1Lock1, client1Lock2;
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
    outcome[number] = error.name === "LockError" ? "refused" : String(error);
  }
  answered[number] = now();
  console.log(`${asked[number].toFixed(0).padStart(6)} ms to ${answered[number].toFixed(0).padStart(6)} ms  ${words}: ${outcome[number]}`);
}

async function client1Thread1() {
  await at(0);
  await call(1, "client-1 thread-1: acquire lock-1", async (signal) => (client1Lock1 = await new Redlock(client1, { retryCount: 0 }).lock("resource-1", 2000)));
  await at(2000);
  await call(3, "client-1 thread-1: release lock-1", async (signal) => client1Lock1.unlock());
}

async function client1Thread2() {
  await at(25);
  await after(1);
  await call(2, "client-1 thread-2: acquire lock-2", async (signal) => (client1Lock2 = await new Redlock(client1, { retryDelay: 100, retryJitter: 0 }).lockWithOptions("resource-1", 2000, { retryCount: 0 })));
}

client1Thread1();
client1Thread2();
await at(2300);
const expected = { 1: "ok" };
const isSame = Object.keys(expected).every((number) => outcome[number] === expected[number]);
const isBroken = isSame && (answered[2] ?? now()) - asked[2] > 500;
console.log(isBroken ? "BROKEN" : isSame ? "kept" : "not shown: calls end in another way");
process.exit(isBroken ? 1 : 0);
