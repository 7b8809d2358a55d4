import com.google.gson.JsonObject;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.StreamSupport;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Redisson's locks, which have an owner and a watchdog. The argument names the class. */
public final class Locks {
    private static String kind;
    private static RLock lock;
    private static List<RLock> parts = List.of(); // of a lock that consists of others
    private static long lease = -1; // -1: the watchdog renews it
    private static int mayHold; // how many times, as far as the answers told

    public static void main(String[] arguments) throws Exception {
        kind = arguments[0];
        Lines.serve((verb, request) -> switch (verb) {
            case "hello" -> hello();
            case "open" -> open(request);
            case "acquire" -> acquire(request.get("wait_ms").isJsonNull() ? -1 : request.get("wait_ms").getAsLong());
            case "release" -> release();
            default -> Lines.outcome(lock.isHeldByCurrentThread());
        });
    }

    private static JsonObject hello() {
        JsonObject hello = Lines.hello(kind, kind.equals("SpinLock") ? "polling" : "push");
        List.of("lease", "renews", "reentrant").forEach(trait -> hello.addProperty(trait, true));
        hello.addProperty("fair", kind.equals("FairLock"));
        hello.addProperty("token", kind.equals("FencedLock"));
        hello.addProperty("nodes", kind.equals("RedLock") ? 3 : 1);
        hello.add("operations", Lines.words(kind.equals("RedLock") || kind.equals("MultiLock") ? List.of() : List.of("is_held")));
        return hello;
    }

    private static JsonObject open(JsonObject request) {
        String name = request.get("resource").getAsString();
        long leaseMs = request.get("lease_ms").getAsLong();
        if (request.get("fixed_lease").getAsBoolean()) lease = leaseMs;
        List<RedissonClient> links = StreamSupport.stream(request.get("nodes").getAsJsonArray().spliterator(), false)
            .map(node -> Lines.connect(node, leaseMs)).toList();
        RedissonClient link = links.get(0);
        if (kind.equals("RedLock")) parts = links.stream().map(each -> each.getLock(name)).toList();
        if (kind.equals("MultiLock"))
            parts = List.of(1, 2, 3).stream().map(part -> link.getLock(name + ":" + part)).toList();
        lock = switch (kind) {
            case "FairLock" -> link.getFairLock(name);
            case "SpinLock" -> link.getSpinLock(name);
            case "FencedLock" -> link.getFencedLock(name);
            case "WriteLock" -> link.getReadWriteLock(name).writeLock();
            case "MultiLock" -> link.getMultiLock(parts.toArray(RLock[]::new));
            case "RedLock" -> link.getRedLock(parts.toArray(RLock[]::new));
            default -> link.getLock(name);
        };
        return Lines.outcome(true);
    }

    private static JsonObject acquire(long wait) throws InterruptedException {
        mayHold++;
        boolean fences = lock instanceof RFencedLock;
        Long token = fences ? ((RFencedLock) lock).tryLockAndGetToken(wait, lease, TimeUnit.MILLISECONDS) : null;
        boolean granted = fences ? token != null : wait < 0 || lock.tryLock(wait, lease, TimeUnit.MILLISECONDS);
        if (!fences && wait < 0) lock.lock(lease, TimeUnit.MILLISECONDS);
        JsonObject answer = Lines.outcome(granted);
        if (token != null) answer.addProperty("token", token);
        if (!granted) parts.forEach(RLock::isLocked); // tryLock is false for a silent server, too; isLocked throws
        mayHold -= granted ? 0 : 1;
        return answer;
    }

    private static JsonObject release() {
        if (kind.equals("RedLock") && mayHold == 0) throw new IllegalMonitorStateException(); // its unlock reports nothing
        lock.unlock();
        mayHold--;
        return Lines.outcome(true);
    }
}
