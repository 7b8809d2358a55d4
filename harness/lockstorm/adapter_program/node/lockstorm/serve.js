// serve(): a lock library behind the protocol of docs/adapters.md, from a few functions. For Node 18 and later. Lines for
// several threads of the protocol are answered as promises settle; each thread makes one call after the other.
"use strict";
const { createInterface } = require("node:readline");

const WAITS = ["none", "time", "forever"];
const NEWEST = 3; // version of the protocol
const FUNCTIONS = ["make", "acquire", "release", "renew", "is_held", "token", "lost", "forget"];
// Keys of hello in version 1, and those that only version 3 has. All others came with version 2.
const FIRST = ["name", "version", "source", "service", "lease", "token", "reentrant", "fair", "renews", "semaphore", "tcp",
  "waits", "nodes", "topology", "lease_unit_ms"];
const THIRD = ["cancels", "over", "loss_notice", "holds_two", "silence_ms", "settings"];

function words(error) {
  if (!(error instanceof Error)) return `Error: ${error?.message ?? error}`;
  return `${error.name === "Error" ? error.constructor.name : error.name}: ${error.message}`;
}

const write = (line) => process.stdout.write(JSON.stringify(line) + "\n");

function urlOf(node, service) {
  if (node.unix) return `unix://${node.unix}`;
  const place = `${node.host}:${node.port}`;
  const urls = { redis: `redis://${place}`, etcd: `http://${place}`, postgres: `postgresql://lockstorm@${place}/postgres` };
  return urls[service] ?? place;
}

// `refused` has classes of errors, and functions that say of an error whether it is a refusal.
function isRefusal(error, refused) {
  const isClass = (each) => each === Error || each.prototype instanceof Error;
  return [refused].flat().some((each) => (isClass(each) ? error instanceof each : each(error)));
}

// What the program answers to hello, by version. A function that takes `signal` can be cancelled by it.
function hellos({ functions, waits_for, ...keys }) {
  const has = (name) => name in functions;
  const cancels = ["release", "renew"].filter((name) => has(name) && functions[name].length > 2);
  const cancel = functions.acquire.length > 2;
  const first = { name: "my lock", lease: true }, second = {}, third = {};
  if (cancel || cancels.length) Object.assign(third, { cancels, over: [...(cancel ? ["acquire"] : []), ...cancels] });
  if (has("lost")) third.loss_notice = "lease";
  for (const [key, value] of Object.entries(keys))
    (FIRST.includes(key) ? first : THIRD.includes(key) ? third : second)[key] = value;
  first.operations = ["renew", "is_held"].filter(has);
  first.token = has("token");
  const kind = first.renews ? "renewed" : first.lease ? "given" : "endless";
  const one = { ...first, protocol: 1 };
  const two = {
    ...first, protocol: 2, owner: "object", threads: 8, cancel, of_object: ["lease_ms"],
    forms: [{ form: "acquire", wait: waits_for, lease: [kind] }], operations: [...first.operations, ...(has("token") ? ["token"] : [])],
    ...second,
  };
  return { 1: one, 2: two, 3: { ...two, ...third, protocol: 3 } };
}

class ServedLibrary {
  constructor(functions, service) {
    Object.assign(this, { functions, service, holds: new Map() }); // by number: lock objects and what they were granted
  }

  open(question) {
    this.opened = question;
    this.urls = question.nodes.map((node) => urlOf(node, this.service));
  }

  async hold(question) {
    const number = question.lock ?? 1;
    if (!this.holds.has(number)) {
      const { resource = this.opened.resource, lease_ms = this.opened.lease_ms } = question;
      this.holds.set(number, { held: 0, token: {}, lock: (async () => this.functions.make(this.urls, resource, lease_ms))() });
    }
    const hold = this.holds.get(number);
    try {
      await hold.lock;
    } catch (error) {
      this.holds.delete(number); // the next question makes it again
      throw error;
    }
    return hold;
  }

  async acquire(hold, question, signal) {
    const { acquire, token } = this.functions, lock = await hold.lock;
    const granted = await acquire(lock, question.wait_ms ?? Infinity, signal);
    if (granted === undefined || granted === null)
      throw new TypeError(`acquire returned ${granted}: return true when the lock was granted, and false when it was not`);
    if (granted === false) return { outcome: "refused" };
    Object.assign(hold, { granted, held: hold.held + 1 });
    if (token) hold.token = { token: Number(await token(lock, granted)) };
    return hold.token;
  }

  token(hold) {
    return hold.token;
  }

  async release(hold, question, signal) {
    hold.held = Math.max(0, hold.held - 1); // a release says by itself that there was nothing to release
    return this.call("release", hold, signal);
  }

  renew(hold, question, signal) {
    return this.call("renew", hold, signal);
  }

  async is_held(hold, question, signal) {
    return { outcome: (await this.functions.is_held(await hold.lock, hold.granted, signal)) ? "ok" : "refused" };
  }

  async call(name, hold, signal) {
    const done = await this.functions[name](await hold.lock, hold.granted, signal);
    return { outcome: done === false ? "refused" : "ok" };
  }

  async forget() {
    const dropped = [...this.holds.values()];
    this.holds.clear();
    for (const { lock } of dropped) await this.functions.forget?.(await lock);
  }
}

// Answers questions until standard input ends.
class Program {
  constructor(library, hello, refused) {
    Object.assign(this, { library, hellos: hello, refused, protocol: 1 });
    this.calls = new Map(); // under way: what cancels each, by the id of its question
    this.threads = new Map(); // by number: the latest call that each was asked for
  }

  hello({ protocol }) {
    this.protocol = Math.min(protocol, NEWEST);
    return this.hellos[this.protocol];
  }

  open(question) {
    this.library.open(question);
  }

  cancel({ call }) {
    this.calls.get(call)?.abort();
    return this.calls.has(call) ? {} : { outcome: "refused", error: "that call is not under way" };
  }

  async forget() {
    if (this.calls.size > 0) return { outcome: "refused", error: "a call is under way" };
    this.threads.clear();
    return this.library.forget();
  }

  // The library may tell that what this acquire was granted is lost.
  async listen(question) {
    const hold = this.library.holds.get(question.lock ?? 1), { lost } = this.library.functions;
    if (lost && hold?.held === 1) await lost(await hold.lock, () => this.lost(hold, question));
  }

  lost(hold, question) {
    const { thread, lock, resource } = question;
    if (this.protocol < 3 || hold.held === 0 || this.library.holds.get(lock ?? 1) !== hold) return;
    hold.held = 0; // one notice a hold
    write({ notice: "lost", thread, lock, resource });
  }

  async answer(question, signal) {
    try {
      const hold = await this.library.hold(question);
      return await this.library[question.op](hold, question, signal);
    } catch (error) {
      if (signal.aborted && (error === signal.reason || error?.name === "AbortError")) // a release may have reached the server
        return { outcome: question.op === "acquire" ? "refused" : "unknown", cancelled: true, error: words(error) };
      return { outcome: isRefusal(error, this.refused) ? "refused" : "unknown", error: words(error) };
    }
  }

  // Begins when the thread's call before it has ended.
  begin(question) {
    const { id, thread = 1 } = question, call = new AbortController();
    this.calls.set(id, call);
    if (question.over) call.abort();
    const before = this.threads.get(thread) ?? Promise.resolve();
    this.threads.set(thread, before.then(async () => {
      const answer = await this.answer(question, call.signal);
      this.calls.delete(id);
      write({ id, outcome: "ok", ...answer });
      if (question.op === "acquire" && !answer.outcome) await this.listen(question);
    }));
  }

  async line(text) {
    const question = JSON.parse(text), { id, op } = question;
    if (!["hello", "open", "cancel", "forget"].includes(op)) return this.begin(question);
    try {
      write({ id, outcome: "ok", ...(await this[op](question)) });
    } catch (error) {
      write({ id, outcome: "unknown", error: words(error) });
    }
  }
}

/**
 * Answers lockstorm's questions until standard input ends. Every function may be async.
 *
 * make(urls, resource, lease): the lock object. `urls` of the servers to connect to; `lease` in ms, null: endless.
 * acquire(lock, wait, signal): true or what was granted; false: refused. `wait` in ms; 0: one try, Infinity: without a limit.
 * release(lock, granted, signal), renew(...), is_held(...): false if it is not ours. `granted` is what acquire returned.
 * token(lock, granted): the fencing token of the hold; asked once after each grant.
 * lost(lock, tell): called after a grant, unless it is nested in another one; call `tell()` when the library says by itself
 *   that the hold is lost.
 * forget(lock): lockstorm drops the lock object, and the program lives on: end what it has started, as a renewal.
 * refused: classes of errors that say that another client holds the lock. After all others the outcome is unknown.
 * waits_for: the waits that acquire supports, of none, time and forever.
 *
 * A function with the parameter `signal` can be cancelled by it. All other keys are keys of hello (docs/adapters.md).
 */
function serve({ refused = [], waits_for = WAITS, ...more }) {
  const functions = { release: (lock) => lock.release() };
  for (const [key, value] of Object.entries(more)) {
    if (typeof value !== "function") continue;
    if (!FUNCTIONS.includes(key)) throw new TypeError(`serve() knows no function ${key}: there are ${FUNCTIONS.join(", ")}`);
    functions[key] = value;
    delete more[key];
  }
  for (const key of ["make", "acquire"]) if (!functions[key]) throw new TypeError(`serve() needs the function ${key}`);
  for (const key of FUNCTIONS) delete more[key]; // what a lock lacks: renew: undefined
  console.log = console.info = console.error; // standard output is for answers
  const program = new Program(new ServedLibrary(functions, more.service ?? "redis"), hellos({ functions, waits_for, ...more }), refused);
  createInterface({ input: process.stdin }).on("line", (line) => program.line(line)).on("close", () => process.exit(0));
}

module.exports = { serve };
