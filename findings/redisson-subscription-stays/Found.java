// Redisson Lock 4.7.0, on an empty redis-server and without any fault:
// a tryLock whose time is over while it subscribes leaves its subscription behind; after 250 of them lock() fails
//
// Locks that another thread holds are tried for a millisecond each. Then a lock is to be acquired that a thread holds
// for a second. Exit status: 1 if a subscription is left at the server, otherwise 0.
//
// install: Maven: org.redisson:redisson:4.7.0, with what it depends on, in libraries/
// run:     java -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp 'libraries/*' Found.java [PORT]    (of a redis-server here; 6379)
import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RScript;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

public class Found {
    static final int LOCKS = 15_000;

    static int subscriptions(RedissonClient client) {
        String script = "return #redis.call('pubsub', 'channels')";
        Number channels = client.getScript(StringCodec.INSTANCE)
                .eval(RScript.Mode.READ_ONLY, script, RScript.ReturnType.LONG);
        return channels.intValue();
    }

    public static void main(String[] arguments) throws Exception {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + (arguments.length > 0 ? arguments[0] : "6379"));
        RedissonClient client = Redisson.create(config);
        ExecutorService other = Executors.newSingleThreadExecutor();
        for (int number = 0; number < LOCKS; number++) {
            RLock lock = client.getLock("lock-" + number);
            other.submit(() -> lock.lock()).get();
            if (lock.tryLock(1, MILLISECONDS)) lock.unlock();
            other.submit(() -> lock.unlock()).get();
        }
        SECONDS.sleep(2);
        int left = subscriptions(client);
        System.out.printf("%d subscriptions are left after %d tries%n", left, LOCKS);
        RLock last = client.getLock("last");
        other.submit(() -> last.lock()).get();
        other.submit(() -> { SECONDS.sleep(1); last.unlock(); return null; });
        try {
            last.lock();
            System.out.println("lock() of another lock waits, and is granted");
        } catch (Exception error) {
            System.out.println("lock() of another lock throws " + error);
        }
        System.out.println(left > 0 ? "BROKEN" : "kept");
        Runtime.getRuntime().halt(left > 0 ? 1 : 0);
    }
}
