// Spring Integration RedisLockRegistry 7.1.2 with a renewalTaskScheduler, on an empty redis-server:
// an unlock() that throws leaves the lock renewed for as long as the process lives
//
// While one unlock() is executed the server takes no writes, as without a replica under min-replicas-to-write 1. Then it
// takes them again. The thread holds the lock no more, and cannot unlock it once more. Five leases later another registry
// asks for the lock. Exit status: 1 if it is refused, otherwise 0. With `control` behind the port the server takes writes
// all the time.
//
// install: Maven: org.springframework.integration:spring-integration-redis:7.1.2, io.lettuce:lettuce-core:7.5.1.RELEASE, with what they depend on, in libraries/
// run:     java -Dorg.slf4j.simpleLogger.defaultLogLevel=off -cp 'libraries/*' Found.java [PORT [control]]    (of a redis-server here; 6379)
import java.util.concurrent.locks.Lock;
import org.springframework.data.redis.connection.RedisConnection;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

public class Found {
    static final long LEASE_MS = 1500;

    static RedisLockRegistry registry(LettuceConnectionFactory server) {
        ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
        scheduler.initialize();
        RedisLockRegistry registry = new RedisLockRegistry(server, "locks", LEASE_MS);
        registry.setRenewalTaskScheduler(scheduler);
        return registry;
    }

    static void takeWrites(LettuceConnectionFactory server, boolean takes) {
        try (RedisConnection connection = server.getConnection()) {
            connection.serverCommands().setConfig("min-replicas-to-write", takes ? "0" : "1");
        }
    }

    static String unlocked(Lock lock) {
        try {
            lock.unlock();
            return "done";
        } catch (RuntimeException error) {
            return error.getClass().getSimpleName();
        }
    }

    public static void main(String[] arguments) throws Exception {
        int port = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 6379;
        boolean fails = arguments.length < 2;
        LettuceConnectionFactory server = new LettuceConnectionFactory("127.0.0.1", port);
        server.afterPropertiesSet();
        server.start();
        Lock lock = registry(server).obtain("account");
        lock.lock();
        if (fails) takeWrites(server, false);
        System.out.println("unlock(): " + unlocked(lock));
        if (fails) takeWrites(server, true);
        System.out.println("unlock() once more: " + unlocked(lock));
        Thread.sleep(5 * LEASE_MS);
        boolean granted = registry(server).obtain("account").tryLock();
        System.out.printf("%d ms later another registry is %s%n", 5 * LEASE_MS, granted ? "granted the lock" : "refused");
        System.out.println(granted ? "kept" : "BROKEN");
        Runtime.getRuntime().halt(granted ? 0 : 1);
    }
}
