package lockstorm;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.springframework.stereotype.Component;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

@Component
public class Locks {
    private final RedissonClient redisson;

    public Locks(RedissonClient redisson) {
        this.redisson = redisson;
    }

    /** Works under the lock, which it holds for at most two seconds. */
    public void locked(String name, Runnable work) {
        RLock lock = acquire(name);
        try {
            work.run();
        } finally {
            release(lock);
        }
    }

    /** Holds the lock until the transaction is over, for at most two seconds. */
    public void lockUntilCommit(String name) {
        RLock lock = acquire(name);
        TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
            @Override
            public void afterCompletion(int status) {
                release(lock);
            }
        });
    }

    /** Waits for the lock as long as it takes; Redisson renews it as long as it is needed. */
    public void lockedAndRenewed(String name, Runnable work) {
        RLock lock = redisson.getLock(name);
        lock.lock();
        try {
            work.run();
        } finally {
            release(lock);
        }
    }

    public RLock named(String name) {
        return redisson.getLock(name);
    }

    public void release(RLock lock) {
        if (lock.isHeldByCurrentThread()) lock.unlock(); // or the lease has ended
    }

    private RLock acquire(String name) {
        RLock lock = redisson.getLock(name);
        try {
            if (!lock.tryLock(5, 2, TimeUnit.SECONDS)) throw new Refused("busy");
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
        return lock;
    }
}
