package lockstorm;

import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RScript;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.annotation.Isolation;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * A small service in Spring Boot, with Redisson, HikariCP and JdbcTemplate. Each /wrong route has a mistake with locks;
 * its /right twin follows. A holder may be paused for longer than its lease, so a lease alone protects no data: each
 * twin also has a guard in the database. ../README.md explains the mistakes.
 */
@RestController
public class Routes {
    private static final String RELEASE =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

    private final Users users;
    private final Locks locks;
    private final JdbcTemplate db;
    private final RedissonClient redisson;
    private final TransactionTemplate transactions;

    public Routes(Users users, Locks locks, JdbcTemplate db, RedissonClient redisson, TransactionTemplate transactions) {
        this.users = users;
        this.locks = locks;
        this.db = db;
        this.redisson = redisson;
        this.transactions = transactions;
    }

    @GetMapping("/health")
    public String health() {
        return "ready " + number("SELECT 1");
    }

    private int number(String statement) {
        return db.queryForObject(statement, Integer.class);
    }

    // --- unlock-before-commit: the lock is inside of the transaction ---

    @Transactional
    @PostMapping("/unlock-before-commit/wrong")
    public void unlockBeforeCommitWrong() {
        RLock lock = locks.named("user:1");
        lock.lock(2, TimeUnit.SECONDS);
        try {
            users.spend();
        } finally {
            lock.unlock();
        }
    }

    @PostMapping("/unlock-before-commit/right")
    public void unlockBeforeCommitRight() {
        locks.locked("user:1", users::spendIfUnchanged);
    }

    // --- snapshot-before-lock: what is read under the lock is as old as the transaction's first statement ---

    @Transactional(isolation = Isolation.REPEATABLE_READ)
    @PostMapping("/snapshot-before-lock/wrong")
    public void snapshotBeforeLockWrong() {
        int seats = number("SELECT seats FROM events WHERE id = 1");
        locks.lockUntilCommit("event:1");
        book(seats);
    }

    @PostMapping("/snapshot-before-lock/right")
    public void snapshotBeforeLockRight() {
        // READ COMMITTED: each statement reads anew
        locks.locked("event:1", () -> transactions.executeWithoutResult(
            status -> book(number("SELECT seats FROM events WHERE id = 1 FOR UPDATE"))));
    }

    private void book(int seats) {
        if (number("SELECT count(*) FROM bookings") >= seats) throw new Refused("none is left");
        db.update("INSERT INTO bookings DEFAULT VALUES");
    }

    // --- read-before-lock: the lock is taken after the decision ---

    @PostMapping("/read-before-lock/wrong")
    public void readBeforeLockWrong() {
        int stock = number("SELECT stock FROM articles WHERE id = 1");
        if (stock < 1) throw new Refused("none is left");
        locks.locked("article:1", () -> db.update("UPDATE articles SET stock = stock - 1 WHERE id = 1"));
    }

    @PostMapping("/read-before-lock/right")
    public void readBeforeLockRight() {
        locks.locked("article:1", () -> {
            int rows = db.update("UPDATE articles SET stock = stock - 1 WHERE id = 1 AND stock > 0");
            if (rows == 0) throw new Refused("none is left");
        });
    }

    // --- other-key: not everybody who writes the row takes the same lock ---

    @PostMapping("/other-key/wrong/consume")
    public void otherKeyWrongConsume() {
        locks.locked("user:1", users::spend);
    }

    @PostMapping("/other-key/wrong/refund")
    public void otherKeyWrongRefund() {
        locks.locked("users:1", () -> users.write(users.read() + 5));
    }

    @PostMapping("/other-key/right/consume")
    public void otherKeyRightConsume() {
        locks.locked("user:1", users::spendIfUnchanged);
    }

    @PostMapping("/other-key/right/refund")
    public void otherKeyRightRefund() {
        locks.locked("user:1", () -> db.update("UPDATE users SET credits = credits + 5 WHERE id = 1"));
    }

    // --- row-lock-outside-transaction: FOR UPDATE ends with its statement ---

    @PostMapping("/row-lock-outside-transaction/wrong")
    public void rowLockOutsideTransactionWrong() {
        int credits = number("SELECT credits FROM users WHERE id = 1 FOR UPDATE");
        if (credits < 1) throw new Refused("none is left");
        users.write(credits - 1);
    }

    @Transactional
    @PostMapping("/row-lock-outside-transaction/right")
    public void rowLockOutsideTransactionRight() {
        int credits = number("SELECT credits FROM users WHERE id = 1 FOR UPDATE");
        if (credits < 1) throw new Refused("none is left");
        users.write(credits - 1);
    }

    // --- beyond-the-lease: the work takes three seconds, the lease two ---

    private void askTheBank(int seconds) {
        try {
            Thread.sleep(1000L * seconds);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    @PostMapping("/beyond-the-lease/wrong")
    public void beyondTheLeaseWrong() {
        locks.locked("user:1", () -> {
            int credits = users.read();
            askTheBank(3);
            users.write(credits - 1);
        });
    }

    @PostMapping("/beyond-the-lease/right")
    public void beyondTheLeaseRight() {
        locks.locked("user:1", () -> {
            int credits = users.read();
            askTheBank(3);
            users.change(credits, credits - 1);
        });
    }

    // --- released-by-a-stranger: a refused request deletes the lock of another one ---

    private RBucket<String> key() {
        return redisson.getBucket("user:1:key", StringCodec.INSTANCE);
    }

    @PostMapping("/released-by-a-stranger/wrong")
    public void releasedByAStrangerWrong() {
        try {
            if (!key().setIfAbsent("locked", Duration.ofSeconds(2))) throw new Refused("busy");
            users.spend();
        } finally {
            key().delete();
        }
    }

    @PostMapping("/released-by-a-stranger/right")
    public void releasedByAStrangerRight() {
        String mine = UUID.randomUUID().toString();
        if (!key().setIfAbsent(mine, Duration.ofSeconds(2))) throw new Refused("busy");
        try {
            users.spendIfUnchanged();
        } finally {
            redisson.getScript(StringCodec.INSTANCE)
                .eval(RScript.Mode.READ_WRITE, RELEASE, RScript.ReturnType.INTEGER, List.of("user:1:key"), mine);
        }
    }

    // --- refused-and-goes-on: nobody looks whether the lock was granted ---

    @PostMapping("/refused-and-goes-on/wrong")
    public void refusedAndGoesOnWrong() throws InterruptedException {
        RLock lock = locks.named("user:1");
        lock.tryLock(0, 2, TimeUnit.SECONDS);
        users.spend();
        locks.release(lock);
    }

    @PostMapping("/refused-and-goes-on/right")
    public void refusedAndGoesOnRight() throws InterruptedException {
        RLock lock = locks.named("user:1");
        if (!lock.tryLock(0, 2, TimeUnit.SECONDS)) throw new Refused("busy");
        users.spendIfUnchanged();
        locks.release(lock);
    }

    // --- done-twice: the lock protects the choice of a job, but the job stays there until it is done ---

    private int nextJob(String how) {
        List<Integer> jobs =
            db.queryForList("SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1" + how, Integer.class);
        if (jobs.isEmpty()) throw new Refused("none is left");
        return jobs.get(0);
    }

    private void sendMail(int job) {
        db.update("INSERT INTO mails VALUES (?)", job);
        db.update("UPDATE jobs SET done = true WHERE id = ?", job);
    }

    @PostMapping("/done-twice/wrong")
    public void doneTwiceWrong() {
        int[] job = new int[1];
        locks.locked("jobs", () -> job[0] = nextJob(""));
        transactions.executeWithoutResult(status -> sendMail(job[0]));
    }

    @Transactional
    @PostMapping("/done-twice/right")
    public void doneTwiceRight() {
        sendMail(nextJob(" FOR UPDATE SKIP LOCKED"));
    }

    // --- lock-of-one-process: the other instance has a lock of its own ---

    @PostMapping("/lock-of-one-process/wrong")
    public void lockOfOneProcessWrong() {
        synchronized (users) {
            users.spend();
        }
    }

    @PostMapping("/lock-of-one-process/right")
    public void lockOfOneProcessRight() {
        locks.locked("user:1", users::spendIfUnchanged);
    }

    // --- two-orders: each has what the other one waits for ---

    private void lockBoth(int first, int second, Runnable work) {
        locks.lockedAndRenewed("user:" + first, () -> locks.lockedAndRenewed("user:" + second, work));
    }

    @PostMapping("/two-orders/wrong/{giver}/{taker}")
    public void twoOrdersWrong(@PathVariable("giver") int giver, @PathVariable("taker") int taker) {
        lockBoth(giver, taker, () -> users.move(giver, taker));
    }

    @PostMapping("/two-orders/right/{giver}/{taker}")
    public void twoOrdersRight(@PathVariable("giver") int giver, @PathVariable("taker") int taker) {
        lockBoth(Math.min(giver, taker), Math.max(giver, taker), () -> users.move(giver, taker));
    }

    // --- lock-lost-by-failover: the server of the locks forgets them, the database does not ---

    @PostMapping("/lock-lost-by-failover/wrong")
    public void lockLostByFailoverWrong() {
        locks.locked("user:1", () -> {
            int credits = users.read();
            askTheBank(1);
            users.write(credits - 1);
        });
    }

    @PostMapping("/lock-lost-by-failover/right")
    public void lockLostByFailoverRight() {
        locks.locked("user:1", () -> {
            int credits = users.read();
            askTheBank(1);
            users.change(credits, credits - 1);
        });
    }
}
