package lockstorm;

import java.time.Duration;
import java.util.UUID;
import org.redisson.api.RBucket;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * The worker of the second article: several workers see one request, and one of them should run it. A model needs a
 * minute for the answer, and the lock ends after three. ../articles/README.md explains the two routes.
 */
@RestController
public class RequestWorker {
    private static final Duration LEASE = Duration.ofSeconds(180);
    private static final Duration ANSWER = Duration.ofSeconds(60), ASK_AGAIN = Duration.ofSeconds(30);

    private final JdbcTemplate db;
    private final TransactionTemplate transactions;
    private final RedissonClient redisson;

    public RequestWorker(JdbcTemplate db, TransactionTemplate transactions, RedissonClient redisson) {
        this.db = db;
        this.transactions = transactions;
        this.redisson = redisson;
    }

    /** As in the article: what says whether the request was run is read once, and only the lock keeps others out. */
    @PostMapping("/requests/late-release")
    public void lateRelease() throws InterruptedException {
        underTheLock(() -> transactions.executeWithoutResult(status -> {
            db.update("UPDATE requests SET answered = true WHERE id = 1");
            db.update("INSERT INTO answers VALUES (1)");
        }));
    }

    /** The database refuses a second answer, also to the holder of the lock. */
    @PostMapping("/requests/answered-once")
    public void answeredOnce() throws InterruptedException {
        underTheLock(() -> transactions.executeWithoutResult(status -> {
            int rows = db.update("UPDATE requests SET answered = true WHERE id = 1 AND NOT answered");
            if (rows == 0) throw new Refused("another worker has answered it");
            db.update("INSERT INTO answers VALUES (1)");
        }));
    }

    private void refuseIfAnswered() {
        if (db.queryForObject("SELECT answered FROM requests WHERE id = 1", Boolean.class))
            throw new Refused("it was answered");
    }

    private void underTheLock(Runnable answer) throws InterruptedException {
        RBucket<String> lock = redisson.getBucket("request:1:lock", StringCodec.INSTANCE);
        String mine = UUID.randomUUID().toString();
        while (!lock.setIfAbsent(mine, LEASE)) {
            Thread.sleep(ASK_AGAIN.toMillis());
            refuseIfAnswered();
        }
        try {
            refuseIfAnswered();
            Thread.sleep(ANSWER.toMillis());
            answer.run();
        } finally {
            // Two commands: between them the lease may end, and another worker may get the lock.
            if (mine.equals(lock.get())) lock.delete();
        }
    }
}
