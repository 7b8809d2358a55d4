// Redisson ReadWriteLock 4.7.0, on an empty redis-server and without any fault:
// client-2 (thread-1, lock-1) was granted (write) while client-1 (thread-1, lock-2) certainly holds (write)
//
// The calls, with their times, are those of a schedule that lockstorm found. Exit status: 1 if this run shows
// that mutual exclusion is broken, otherwise 0.
//
// install: Maven: org.redisson:redisson:4.7.0, with what it depends on, in libraries/
// run:     java -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp 'libraries/*' Found.java [PORT ...]    (of redis-servers here; 6379)
import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.Redisson;
import org.redisson.api.*;
import org.redisson.config.Config;

public class Found {
    static final List<Integer> ports = new ArrayList<>();
    static RedissonClient client1, client2;
    static RReadWriteLock client1Lock2;
    static RReadWriteLock client2Lock1;
    // by the number of a call: times in ms, the thread, and "ok", "refused" or an error
    static final Map<Integer, Long> asked = new ConcurrentHashMap<>(), answered = new ConcurrentHashMap<>();
    static final Map<Integer, Thread> threads = new ConcurrentHashMap<>();
    static final Map<Integer, String> outcome = new ConcurrentHashMap<>();
    static long begin;

    interface Task {
        void run() throws Exception;
    }

    static long now() {
        return (System.nanoTime() - begin) / 1_000_000;
    }

    static void at(long ms) {
        long until = begin + ms * 1_000_000;
        while (System.nanoTime() < until) java.util.concurrent.locks.LockSupport.parkNanos(until - System.nanoTime());
    }

    static void after(int number) throws InterruptedException {
        while (!answered.containsKey(number)) Thread.sleep(1);
    }

    static void call(int number, String words, Callable<Object> function) {
        threads.put(number, Thread.currentThread());
        asked.put(number, now());
        try {
            Object done = function.call();
            outcome.put(number, done == null || done.equals(false) ? "refused" : "ok");
        } catch (Exception error) {
            outcome.put(number, error instanceof IllegalMonitorStateException || error instanceof InterruptedException ? "refused" : error.toString());
        }
        answered.put(number, now());
        System.out.printf("%6d ms to %6d ms  %s: %s%n", asked.get(number), answered.get(number), words, outcome.get(number));
    }

    static void start(Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (Exception error) {
                error.printStackTrace();
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    static void client1Thread1() throws Exception {
        at(0);
        client1Lock2 = client1.getReadWriteLock("resource-1");
        call(1, "client-1 thread-1: acquire write lock-2", () -> client1Lock2.writeLock().tryLock(0, MILLISECONDS));
        call(2, "client-1 thread-1: acquire read lock-2", () -> client1Lock2.readLock().tryLock(1000, -1, MILLISECONDS));
        call(3, "client-1 thread-1: release read lock-2", () -> { client1Lock2.readLock().unlock(); return true; });
        at(4000);
        call(6, "client-1 thread-1: release write lock-2", () -> { client1Lock2.writeLock().unlock(); return true; });
    }

    static void client2Thread1() throws Exception {
        at(25);
        after(3);
        client2Lock1 = client2.getReadWriteLock("resource-1");
        call(4, "client-2 thread-1: acquire write lock-1", () -> client2Lock1.writeLock().tryLock(2400, 4000, MILLISECONDS));
        at(2002);
        call(5, "client-2 thread-1: release write lock-1", () -> { client2Lock1.writeLock().unlock(); return true; });
    }

    public static void main(String[] arguments) throws Exception {
        for (String port : arguments) ports.add(Integer.valueOf(port));
        if (ports.isEmpty()) ports.add(6379);
        client1 = connected();
        client2 = connected();
        begin = System.nanoTime() + 200_000_000;
        start(Found::client1Thread1);
        start(Found::client2Thread1);
        at(4300);
        Map<Integer, String> expected = Map.ofEntries(Map.entry(1, "ok"), Map.entry(2, "ok"), Map.entry(3, "ok"));
        boolean isSame = expected.entrySet().stream().allMatch(each -> each.getValue().equals(outcome.get(each.getKey())));
        boolean isBroken = isSame && "ok".equals(outcome.get(4)) && answered.get(4) < asked.getOrDefault(6, now());
        System.out.println(isBroken ? "BROKEN" : isSame ? "kept" : "not shown: calls end in another way");
        Runtime.getRuntime().halt(isBroken ? 1 : 0);
    }

    static RedissonClient connected() {
        Config config = new Config().setLockWatchdogTimeout(2000);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + ports.get(0));
        return Redisson.create(config);
    }
}
