import com.google.gson.JsonObject;
import java.util.List;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.LockProvider;

/** ShedLock. The argument says where: `redis`, `redis-safe`, `table` or `table-server-time`. */
public final class ShedLocks {
    private static final List<Form<Task>> FORMS = List.of(new Form<>("lock", List.of("none"), List.of("given"),
        TimeUnit.MILLISECONDS, false, (task, ask) -> task.lock(ShedLocks.provider, ask.leases())));
    private static final Numbered<Task> TASKS = new Numbered<>(Task::new);
    private static final Threads THREADS = new Threads(request -> false);
    private static Store store;
    private static volatile LockProvider provider;
    private static volatile long leaseMs; // of requests that name none
    private static final long PERIOD_MS = 100;

    public static void main(String[] arguments) throws Exception {
        store = switch (arguments[0]) {
            case "redis", "redis-safe" -> new RedisStore(arguments[0].endsWith("safe"));
            default -> new TableStore(arguments[0].endsWith("server-time"));
        };
        Lines.serve(THREADS, (verb, request) -> switch (verb) {
            case "hello" -> ShedTraits.hello(store, FORMS, request.get("protocol").getAsInt() > 1);
            case "open" -> open(request);
            case "cancel" -> THREADS.cancel(request);
            case "forget" -> forget();
            case "acquire" -> acquire(request);
            default -> TASKS.of(request).changed(verb, lease(request));
        });
    }

    private static JsonObject open(JsonObject request) throws Exception {
        store.open(request.get("nodes").getAsJsonArray().get(0).getAsJsonObject());
        TASKS.open(request.get("resource").getAsString());
        leaseMs = request.get("lease_ms").getAsLong();
        provider = store.provider();
        return Lines.outcome(true);
    }

    private static JsonObject forget() throws InterruptedException {
        JsonObject answer = THREADS.forget();
        TASKS.clear();
        provider = store.provider();
        return answer;
    }

    private static long lease(JsonObject request) {
        return Lines.number(request, "lease_ms", leaseMs);
    }

    /** The library tries once. A request that names no form may wait, as the library's user has to. */
    private static JsonObject acquire(JsonObject request) throws Exception {
        Form.Prepared<Task> form = Form.prepared(FORMS, FORMS.get(0).name(), request, lease(request));
        long waitMs = request.has("form") ? 0 : Lines.number(request, "wait_ms", Long.MAX_VALUE / 1_000_000);
        long began = System.nanoTime();
        while (form.on(TASKS.of(request)).equals(false)) {
            if (System.nanoTime() - began >= waitMs * 1_000_000) return Lines.outcome(false);
            Thread.sleep(PERIOD_MS);
        }
        return Lines.outcome(true);
    }
}
