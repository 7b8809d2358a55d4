// node-redlock 5, or the argument, a package that derives from it: a majority of nodes, validity by Date.now(), of version 5
// from the first try on; the libraries never check it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { counting, OFFER, serveGrants } from "./grants.mjs";

const name = process.argv[2] ?? "redlock-5";
const library = createRequire(import.meta.url)(name), { ResourceLockedError } = library;
const Redlock = library.default ?? library.Redlock;
const { version } = JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url)));
const [ACQUIRE, USING] = ["acquire(resources, duration, settings)", "using(resources, duration, settings, routine)"];
const WAIT = ["none", "time", "forever"];

// The library extends the grant until the promise of the routine is fulfilled. It does so 500 ms before it expires, by
// default, and accepts no duration that is not 100 ms longer.
function used(redlock, lock, ttl, waits, lost) {
  const settings = { ...waits, automaticExtensionThreshold: Math.floor(Math.min(500, ttl / 2, ttl - 100)) };
  return new Promise((resolve, reject) => {
    const whole = redlock.using([lock.resource], ttl, settings, (signal) => new Promise((end) => {
      signal.addEventListener("abort", () => lock.held?.signal === signal && lost(lock));
      resolve({ signal, isHeld: () => !signal.aborted, release: () => (end(), whole) });
    }));
    whole.catch(reject);
  });
}

serveGrants({
  hello: { name: process.argv[2] ?? "node-redlock 5", version, source: `${process.argv[2] ?? "node-redlock"}, src/index.ts` },
  hello2: {
    watchdog_divisor: 1,
    forms: [
      { form: ACQUIRE, wait: WAIT, ...OFFER },
      { form: USING, wait: WAIT, ...OFFER, lease: ["renewed"], operations: ["status"] },
    ],
  },
  hello3: { loss_notice: "renewal" }, // the signal of `using` aborts
  redlockFor: (links, form, waits, lock) =>
    (lock.redlock ??= counting(new Redlock(links), "error", (error) => !(error instanceof ResourceLockedError))),
  forms: {
    [ACQUIRE]: async (redlock, { resource }, ttl, waits) => {
      const grant = await redlock.acquire([resource], ttl, waits);
      return { grant, release: () => grant.release() };
    },
    [USING]: used,
  },
});
