// What the adapters of Node's libraries share: questions and answers line by line, connections, the machine's clock.
import Redis from "ioredis";
import readline from "node:readline";

// No second try by the connection itself: what an answer that is lost means is the question here.
const PATIENCE = { commandTimeout: 1000, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false };

export function connect(nodes) {
  return nodes.map((node) => {
    const link = new Redis({ ...(node.unix ? { path: node.unix } : node), ...PATIENCE, retryStrategy: () => 50 });
    link.on("error", () => {}); // who asks is told; nobody else has to be
    return link;
  });
}

// An expiration by Date.now() as a stamp of the monotonic clock.
export function validUntil(expiration) {
  return Number(process.hrtime.bigint()) / 1e6 + (expiration - Date.now());
}

// `answers` has a function for each question; what it throws is an outcome that nobody knows.
export function serve(answers) {
  let before = Promise.resolve();
  readline.createInterface({ input: process.stdin }).on("line", (line) => {
    const asked = JSON.parse(line);
    before = before.then(async () => {
      let answer;
      try {
        answer = await answers[asked.op](asked);
      } catch (error) {
        answer = { outcome: "unknown", error: String(error.message) };
      }
      process.stdout.write(JSON.stringify({ id: asked.id, ...answer }) + "\n");
    });
  }).on("close", () => process.exit(0));
}

export const outcome = (granted) => ({ outcome: granted ? "ok" : "refused" });
