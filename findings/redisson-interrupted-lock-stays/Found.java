// Redisson Lock 4.7.0, on an empty redis-server and without any fault:
// a thread that is interrupted while lockInterruptibly() asks leaves a lock behind that the watchdog renews for good
//
// Thread after thread acquires a lock of its own and is interrupted up to 0.3 ms later. Some interrupts come while the
// command is under way: lockInterruptibly() throws, and the server executes the command. Each such lock is looked at
// when five leases are over. Exit status: 1 if one is still there, otherwise 0.
//
// install: Maven: org.redisson:redisson:4.7.0, with what it depends on, in libraries/
// run:     java -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp 'libraries/*' Found.java [PORT]    (of a redis-server here; 6379)
import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.config.Config;

public class Found {
    static final int LOCKS = 1000, LEASE_S = 3;

    /** Whether lockInterruptibly() was interrupted, so that nobody holds the lock. */
    static boolean isInterrupted(RLock lock, long afterNanos) throws InterruptedException {
        CountDownLatch begun = new CountDownLatch(1);
        AtomicBoolean interrupted = new AtomicBoolean();
        Thread thread = new Thread(() -> {
            begun.countDown();
            try {
                lock.lockInterruptibly();
            } catch (Exception error) { // InterruptedException, or a RedisException with it
                interrupted.set(true);
                return;
            }
            Thread.interrupted();
            try {
                lock.unlock();
            } catch (RedisException error) { // the interrupt came later: this lock is not looked at
            }
        });
        thread.start();
        begun.await();
        long until = System.nanoTime() + afterNanos;
        while (System.nanoTime() < until) Thread.onSpinWait();
        thread.interrupt();
        thread.join();
        return interrupted.get();
    }

    public static void main(String[] arguments) throws Exception {
        Config config = new Config().setLockWatchdogTimeout(LEASE_S * 1000);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + (arguments.length > 0 ? arguments[0] : "6379"));
        RedissonClient client = Redisson.create(config);
        List<RLock> free = new ArrayList<>();
        for (int number = 0; number < LOCKS; number++) {
            RLock lock = client.getLock("lock-" + number);
            if (isInterrupted(lock, number % 300 * 1000)) free.add(lock);
        }
        SECONDS.sleep(5 * LEASE_S);
        long locked = free.stream().filter(RLock::isLocked).count();
        System.out.printf("%d of %d acquires were interrupted, and %d of their locks are still there after %d s%n",
                free.size(), LOCKS, locked, 5 * LEASE_S);
        System.out.println(locked > 0 ? "BROKEN" : "kept");
        Runtime.getRuntime().halt(locked > 0 ? 1 : 0);
    }
}
