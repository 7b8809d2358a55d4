package lockstorm;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** The chat service of the first article: each reply costs a credit. ../articles/README.md explains the three routes. */
@RestController
public class Replies {
    private final Users users;
    private final Locks locks;

    public Replies(Users users, Locks locks) {
        this.users = users;
        this.locks = locks;
    }

    @PostMapping("/replies/without-a-lock")
    public void withoutALock() {
        users.spend();
    }

    @PostMapping("/replies/with-the-lock")
    public void withTheLock() throws InterruptedException {
        spendUnderTheLock();
    }

    @Transactional
    @PostMapping("/replies/lock-inside-the-transaction")
    public void lockInsideTheTransaction() throws InterruptedException {
        spendUnderTheLock();
    }

    private void spendUnderTheLock() throws InterruptedException {
        RLock lock = locks.named("user:1:lock");
        if (!lock.tryLock(3, 10, TimeUnit.SECONDS)) throw new Refused("busy");
        try {
            users.spend();
        } finally {
            if (lock.isHeldByCurrentThread()) lock.unlock();
        }
    }
}
