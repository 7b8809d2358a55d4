// A small service with net/http, go-redis and pgx. Each /wrong route has a mistake with locks; its /right twin follows.
// A holder may be paused for longer than its lease, so a lease alone protects no data: each twin also has a guard in
// the database. ../README.md explains the mistakes.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

var (
	locks *redis.Client
	pool  *pgxpool.Pool
)

// Answered with 409: nothing was done.
var (
	errBusy     = errors.New("busy")
	errChanged  = errors.New("somebody else has changed it")
	errNoneLeft = errors.New("none is left")
)

// --- what the routes share ---

const (
	release = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`
	renew   = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`
)

// database is a transaction, or the pool: then each statement is a transaction of its own.
type database interface {
	Exec(ctx context.Context, statement string, values ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, statement string, values ...any) pgx.Row
}

func token() string {
	bytes := make([]byte, 16)
	rand.Read(bytes)
	return hex.EncodeToString(bytes)
}

// locked works under the lock, which it holds for at most two seconds.
func locked(ctx context.Context, name string, work func() error) error {
	mine := token()
	for tries := 0; ; tries++ {
		granted, err := locks.SetNX(ctx, name, mine, 2*time.Second).Result()
		if err != nil {
			return err
		}
		if granted {
			break
		}
		if tries == 50 {
			return errBusy
		}
		time.Sleep(100 * time.Millisecond)
	}
	defer locks.Eval(ctx, release, []string{name}, mine)
	return work()
}

// transaction commits what the work has done, or rolls it back if that has failed.
func transaction(ctx context.Context, work func(db pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, pool, work)
}

func number(ctx context.Context, db database, statement string, values ...any) (found int, err error) {
	err = db.QueryRow(ctx, statement, values...).Scan(&found)
	return found, err
}

func readCredits(ctx context.Context, db database) (int, error) {
	credits, err := number(ctx, db, "SELECT credits FROM users WHERE id = 1")
	if err == nil && credits < 1 {
		return 0, errNoneLeft
	}
	return credits, err
}

func writeCredits(ctx context.Context, db database, credits int) error {
	_, err := db.Exec(ctx, "UPDATE users SET credits = $1 WHERE id = 1", credits)
	return err
}

// spend needs a lock: two at once read the same number.
func spend(ctx context.Context, db database) error {
	credits, err := readCredits(ctx, db)
	if err != nil {
		return err
	}
	return writeCredits(ctx, db, credits-1)
}

// spendIfUnchanged needs no lock: the second one finds another number than it has read, and changes nothing.
func spendIfUnchanged(ctx context.Context, db database) error {
	credits, err := readCredits(ctx, db)
	if err != nil {
		return err
	}
	return changeCredits(ctx, db, credits, credits-1)
}

func changeCredits(ctx context.Context, db database, from, to int) error {
	done, err := db.Exec(ctx, "UPDATE users SET credits = $1 WHERE id = 1 AND credits = $2", to, from)
	if err == nil && done.RowsAffected() == 0 {
		return errChanged
	}
	return err
}

func spendInTransaction(ctx context.Context) error {
	return transaction(ctx, func(db pgx.Tx) error { return spend(ctx, db) })
}

func spendIfUnchangedInTransaction(ctx context.Context) error {
	return transaction(ctx, func(db pgx.Tx) error { return spendIfUnchanged(ctx, db) })
}

// --- unlock-before-commit: the lock is inside of the transaction ---

func unlockBeforeCommitWrong(ctx context.Context) error {
	return transaction(ctx, func(db pgx.Tx) error {
		return locked(ctx, "user:1", func() error { return spend(ctx, db) })
	})
}

func unlockBeforeCommitRight(ctx context.Context) error {
	return locked(ctx, "user:1", func() error { return spendIfUnchangedInTransaction(ctx) })
}

// --- snapshot-before-lock: what is read under the lock is as old as the transaction's first statement ---

func book(ctx context.Context, db pgx.Tx, seats int) error {
	taken, err := number(ctx, db, "SELECT count(*) FROM bookings")
	if err == nil && taken >= seats {
		return errNoneLeft
	}
	if err == nil {
		_, err = db.Exec(ctx, "INSERT INTO bookings DEFAULT VALUES")
	}
	return err
}

func snapshotBeforeLockWrong(ctx context.Context) error {
	db, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return err
	}
	defer db.Rollback(ctx) // after a commit it does nothing
	seats, err := number(ctx, db, "SELECT seats FROM events WHERE id = 1")
	if err != nil {
		return err
	}
	return locked(ctx, "event:1", func() error {
		if err := book(ctx, db, seats); err != nil {
			return err
		}
		return db.Commit(ctx)
	})
}

func snapshotBeforeLockRight(ctx context.Context) error {
	return locked(ctx, "event:1", func() error {
		return transaction(ctx, func(db pgx.Tx) error { // READ COMMITTED: each statement reads anew
			seats, err := number(ctx, db, "SELECT seats FROM events WHERE id = 1 FOR UPDATE")
			if err != nil {
				return err
			}
			return book(ctx, db, seats)
		})
	})
}

// --- read-before-lock: the lock is taken after the decision ---

func readBeforeLockWrong(ctx context.Context) error {
	stock, err := number(ctx, pool, "SELECT stock FROM articles WHERE id = 1")
	if err != nil {
		return err
	}
	if stock < 1 {
		return errNoneLeft
	}
	return locked(ctx, "article:1", func() error {
		_, err := pool.Exec(ctx, "UPDATE articles SET stock = stock - 1 WHERE id = 1")
		return err
	})
}

func readBeforeLockRight(ctx context.Context) error {
	return locked(ctx, "article:1", func() error {
		done, err := pool.Exec(ctx, "UPDATE articles SET stock = stock - 1 WHERE id = 1 AND stock > 0")
		if err == nil && done.RowsAffected() == 0 {
			return errNoneLeft
		}
		return err
	})
}

// --- other-key: not everybody who writes the row takes the same lock ---

func otherKeyWrongConsume(ctx context.Context) error {
	return locked(ctx, "user:1", func() error { return spendInTransaction(ctx) })
}

func otherKeyWrongRefund(ctx context.Context) error {
	return locked(ctx, "users:1", func() error {
		credits, err := number(ctx, pool, "SELECT credits FROM users WHERE id = 1")
		if err != nil {
			return err
		}
		return writeCredits(ctx, pool, credits+5)
	})
}

func otherKeyRightConsume(ctx context.Context) error {
	return locked(ctx, "user:1", func() error { return spendIfUnchangedInTransaction(ctx) })
}

func otherKeyRightRefund(ctx context.Context) error {
	return locked(ctx, "user:1", func() error {
		_, err := pool.Exec(ctx, "UPDATE users SET credits = credits + 5 WHERE id = 1")
		return err
	})
}

// --- row-lock-outside-transaction: FOR UPDATE ends with its statement ---

func spendWithRowLock(ctx context.Context, db database) error {
	credits, err := number(ctx, db, "SELECT credits FROM users WHERE id = 1 FOR UPDATE")
	if err != nil {
		return err
	}
	if credits < 1 {
		return errNoneLeft
	}
	return writeCredits(ctx, db, credits-1)
}

func rowLockOutsideTransactionWrong(ctx context.Context) error {
	return spendWithRowLock(ctx, pool)
}

func rowLockOutsideTransactionRight(ctx context.Context) error {
	return transaction(ctx, func(db pgx.Tx) error { return spendWithRowLock(ctx, db) })
}

// --- beyond-the-lease: the work takes three seconds, the lease two ---

func askTheBank(seconds int) { time.Sleep(time.Duration(seconds) * time.Second) }

func payWrong(ctx context.Context, seconds int) error {
	return locked(ctx, "user:1", func() error {
		credits, err := readCredits(ctx, pool)
		if err != nil {
			return err
		}
		askTheBank(seconds)
		return writeCredits(ctx, pool, credits-1)
	})
}

func payRight(ctx context.Context, seconds int) error {
	return locked(ctx, "user:1", func() error {
		credits, err := readCredits(ctx, pool)
		if err != nil {
			return err
		}
		askTheBank(seconds)
		return changeCredits(ctx, pool, credits, credits-1)
	})
}

func beyondTheLeaseWrong(ctx context.Context) error { return payWrong(ctx, 3) }

func beyondTheLeaseRight(ctx context.Context) error { return payRight(ctx, 3) }

// --- released-by-a-stranger: a refused request deletes the lock of another one ---

func releasedByAStrangerWrong(ctx context.Context) error {
	defer locks.Del(ctx, "user:1")
	granted, err := locks.SetNX(ctx, "user:1", "locked", 2*time.Second).Result()
	if err != nil {
		return err
	}
	if !granted {
		return errBusy
	}
	return spendInTransaction(ctx)
}

func releasedByAStrangerRight(ctx context.Context) error {
	mine := token()
	granted, err := locks.SetNX(ctx, "user:1", mine, 2*time.Second).Result()
	if err != nil {
		return err
	}
	if !granted {
		return errBusy
	}
	defer locks.Eval(ctx, release, []string{"user:1"}, mine)
	return spendIfUnchangedInTransaction(ctx)
}

// --- refused-and-goes-on: nobody looks whether the lock was granted ---

func refusedAndGoesOnWrong(ctx context.Context) error {
	mine := token()
	if err := locks.SetNX(ctx, "user:1", mine, 2*time.Second).Err(); err != nil {
		return err
	}
	defer locks.Eval(ctx, release, []string{"user:1"}, mine)
	return spendInTransaction(ctx)
}

func refusedAndGoesOnRight(ctx context.Context) error {
	mine := token()
	granted, err := locks.SetNX(ctx, "user:1", mine, 2*time.Second).Result()
	if err != nil {
		return err
	}
	if !granted {
		return errBusy
	}
	defer locks.Eval(ctx, release, []string{"user:1"}, mine)
	return spendIfUnchangedInTransaction(ctx)
}

// --- done-twice: the lock protects the choice of a job, but the job stays there until it is done ---

func sendMail(ctx context.Context, db pgx.Tx, job int) error {
	_, err := db.Exec(ctx, "INSERT INTO mails VALUES ($1)", job)
	if err == nil {
		_, err = db.Exec(ctx, "UPDATE jobs SET done = true WHERE id = $1", job)
	}
	return err
}

func nextJob(ctx context.Context, db database, how string) (int, error) {
	job, err := number(ctx, db, "SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1"+how)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNoneLeft
	}
	return job, err
}

func doneTwiceWrong(ctx context.Context) error {
	var job int
	err := locked(ctx, "jobs", func() (err error) {
		job, err = nextJob(ctx, pool, "")
		return err
	})
	if err != nil {
		return err
	}
	return transaction(ctx, func(db pgx.Tx) error { return sendMail(ctx, db, job) })
}

func doneTwiceRight(ctx context.Context) error {
	return transaction(ctx, func(db pgx.Tx) error {
		job, err := nextJob(ctx, db, " FOR UPDATE SKIP LOCKED")
		if err != nil {
			return err
		}
		return sendMail(ctx, db, job)
	})
}

// --- lock-of-one-process: the other instance has a lock of its own ---

var mutex sync.Mutex

func lockOfOneProcessWrong(ctx context.Context) error {
	mutex.Lock()
	defer mutex.Unlock()
	return spendInTransaction(ctx)
}

func lockOfOneProcessRight(ctx context.Context) error {
	return locked(ctx, "user:1", func() error { return spendIfUnchangedInTransaction(ctx) })
}

// --- two-orders: each has what the other one waits for ---

// lockedAndRenewed waits for the lock as long as it takes, and renews it as long as it is needed.
func lockedAndRenewed(ctx context.Context, name string, work func() error) error {
	mine := token()
	for granted := false; !granted; {
		var err error
		if granted, err = locks.SetNX(ctx, name, mine, time.Second).Result(); err != nil {
			return err
		}
		if !granted {
			time.Sleep(500 * time.Millisecond)
		}
	}
	done := make(chan struct{})
	go func() {
		for ticker := time.NewTicker(400 * time.Millisecond); ; {
			select {
			case <-ticker.C:
				locks.Eval(ctx, renew, []string{name}, mine, 1000)
			case <-done:
				ticker.Stop()
				return
			}
		}
	}()
	defer locks.Eval(ctx, release, []string{name}, mine)
	defer close(done)
	return work()
}

func moveCredit(ctx context.Context, giver, taker string) error {
	return transaction(ctx, func(db pgx.Tx) error {
		both := "SELECT FROM users WHERE id IN ($1::int, $2::int) ORDER BY id FOR UPDATE"
		if _, err := db.Exec(ctx, both, giver, taker); err != nil {
			return err
		}
		if _, err := db.Exec(ctx, "UPDATE users SET credits = credits - 1 WHERE id = $1::int", giver); err != nil {
			return err
		}
		_, err := db.Exec(ctx, "UPDATE users SET credits = credits + 1 WHERE id = $1::int", taker)
		return err
	})
}

func twoOrdersWrong(ctx context.Context, giver, taker string) error {
	return lockedAndRenewed(ctx, "user:"+giver, func() error {
		return lockedAndRenewed(ctx, "user:"+taker, func() error { return moveCredit(ctx, giver, taker) })
	})
}

func twoOrdersRight(ctx context.Context, giver, taker string) error {
	first, second := giver, taker
	if first > second {
		first, second = second, first
	}
	return lockedAndRenewed(ctx, "user:"+first, func() error {
		return lockedAndRenewed(ctx, "user:"+second, func() error { return moveCredit(ctx, giver, taker) })
	})
}

// --- lock-lost-by-failover: the server of the locks forgets them, the database does not ---

func lockLostByFailoverWrong(ctx context.Context) error { return payWrong(ctx, 1) }

func lockLostByFailoverRight(ctx context.Context) error { return payRight(ctx, 1) }

// --- the service ---

func route(path string, work func(ctx context.Context) error) {
	http.HandleFunc(path, func(response http.ResponseWriter, request *http.Request) {
		answer(response, work(context.Background()))
	})
}

// routeOfTwo passes the last two words of the path on.
func routeOfTwo(path string, work func(ctx context.Context, first, second string) error) {
	http.HandleFunc(path, func(response http.ResponseWriter, request *http.Request) {
		words := strings.Split(strings.TrimPrefix(request.URL.Path, path), "/")
		answer(response, work(context.Background(), words[0], words[len(words)-1]))
	})
}

func answer(response http.ResponseWriter, err error) {
	switch {
	case err == nil:
		response.Write([]byte("done"))
	case errors.Is(err, errBusy), errors.Is(err, errChanged), errors.Is(err, errNoneLeft):
		http.Error(response, err.Error(), http.StatusConflict)
	default:
		http.Error(response, err.Error(), http.StatusInternalServerError)
	}
}

func open(ctx context.Context) error {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	locks = redis.NewClient(options)
	pool, err = pgxpool.New(ctx, os.Getenv("DATABASE_URL")+"?pool_min_conns=4&pool_max_conns=4")
	return err
}

func main() {
	if err := open(context.Background()); err != nil {
		log.Fatal(err)
	}
	route("/health", pool.Ping)
	route("/unlock-before-commit/wrong", unlockBeforeCommitWrong)
	route("/unlock-before-commit/right", unlockBeforeCommitRight)
	route("/snapshot-before-lock/wrong", snapshotBeforeLockWrong)
	route("/snapshot-before-lock/right", snapshotBeforeLockRight)
	route("/read-before-lock/wrong", readBeforeLockWrong)
	route("/read-before-lock/right", readBeforeLockRight)
	route("/other-key/wrong/consume", otherKeyWrongConsume)
	route("/other-key/wrong/refund", otherKeyWrongRefund)
	route("/other-key/right/consume", otherKeyRightConsume)
	route("/other-key/right/refund", otherKeyRightRefund)
	route("/row-lock-outside-transaction/wrong", rowLockOutsideTransactionWrong)
	route("/row-lock-outside-transaction/right", rowLockOutsideTransactionRight)
	route("/beyond-the-lease/wrong", beyondTheLeaseWrong)
	route("/beyond-the-lease/right", beyondTheLeaseRight)
	route("/released-by-a-stranger/wrong", releasedByAStrangerWrong)
	route("/released-by-a-stranger/right", releasedByAStrangerRight)
	route("/refused-and-goes-on/wrong", refusedAndGoesOnWrong)
	route("/refused-and-goes-on/right", refusedAndGoesOnRight)
	route("/done-twice/wrong", doneTwiceWrong)
	route("/done-twice/right", doneTwiceRight)
	route("/lock-of-one-process/wrong", lockOfOneProcessWrong)
	route("/lock-of-one-process/right", lockOfOneProcessRight)
	routeOfTwo("/two-orders/wrong/", twoOrdersWrong)
	routeOfTwo("/two-orders/right/", twoOrdersRight)
	route("/lock-lost-by-failover/wrong", lockLostByFailoverWrong)
	route("/lock-lost-by-failover/right", lockLostByFailoverRight)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
