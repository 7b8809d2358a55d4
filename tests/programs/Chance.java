import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;

/**
 * All that Java programs take for chance: random numbers, hashes of objects, the order in which threads run. An argument:
 * how often each thread fills and frees memory, so that the collector runs.
 */
public final class Chance {
    private static final Object MONITOR = new Object();
    private static final StringBuilder ORDER = new StringBuilder();

    private static Object run(int number, int rounds) throws InterruptedException {
        for (int round = 0; round < rounds; round++) {
            byte[][] kept = new byte[100][];
            for (int each = 0; each < kept.length; each++) {
                kept[each] = new byte[10000];
            }
            synchronized (MONITOR) {
                if (round % 5 == 0) {
                    ORDER.append(number);
                    MONITOR.wait(number + 1);
                }
            }
            Thread.sleep(ThreadLocalRandom.current().nextInt(20));
            if (round % 25 == 24) {
                System.gc();
            }
        }
        return null;
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("random " + new Random().nextLong() + " " + Math.random() + " " + new SecureRandom().nextLong());
        System.out.println("uuid " + UUID.randomUUID());
        System.out.println("hash " + new Object().hashCode());
        HashMap<Object, Integer> map = new HashMap<>();
        for (int each = 0; each < 10; each++) {
            map.put(new Object(), each);
        }
        System.out.println("map " + map.values());
        int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 10;
        ExecutorService threads = Executors.newFixedThreadPool(8);
        List<Future<?>> all = new ArrayList<>();
        for (int each = 0; each < 8; each++) {
            int number = each;
            all.add(threads.submit(() -> run(number, rounds)));
        }
        for (Future<?> each : all) {
            each.get();
        }
        threads.shutdown();
        System.out.println("threads " + ORDER + " " + System.nanoTime());
    }
}
