// All that Node programs take for chance: random numbers, the order in which workers and callbacks run. An argument: how
// often each worker fills and frees memory, so that the collector runs.
'use strict';
const crypto = require('crypto');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function worker() {
  for (let round = 0; round < workerData.rounds; round++) {
    const kept = [];
    for (let each = 0; each < 500; each++) kept.push(new Array(100).fill({ round, each }));
    await sleep(Math.random() * 20);
    if (round % 5 === 0) parentPort.postMessage(workerData.number);
  }
}

async function main() {
  console.log('random', Math.random(), crypto.randomUUID(), crypto.randomBytes(8).toString('hex'));
  const order = [];
  const workers = [0, 1, 2].map((number) => {
    const started = new Worker(__filename, { workerData: { number, rounds: Number(process.argv[2] ?? 10) } });
    started.on('message', (message) => order.push(message));
    return new Promise((resolve) => started.on('exit', resolve));
  });
  await Promise.all(workers);
  console.log('workers', order.join(''), String(process.hrtime.bigint()));
}

if (isMainThread) main();
else worker();
