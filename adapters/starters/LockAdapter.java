#!/usr/bin/env -S java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp libraries/* --source 17
// A lock library for lockstorm, through an adapter: change the five marked places to use your own.
import com.google.gson.*;
import java.util.*;
import java.util.concurrent.*;
import org.redisson.Redisson; // 1. your library
import org.redisson.api.*;
import org.redisson.config.Config;

public class LockAdapter { // 2. Its description; docs/adapters.md has all keys. HELLO_2: for calls of several threads.
    static final String HELLO = ", 'tcp': true, 'lease': true, 'renews': true, 'operations': ['is_held'],"
        + "'name': 'my lock', 'version': '" + Redisson.class.getPackage().getImplementationVersion() + "'";
    static final String HELLO_2 = HELLO + (", 'threads': 8, 'owner': 'thread', 'reenters': ['same'],"
        + "'lease_key': '{resource}', 'timer_ms': 100, 'forms': [{'form': 'tryLock', 'wait': ['none', 'time'],"
        + "'lease': ['given', 'renewed']}, {'form': 'lock', 'wait': ['forever'], 'lease': ['given', 'renewed']}]");
    static RedissonClient client; static String resource;

    /** 3. A connection. The proxy of the trial listens at the nodes: connect to these addresses only. */
    static String open(JsonObject request) {
        JsonObject node = request.getAsJsonArray("nodes").get(0).getAsJsonObject();
        Config config = new Config().setLockWatchdogTimeout(number(request, "lease_ms"));
        config.useSingleServer().setTimeout(1000).setConnectionMinimumIdleSize(1) // instead of 3 s and 24 connections
            .setAddress("redis://" + node.get("host").getAsString() + ":" + node.get("port"));
        client = Redisson.create(config);
        resource = request.get("resource").getAsString();
        return "ok";
    }

    /** 4. One request: true it succeeded, false it was refused. `outcome` handles exceptions. */
    static boolean answered(RLock lock, String verb, long wait, long lease) throws Exception { // in ms; lease -1: renewed
        if (verb.equals("is_held")) return lock.isHeldByCurrentThread();
        if (verb.equals("release")) lock.unlock();
        else if (wait >= 0) return lock.tryLock(wait, lease, TimeUnit.MILLISECONDS);
        else lock.lock(lease, TimeUnit.MILLISECONDS); // for as long as the library waits by default
        return true;
    }

    static String outcome(RLock lock, String verb, JsonObject request) {
        try {
            if (verb.equals("open")) return open(request);
            return answered(lock, verb, number(request, "wait_ms"), number(request, "lease_ms")) ? "ok" : "refused";
        } catch (IllegalMonitorStateException error) { // 5. what your library throws if another holds the lock
            return "refused";
        } catch (Exception error) { // any other error: the server may have executed it
            return "unknown', 'error': '" + String.valueOf(error.getMessage()).replaceAll("['\\\\\n]", " ");
        }
    }
    static long number(JsonObject request, String key) { // -1: none
        return request.has(key) && !request.get(key).isJsonNull() ? request.get(key).getAsLong() : -1;
    }
    static synchronized void write(JsonObject request, String rest) {
        System.out.println(JsonParser.parseString("{'id': " + request.get("id") + ", 'outcome': '" + rest + "}"));
    }

    public static void main(String[] arguments) throws Exception {
        Map<Long, RLock> locks = new HashMap<>(); // the first question about a lock object or a thread makes it
        Map<Long, ExecutorService> threads = new HashMap<>();
        for (Scanner input = new Scanner(System.in, "UTF-8"); input.hasNextLine();) {
            JsonObject request = JsonParser.parseString(input.nextLine()).getAsJsonObject();
            String verb = request.get("op").getAsString(), rest = "ok'";
            long version = Math.min(3, number(request, "protocol")); // 3 asks a release that has failed once more
            if (verb.equals("hello")) rest += ", 'protocol': " + version + (version > 1 ? HELLO_2 : HELLO);
            else if (verb.equals("open")) rest = outcome(null, verb, request) + "'";
            else if (verb.equals("forget")) {
                for (ExecutorService thread : threads.values()) thread.shutdown(); // a call under way is not ended
                for (var thread : threads.values()) if (!thread.awaitTermination(1, TimeUnit.SECONDS)) rest = "refused'";
                threads.clear();
                locks.clear();
            } else {
                String name = request.has("resource") ? request.get("resource").getAsString() : resource;
                RLock lock = locks.computeIfAbsent(number(request, "lock"), number -> client.getLock(name));
                threads.computeIfAbsent(number(request, "thread"), number -> Executors.newSingleThreadExecutor())
                    .execute(() -> write(request, outcome(lock, verb, request) + "'"));
                continue;
            }
            write(request, rest);
        }
        System.exit(0); // ends the threads, too
    }
}
