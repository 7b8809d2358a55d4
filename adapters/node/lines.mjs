// Shared by the adapters of Node's libraries: the protocol (a line for each request and answer), connections, clock.
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

// `answers` has a function for each operation. An exception means an unknown outcome.
export function serve(answers) {
  let before = Promise.resolve();
  readline.createInterface({ input: process.stdin }).on("line", (line) => {
    const request = JSON.parse(line);
    before = before.then(async () => {
      let answer;
      try {
        answer = await answers[request.op](request);
      } catch (error) {
        answer = { outcome: "unknown", error: String(error.message) };
      }
      process.stdout.write(JSON.stringify({ id: request.id, ...answer }) + "\n");
    });
  }).on("close", () => process.exit(0));
}

export const outcome = (granted) => ({ outcome: granted ? "ok" : "refused" });
