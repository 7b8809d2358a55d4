import com.google.gson.JsonObject;
import java.util.Collection;
import java.util.List;
import org.redisson.Redisson;

/** The answer to hello. */
final class Traits {
    /** Netty's wheel turns every 100 ms; a spin lock's last pause is at most 128 ms (ExponentialBackoff) longer. */
    private static final int TIMER_MS = 230;
    /** The counter of fencing tokens. */
    private static final List<String> KEEPS = List.of("redisson_lock_token:{{resource}}");
    /** The number of permits, and what the names of permits are drawn from. */
    private static final List<String> PERMITS_KEEP = List.of("{resource}", "{{resource}}:*");

    /** What all of them are, in the protocol that was asked for. */
    static JsonObject hello(JsonObject request, String kind, String waits) {
        JsonObject hello = Lines.outcome(true);
        hello.addProperty("protocol", Math.min(3, request.get("protocol").getAsInt()));
        boolean alone = Links.topology.equals("single");
        hello.addProperty("name", "Redisson " + kind + (alone ? "" : " " + Links.topology));
        if (!alone) hello.addProperty("topology", Links.topology);
        String version = System.getenv("LOCKSTORM_LIBRARY_VERSION"); // old releases do not always report it
        hello.addProperty("version",
            version != null ? version : Redisson.class.getPackage().getImplementationVersion());
        hello.addProperty("source", "Redisson, org.redisson.Redisson" + kind);
        hello.addProperty("tcp", true);
        hello.addProperty("waits", waits);
        return hello;
    }

    static boolean hosts(JsonObject request) {
        return request.get("protocol").getAsInt() > 1;
    }

    /** Adds what protocol 2 says. `leaseKey` is null where no key has the lease. */
    static void programs(JsonObject hello, Collection<? extends Form<?>> forms, List<String> modes, List<String> reenters,
        String owner, String leaseKey) {
        hello.addProperty("threads", Threads.MOST);
        hello.addProperty("owner", owner);
        hello.add("modes", Lines.words(modes));
        hello.add("forms", Form.described(forms));
        hello.add("reenters", Lines.words(reenters));
        hello.addProperty("cancel", true);
        if (leaseKey != null) hello.addProperty("lease_key", leaseKey);
        hello.addProperty("watchdog_divisor", 3);
        hello.addProperty("timer_ms", TIMER_MS);
        hello.add("keeps", Lines.words(modes.contains("permits") ? PERMITS_KEEP : KEEPS));
        hello.addProperty("validity", false);
        hello.addProperty("parts", hello.get("name").getAsString().endsWith(" MultiLock"));
    }

    static JsonObject locks(JsonObject request, String kind, Collection<? extends Form<?>> forms) {
        boolean composed = kind.equals("RedLock") || kind.equals("MultiLock"), both = kind.equals("ReadWriteLock");
        boolean fenced = kind.equals("FencedLock");
        JsonObject hello = hello(request, kind, kind.equals("SpinLock") ? "polling" : "push");
        List.of("lease", "renews", "reentrant").forEach(trait -> hello.addProperty(trait, true));
        hello.addProperty("fair", kind.equals("FairLock"));
        hello.addProperty("token", fenced);
        hello.addProperty("nodes", kind.equals("RedLock") ? 3 : 1);
        List<String> asked = composed ? List.of() : List.of("is_held");
        if (fenced && hosts(request)) asked = List.of("is_held", "token");
        hello.add("operations", Lines.words(asked));
        if (hosts(request))
            programs(hello, forms, both ? List.of("read", "write") : List.of("exclusive"),
                both ? List.of("same", "write-read") : List.of("same"), "thread",
                kind.equals("MultiLock") ? "{resource}:1" : "{resource}");
        if (request.get("protocol").getAsInt() > 2) hello.addProperty("holds_two", !composed);
        return hello;
    }

    static JsonObject permits(JsonObject request, String kind, Collection<? extends Form<?>> forms) {
        boolean expires = kind.equals("PermitExpirableSemaphore");
        JsonObject hello = hello(request, kind, "push");
        hello.addProperty("semaphore", true);
        hello.addProperty("lease", expires);
        hello.add("operations", Lines.words(expires ? List.of("renew") : List.of()));
        if (hosts(request)) programs(hello, forms, List.of("permits"), List.of(), "thread-object", null);
        return hello;
    }
}
