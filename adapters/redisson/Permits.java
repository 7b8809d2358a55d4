import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** Redisson's semaphores: Semaphore, a counter without owners, or PermitExpirableSemaphore. The argument names the class. */
public final class Permits {
    private static RSemaphore counter;
    private static RPermitExpirableSemaphore named;
    private static long lease;
    private static String permit; // its id; for a counter any text: a permit is held

    public static void main(String[] arguments) throws Exception {
        boolean expires = arguments[0].equals("PermitExpirableSemaphore");
        Lines.serve((verb, request) -> switch (verb) {
            case "hello" -> hello(arguments[0], expires);
            case "open" -> open(request, expires);
            case "acquire" -> acquire(request.get("wait_ms").isJsonNull() ? -1 : request.get("wait_ms").getAsLong());
            case "renew" -> Lines.outcome(permit != null && named.updateLeaseTime(permit, lease, TimeUnit.MILLISECONDS));
            default -> Lines.outcome(permit != null && release());
        });
    }

    private static JsonObject hello(String kind, boolean expires) {
        JsonObject hello = Lines.hello(kind, "push");
        hello.addProperty("semaphore", true);
        hello.addProperty("lease", expires);
        hello.add("operations", Lines.words(expires ? List.of("renew") : List.of()));
        return hello;
    }

    private static JsonObject open(JsonObject request, boolean expires) {
        String name = request.get("resource").getAsString();
        int permits = request.get("permits").getAsInt();
        lease = request.get("lease_ms").getAsLong();
        RedissonClient link = Lines.connect(request.get("nodes").getAsJsonArray().get(0), lease);
        if (expires) (named = link.getPermitExpirableSemaphore(name)).trySetPermits(permits);
        else (counter = link.getSemaphore(name)).trySetPermits(permits);
        return Lines.outcome(true);
    }

    private static JsonObject acquire(long wait) throws InterruptedException {
        permit = null;
        if (named != null && wait < 0) permit = named.acquire(lease, TimeUnit.MILLISECONDS);
        else if (named != null) permit = named.tryAcquire(wait, lease, TimeUnit.MILLISECONDS);
        else if (wait >= 0) permit = counter.tryAcquire(Duration.ofMillis(wait)) ? "one" : null;
        else {
            counter.acquire();
            permit = "one";
        }
        return Lines.outcome(permit != null);
    }

    /** A counter accepts a release without a permit, so the caller checks for one. An expired permit is gone. */
    private static boolean release() {
        if (named != null) return named.tryRelease(permit);
        counter.release();
        permit = null;
        return true;
    }
}
