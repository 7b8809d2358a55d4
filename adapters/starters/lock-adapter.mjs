#!/usr/bin/env node
// A lock library for lockstorm, through an adapter: change the five marked places to use your own.

import Redis from "ioredis";
import readline from "node:readline";
import { Mutex, TimeoutError } from "redis-semaphore"; // 1. your library

// 2. Its description; docs/adapters.md has all keys.
const HELLO = { protocol: 1, name: "my lock", lease: true, renews: true };
let link, opened, mutex;

// 3. What a lock object needs. The proxy of the trial listens at the nodes: connect to these addresses only.
function open(request) {
  opened = request;
  const once = { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false }; // by default ioredis sends again
  link = new Redis({ path: request.nodes[0].unix, commandTimeout: 1000, retryStrategy: () => 50, ...once });
  link.on("error", () => {}); // each command reports its own error
}

function newMutex({ wait_ms }) {
  const options = { lockTimeout: opened.lease_ms, onLockLost: () => {} }; // the default ends the process
  if (opened.fixed_lease) options.refreshInterval = 0;
  if (wait_ms === 0) options.acquireAttemptsLimit = 1;
  else if (wait_ms !== null) options.acquireTimeout = wait_ms; // null: the default of the library
  return new Mutex(link, opened.resource, options);
}

// 4. One request: true it succeeded, false it was refused. The loop below handles exceptions.
async function answered(request) {
  if (request.op === "acquire") {
    mutex = newMutex(request);
    await mutex.acquire();
    return true;
  }
  const held = mutex?.isAcquired ?? false; // release() does not say whether it was ours
  await mutex?.release();
  return held;
}

process.on("unhandledRejection", (error) => console.error(error.message)); // a refresh that failed: it goes on
for await (const line of readline.createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const answer = { id: request.id, outcome: "ok" };
  try {
    if (request.op === "hello") Object.assign(answer, HELLO);
    else if (request.op === "open") open(request);
    else if (!(await answered(request))) answer.outcome = "refused";
  } catch (error) { // 5. what your library throws if another holds the lock; else the server may have executed it
    answer.outcome = error instanceof TimeoutError ? "refused" : "unknown";
    answer.error = String(error.message);
  }
  console.log(JSON.stringify(answer));
}
process.exit(0); // ends the timers of the library, too
