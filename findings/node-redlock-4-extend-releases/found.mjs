// node-redlock 4 4.2.0, on a redis-server: an extend() whose answer is late by more than the client's patience releases
// the lock, and another client is granted it while the first one's `expiration` lies ahead.
//
// CLIENT PAUSE holds up what writes for 1,300 ms; the client waits for an answer for 1,000 ms. With the argument
// `control`: the same without the pause. Exit status: 1 if the lock is granted to both, otherwise 0.
//
// install: npm install redlock@4.2.0 ioredis bluebird
// run:     node found.mjs [PORT [control]]    (of a redis-server here; 6379)
import Redis from "ioredis";
import Redlock from "redlock";

const [port = "6379", control] = process.argv.slice(2);
const patience = { commandTimeout: 1000, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false };
const [one, other] = [new Redis(port, patience), new Redis(port)];
const settings = { retryCount: 5, retryDelay: 200, retryJitter: 0 };
const first = new Redlock([one], settings), second = new Redlock([other], { ...settings, retryCount: 20 });
first.on("clientError", (error) => console.log("first:", error.message));
const begin = Date.now();
const tell = (words) => console.log(`${String(Date.now() - begin).padStart(6)} ms  ${words}`);

const lock = await first.lock("resource-1", 6000);
tell(`first: granted until ${lock.expiration - begin} ms`);
if (!control) await other.call("CLIENT", "PAUSE", "1300", "WRITE");
const extended = lock.extend(6000).then(() => "ok", String);
extended.then((outcome) => tell(`first: extend: ${outcome}`));
const waiting = second.lock("resource-1", 2000).then(() => "granted", String);
const outcome = await waiting;
tell(`second: ${outcome}; first may believe until ${lock.expiration - begin} ms`);
const isBroken = outcome === "granted" && Date.now() < lock.expiration;
console.log(isBroken ? "BROKEN" : "kept");
process.exit(isBroken ? 1 : 0);
