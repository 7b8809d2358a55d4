#!/usr/bin/env node
// A lock for lockstorm: put yours in its place. `lockstorm docs adapters` has the keys of serve().
const { randomUUID } = require("node:crypto");
const { setTimeout: sleep } = require("node:timers/promises");
const Redis = require("ioredis"); // 1. your library
const { serve } = require("lockstorm"); // of lockstorm, which starts this program

let link;
function connected(url) { // 2. to the servers that lockstorm names, and to no other; by default ioredis sends again
  const once = { commandTimeout: 1000, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false };
  return (link ??= new Redis(url, { ...once, retryStrategy: () => 50 }).on("error", () => {}));
}

class MyLock {
  constructor([url], key, lease) {
    Object.assign(this, { link: connected(url), key, lease, owner: randomUUID() });
  }
  async acquire(wait, signal) {
    for (const until = performance.now() + wait; ; await sleep(50, null, { signal })) {
      if (await this.link.set(this.key, this.owner, "PX", this.lease, "NX")) return true;
      if (performance.now() >= until) return false;
    }
  }
  async ifOurs(call) {
    const script = `return redis.call('GET', KEYS[1]) == ARGV[1] and ${call} or 0`;
    return (await this.link.eval(script, 1, this.key, this.owner, this.lease)) === 1;
  }
}

serve({ // 3. a lock object, and its calls; `wait` and `lease` are in ms
  make: (urls, resource, lease) => new MyLock(urls, resource, lease),
  acquire: (lock, wait, signal) => lock.acquire(wait, signal), // the signal ends a wait
  release: (lock) => lock.ifOurs("redis.call('DEL', KEYS[1])"),
  renew: (lock) => lock.ifOurs("redis.call('PEXPIRE', KEYS[1], ARGV[2])"),
  lease_key: "{resource}", // the key at the server that ends with the lease
  // forget: (lock) => ..., for a lock that renews itself: lockstorm drops the lock object, and renewing it has to stop
});
