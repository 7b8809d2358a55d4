// Shared by the adapters of Node's libraries: the protocol (docs/adapters.md), connections, clock.
import Redis from "ioredis";
import readline from "node:readline";

// No retry by the connection: the trial tests what the lock does about a lost answer.
const PATIENCE = { commandTimeout: 1000, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false };

export function connect(nodes) {
  return nodes.map((node) => {
    const link = new Redis({ ...(node.unix ? { path: node.unix } : node), ...PATIENCE, retryStrategy: () => 50 });
    link.on("error", () => {}); // each command reports its own error
    return link;
  });
}

// Converts an expiration by Date.now() to the monotonic clock, in ms.
export function validUntil(expiration) {
  return Number(process.hrtime.bigint()) / 1e6 + (expiration - Date.now());
}

export const outcome = (granted) => ({ outcome: granted ? "ok" : "refused" });

// `library` has `hello`, `hello2` and perhaps `hello3` (what these versions add), `open` and a function for each operation: it is given a lock
// object { resource }, to which it adds what it likes, the question, and a signal that aborts when the call is
// cancelled. An exception means an unknown outcome. `forget`, if there is one, ends what a lock object has started.
// Returns what the library tells: that the hold of a lock object is lost.
export function serve(library) {
  const calls = new Map(); // calls under way: the controller of each one's signal, by the id of its question
  let threads = new Map(); // by number: what a thread was asked last; it executes its calls one after the other
  let locks = new Map();
  let opened, tells; // tells: version 3 has notices

  const ofProgram = {
    hello: ({ protocol }) => {
      tells = protocol > 2 && library.hello3 !== undefined;
      if (tells) return { protocol: 3, ...library.hello, ...library.hello2, ...library.hello3 };
      return protocol > 1 ? { protocol: 2, ...library.hello, ...library.hello2 } : { protocol: 1, ...library.hello };
    },
    open: (question) => {
      opened = question;
      library.open(question);
    },
    cancel: ({ call }) => {
      calls.get(call)?.abort();
      return outcome(library.hello2.cancel && calls.has(call));
    },
    forget: async () => {
      if (calls.size > 0) return { outcome: "refused", error: "a call is under way" };
      const dropped = [...locks.values()];
      [threads, locks] = [new Map(), new Map()];
      await Promise.all(dropped.map((lock) => library.forget?.(lock)));
    },
  };

  async function called(question, signal) {
    try {
      const { lock = 1, resource = opened.resource } = question;
      if (!locks.has(lock)) locks.set(lock, { resource });
      return await library[question.op](locks.get(lock), question, signal);
    } catch (error) {
      const cancelled = signal.aborted && error === signal.reason;
      const how = cancelled ? { outcome: "refused", cancelled } : { outcome: "unknown" };
      return { ...how, error: String(error.message) };
    }
  }

  readline.createInterface({ input: process.stdin }).on("line", (line) => {
    const question = JSON.parse(line);
    const { id, op, thread = 1 } = question;
    const answer = (given) => process.stdout.write(JSON.stringify({ id, outcome: "ok", ...given }) + "\n");
    if (op in ofProgram) return Promise.resolve(ofProgram[op](question)).then(answer);
    calls.set(id, new AbortController());
    const call = (threads.get(thread) ?? Promise.resolve()).then(async () => {
      const given = await called(question, calls.get(id).signal);
      calls.delete(id);
      answer(given);
    });
    threads.set(thread, call);
  }).on("close", () => process.exit(0));
  return (held) => {
    for (const [lock, { resource }] of locks)
      if (tells && locks.get(lock) === held) process.stdout.write(JSON.stringify({ notice: "lost", lock, resource }) + "\n");
  };
}
