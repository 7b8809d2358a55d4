// The ways of Node to wait and to tell the time; prints when each ended. Runs under the supervisor.
'use strict';
const { execFile, spawnSync } = require('child_process');
const net = require('net');
const { promisify } = require('util');
const { Worker, isMainThread, parentPort } = require('worker_threads');

const began = process.hrtime.bigint();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function show(step, result = '') {
  const now = process.hrtime.bigint() - began;
  console.log(`${now / 1000000000n}.${String(now % 1000000000n).padStart(9, '0')} ${step} ${result}`.trimEnd());
}

function clocks() {
  console.log(new Date().toISOString(), String(process.hrtime.bigint() / 1000000n), performance.timeOrigin % 1 === 0);
}

async function timers() {
  await sleep(30000);
  show('setTimeout');
  let ticks = 0;
  await new Promise((resolve) => {
    const interval = setInterval(() => {
      if (++ticks === 5) resolve(clearInterval(interval));
    }, 1000);
  });
  show('setInterval', ticks);
  setTimeout(() => show('later'), 100);
  setTimeout(() => show('sooner'), 50);
  setImmediate(() => show('setImmediate'));
  process.nextTick(() => show('nextTick'));
  await sleep(200);
  const before = performance.now();
  await require('timers/promises').setTimeout(1500);
  show('performance.now', Math.round(performance.now() - before));
  const kept = setTimeout(() => {}, 60000);
  const signal = AbortSignal.timeout(2000);
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
  clearTimeout(kept);
  show('AbortSignal.timeout');
}

async function sockets() {
  const server = net.createServer((socket) => setTimeout(() => socket.write('x'), 2500));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = net.connect(server.address().port, '127.0.0.1');
  await new Promise((resolve) => socket.on('data', resolve));
  show('data');
  socket.setTimeout(4000);
  await new Promise((resolve) => socket.on('timeout', resolve));
  show('socket timeout');
  socket.destroy();
  server.close();
}

async function others() {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  show('Atomics.wait', Atomics.wait(cell, 0, 0, 3000));
  const worker = new Worker(__filename);
  const seen = await new Promise((resolve) => worker.on('message', resolve));
  show('Worker', seen);
  await promisify(execFile)('sleep', ['5']);
  show('execFile');
  show('spawnSync', spawnSync('sleep', ['60'], { timeout: 2000 }).signal);
  await require('fs').promises.readFile(__filename);
  show('readFile');
}

async function main() {
  clocks();
  show('start');
  await timers();
  await sockets();
  await others();
  clocks();
}

if (isMainThread) main();
else setTimeout(() => parentPort.postMessage('after 7 s'), 7000);
