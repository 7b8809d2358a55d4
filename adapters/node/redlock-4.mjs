// node-redlock 4: a majority of nodes, validity by Date.now().
import { createRequire } from "node:module";
import { counting, OFFER, serveGrants } from "./grants.mjs";

const require = createRequire(import.meta.url);
const { using } = require("bluebird");
const Redlock = require("redlock-4");
const [LOCK, WITH_OPTIONS, DISPOSER] = ["lock(resource, ttl)", "lockWithOptions(resource, ttl, options)", "disposer"];

async function granted(promise) {
  const grant = await promise;
  return { grant, release: () => grant.unlock() };
}

// Within `using` a grant is released when the promise of the function that it was given to is fulfilled.
function disposed(disposer) {
  let failure;
  return new Promise((resolve, reject) => {
    const used = using(disposer((error) => (failure = error)), (grant) => new Promise((end) => {
      const release = () => (end(), used.then(() => failure && Promise.reject(failure)));
      resolve({ grant, release });
    }));
    used.catch(reject);
  });
}

serveGrants({
  hello: {
    name: "node-redlock 4", version: require("redlock-4/package.json").version, source: "node-redlock, redlock.js",
  },
  hello2: {
    validity: true,
    forms: [
      { form: LOCK, wait: ["none", "time"], ...OFFER },
      { form: WITH_OPTIONS, wait: ["none", "time", "forever"], ...OFFER },
      { form: DISPOSER, wait: ["none", "time"], ...OFFER },
    ],
  },
  // The settings of an object are those of the extensions of its grants, too.
  redlockFor: (links, form, waits) =>
    counting(new Redlock(links, form === WITH_OPTIONS ? { retryJitter: 0 } : waits), "clientError"),
  forms: {
    [LOCK]: (redlock, { resource }, ttl) => granted(redlock.lock(resource, ttl)),
    [WITH_OPTIONS]: (redlock, { resource }, ttl, waits) => granted(redlock.lockWithOptions(resource, ttl, waits)),
    [DISPOSER]: (redlock, { resource }, ttl) => disposed((onFailure) => redlock.disposer(resource, ttl, onFailure)),
  },
});
