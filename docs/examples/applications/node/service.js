// A small service in Express, with ioredis and pg. Each /wrong route has a mistake with locks; its /right twin follows.
// A holder may be paused for longer than its lease, so a lease alone protects no data: each twin also has a guard in
// the database. ../README.md explains the mistakes.
'use strict'
const { randomUUID } = require('crypto')
const { setTimeout: sleep } = require('timers/promises')
const express = require('express')
const Redis = require('ioredis')
const { Pool } = require('pg')

const redis = new Redis(process.env.REDIS_URL)
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 4, idleTimeoutMillis: 0 })
redis.on('error', () => {}) // it connects again
pool.on('connect', (db) => db.on('error', () => {})) // the query fails, and the pool drops the connection
pool.on('error', () => {})

class Refused extends Error {}

// --- what the routes share ---

const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`
const RENEW = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`

/** Works under the lock, which it holds for at most two seconds. */
async function locked(name, work) {
  const mine = randomUUID()
  for (let tries = 0; !(await redis.set(name, mine, 'PX', 2000, 'NX')); tries++) {
    if (tries === 50) throw new Refused('busy')
    await sleep(100)
  }
  try {
    return await work()
  } finally {
    await redis.eval(RELEASE, 1, name, mine)
  }
}

/** Commits what the work has done, or rolls it back if that throws. */
async function transaction(work) {
  const db = await pool.connect()
  try {
    await db.query('BEGIN')
    const result = await work(db)
    await db.query('COMMIT')
    return result
  } catch (error) {
    await db.query('ROLLBACK')
    throw error
  } finally {
    db.release()
  }
}

/** The first value of the first row; undefined: there is no row. */
async function value(db, statement, values) {
  const { rows } = await db.query({ text: statement, values, rowMode: 'array' })
  return rows[0]?.[0]
}

/** Needs a lock: two at once read the same number. */
async function spend(db) {
  const credits = await value(db, 'SELECT credits FROM users WHERE id = 1')
  if (credits < 1) throw new Refused('none is left')
  await db.query('UPDATE users SET credits = $1 WHERE id = 1', [credits - 1])
}

/** Needs no lock: the second one finds another number than it has read, and changes nothing. */
async function spendIfUnchanged(db) {
  const credits = await value(db, 'SELECT credits FROM users WHERE id = 1')
  if (credits < 1) throw new Refused('none is left')
  await writeIfUnchanged(db, credits)
}

async function writeIfUnchanged(db, credits) {
  const done = await db.query('UPDATE users SET credits = $1 WHERE id = 1 AND credits = $2', [credits - 1, credits])
  if (done.rowCount === 0) throw new Refused('somebody else has changed it')
}

const app = express()

function route(path, work) {
  app.post(path, async (request, response) => {
    await work(request.params)
    response.json('done')
  })
}

// --- unlock-before-commit: the lock is inside of the transaction ---

route('/unlock-before-commit/wrong', () => transaction((db) => locked('user:1', () => spend(db))))

route('/unlock-before-commit/right', () => locked('user:1', () => transaction((db) => spendIfUnchanged(db))))

// --- snapshot-before-lock: what is read under the lock is as old as the transaction's first statement ---

route('/snapshot-before-lock/wrong', () =>
  transaction(async (db) => {
    await db.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
    const seats = await value(db, 'SELECT seats FROM events WHERE id = 1')
    await locked('event:1', async () => {
      if ((await value(db, 'SELECT count(*) FROM bookings')) >= seats) throw new Refused('none is left')
      await db.query('INSERT INTO bookings DEFAULT VALUES')
      await db.query('COMMIT') // before the lock is released
    })
  })
)

route('/snapshot-before-lock/right', () =>
  locked('event:1', () =>
    // READ COMMITTED: each statement reads anew
    transaction(async (db) => {
      const seats = await value(db, 'SELECT seats FROM events WHERE id = 1 FOR UPDATE')
      if ((await value(db, 'SELECT count(*) FROM bookings')) >= seats) throw new Refused('none is left')
      await db.query('INSERT INTO bookings DEFAULT VALUES')
    })
  )
)

// --- read-before-lock: the lock is taken after the decision ---

route('/read-before-lock/wrong', async () => {
  const stock = await value(pool, 'SELECT stock FROM articles WHERE id = 1')
  if (stock < 1) throw new Refused('none is left')
  await locked('article:1', () => pool.query('UPDATE articles SET stock = stock - 1 WHERE id = 1'))
})

route('/read-before-lock/right', () =>
  locked('article:1', async () => {
    const done = await pool.query('UPDATE articles SET stock = stock - 1 WHERE id = 1 AND stock > 0')
    if (done.rowCount === 0) throw new Refused('none is left')
  })
)

// --- other-key: not everybody who writes the row takes the same lock ---

route('/other-key/wrong/consume', () => locked('user:1', () => transaction(spend)))

route('/other-key/wrong/refund', () =>
  locked('users:1', () =>
    transaction(async (db) => {
      const credits = await value(db, 'SELECT credits FROM users WHERE id = 1')
      await db.query('UPDATE users SET credits = $1 WHERE id = 1', [credits + 5])
    })
  )
)

route('/other-key/right/consume', () => locked('user:1', () => transaction(spendIfUnchanged)))

route('/other-key/right/refund', () =>
  locked('user:1', () => pool.query('UPDATE users SET credits = credits + 5 WHERE id = 1'))
)

// --- row-lock-outside-transaction: FOR UPDATE ends with its statement ---

route('/row-lock-outside-transaction/wrong', async () => {
  const credits = await value(pool, 'SELECT credits FROM users WHERE id = 1 FOR UPDATE')
  if (credits < 1) throw new Refused('none is left')
  await pool.query('UPDATE users SET credits = $1 WHERE id = 1', [credits - 1])
})

route('/row-lock-outside-transaction/right', () =>
  transaction(async (db) => {
    const credits = await value(db, 'SELECT credits FROM users WHERE id = 1 FOR UPDATE')
    if (credits < 1) throw new Refused('none is left')
    await db.query('UPDATE users SET credits = $1 WHERE id = 1', [credits - 1])
  })
)

// --- beyond-the-lease: the work takes three seconds, the lease two ---

const askTheBank = (seconds) => sleep(1000 * seconds)

route('/beyond-the-lease/wrong', () =>
  locked('user:1', async () => {
    const credits = await value(pool, 'SELECT credits FROM users WHERE id = 1')
    await askTheBank(3)
    await pool.query('UPDATE users SET credits = $1 WHERE id = 1', [credits - 1])
  })
)

route('/beyond-the-lease/right', () =>
  locked('user:1', async () => {
    const credits = await value(pool, 'SELECT credits FROM users WHERE id = 1')
    await askTheBank(3)
    await writeIfUnchanged(pool, credits)
  })
)

// --- released-by-a-stranger: a refused request deletes the lock of another one ---

route('/released-by-a-stranger/wrong', async () => {
  try {
    if (!(await redis.set('user:1', 'locked', 'PX', 2000, 'NX'))) throw new Refused('busy')
    await transaction(spend)
  } finally {
    await redis.del('user:1')
  }
})

route('/released-by-a-stranger/right', async () => {
  const mine = randomUUID()
  if (!(await redis.set('user:1', mine, 'PX', 2000, 'NX'))) throw new Refused('busy')
  try {
    await transaction(spendIfUnchanged)
  } finally {
    await redis.eval(RELEASE, 1, 'user:1', mine)
  }
})

// --- refused-and-goes-on: nobody looks whether the lock was granted ---

route('/refused-and-goes-on/wrong', async () => {
  const mine = randomUUID()
  await redis.set('user:1', mine, 'PX', 2000, 'NX')
  await transaction(spend)
  await redis.eval(RELEASE, 1, 'user:1', mine)
})

route('/refused-and-goes-on/right', async () => {
  const mine = randomUUID()
  const granted = await redis.set('user:1', mine, 'PX', 2000, 'NX')
  if (!granted) throw new Refused('busy')
  await transaction(spendIfUnchanged)
  await redis.eval(RELEASE, 1, 'user:1', mine)
})

// --- done-twice: the lock protects the choice of a job, but the job stays there until it is done ---

async function sendMail(db, job) {
  await db.query('INSERT INTO mails VALUES ($1)', [job])
  await db.query('UPDATE jobs SET done = true WHERE id = $1', [job])
}

route('/done-twice/wrong', async () => {
  const job = await locked('jobs', () => value(pool, 'SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1'))
  if (!job) throw new Refused('none is left')
  await transaction((db) => sendMail(db, job))
})

route('/done-twice/right', () =>
  transaction(async (db) => {
    const job = await value(db, 'SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED')
    if (!job) throw new Refused('none is left')
    await sendMail(db, job)
  })
)

// --- lock-of-one-process: the other instance has a lock of its own ---

let last = Promise.resolve()

function mutex(work) {
  const result = last.then(work)
  last = result.catch(() => {})
  return result
}

route('/lock-of-one-process/wrong', () => mutex(() => transaction(spend)))

route('/lock-of-one-process/right', () => locked('user:1', () => transaction(spendIfUnchanged)))

// --- two-orders: each has what the other one waits for ---

/** Waits for the lock as long as it takes, and renews it as long as it is needed. */
async function lockedAndRenewed(name, work) {
  const mine = randomUUID()
  while (!(await redis.set(name, mine, 'PX', 1000, 'NX'))) await sleep(500)
  const renewal = setInterval(() => redis.eval(RENEW, 1, name, mine, 1000).catch(() => {}), 400)
  try {
    return await work()
  } finally {
    clearInterval(renewal)
    await redis.eval(RELEASE, 1, name, mine)
  }
}

const moveCredit = (giver, taker) =>
  transaction(async (db) => {
    await db.query('SELECT FROM users WHERE id IN ($1, $2) ORDER BY id FOR UPDATE', [giver, taker])
    await db.query('UPDATE users SET credits = credits - 1 WHERE id = $1', [giver])
    await db.query('UPDATE users SET credits = credits + 1 WHERE id = $1', [taker])
  })

route('/two-orders/wrong/:giver/:taker', ({ giver, taker }) =>
  lockedAndRenewed(`user:${giver}`, () => lockedAndRenewed(`user:${taker}`, () => moveCredit(giver, taker)))
)

route('/two-orders/right/:giver/:taker', ({ giver, taker }) => {
  const [first, second] = [giver, taker].sort()
  return lockedAndRenewed(`user:${first}`, () => lockedAndRenewed(`user:${second}`, () => moveCredit(giver, taker)))
})

// --- lock-lost-by-failover: the server of the locks forgets them, the database does not ---

route('/lock-lost-by-failover/wrong', () =>
  locked('user:1', async () => {
    const credits = await value(pool, 'SELECT credits FROM users WHERE id = 1')
    await askTheBank(1)
    await pool.query('UPDATE users SET credits = $1 WHERE id = 1', [credits - 1])
  })
)

route('/lock-lost-by-failover/right', () =>
  locked('user:1', async () => {
    const credits = await value(pool, 'SELECT credits FROM users WHERE id = 1')
    await askTheBank(1)
    await writeIfUnchanged(pool, credits)
  })
)

// --- the service ---

app.get('/health', (_, response) => response.json('ready'))

app.use((error, request, response, next) => {
  response.status(error instanceof Refused ? 409 : 500).json(error.message)
})

async function main() {
  await Promise.all([1, 2, 3, 4].map(() => pool.query('SELECT 1'))) // opens the connections
  app.listen(Number(process.argv[2]), '127.0.0.1')
}

main()
