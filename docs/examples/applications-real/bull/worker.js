// One process of a service that sends mails with Bull: POST /mails?id=N adds a job and answers when a mail was sent.
// The worker's processor is what Bull's README shows. Each mail is a row, so PostgreSQL says how often it was sent.
'use strict'
const http = require('http')
const Queue = require('bull')
const { Pool } = require('pg')

const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 2, idleTimeoutMillis: 0 })
pool.on('connect', (db) => db.on('error', () => {}))
pool.on('error', () => {})

const queue = new Queue('mails', { redis: { port: 6379, host: '127.0.0.1' } })
queue.on('error', () => {}) // it connects again
queue.on('completed', (job) => job.remove().catch(() => {})) // as issue 354 recommends

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

queue.process(async (job) => {
  await sleep(1000) // the mail server takes its time
  await pool.query('INSERT INTO sent (mail) VALUES ($1)', [job.data.mail])
})

async function wasSent(mail) {
  for (let tries = 0; tries < 200; tries++) {
    await sleep(500)
    const { rows } = await pool.query('SELECT count(*) AS times FROM sent WHERE mail = $1', [mail])
    if (Number(rows[0].times) > 0) return
  }
  throw new Error('it was never sent')
}

http
  .createServer(async (request, response) => {
    const url = new URL(request.url, 'http://localhost')
    try {
      if (url.pathname === '/mails') {
        const mail = Number(url.searchParams.get('id'))
        await queue.add({ mail })
        await wasSent(mail)
      }
      response.end('done\n')
    } catch (error) {
      response.statusCode = 500
      response.end(`${error}\n`)
    }
  })
  .listen(process.argv[2], '127.0.0.1')
