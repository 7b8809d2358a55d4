import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.ConcurrentModificationException;
import java.util.List;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.support.locks.DistributedLock;

/** Spring Integration's RedisLockRegistry. The argument is its setup: `spin`, `publish`, `renew` or `expire`. */
public final class RegistryLocks {
    private static String setup;
    private static boolean renewed;
    private static Registries registries;
    private static Threads threads;
    private static List<Form<DistributedLock>> forms;
    private static final Numbered<DistributedLock> OBJECTS = new Numbered<>(RegistryLocks::obtained);

    public static void main(String[] arguments) throws Exception {
        setup = arguments[0];
        renewed = setup.equals("renew");
        registries = new Registries(setup.equals("publish"), renewed);
        forms = RegistryForms.all(renewed);
        threads = new Threads(request -> Form.ends(forms, RegistryForms.of(request)));
        Lines.serve(threads, (verb, request) -> switch (verb) {
            case "hello" -> RegistryTraits.hello(request, setup, renewed, forms);
            case "open" -> open(request);
            case "cancel" -> threads.cancel(request);
            case "forget" -> forget();
            case "acquire" -> acquire(request);
            default -> changed(verb, request);
        });
    }

    /** `expire`: each obtain() cleans the cache of the registry first. */
    private static DistributedLock obtained(String name) {
        if (setup.equals("expire")) registries.current().expireUnusedOlderThan(0);
        return registries.current().obtain(name);
    }

    private static JsonObject open(JsonObject request) {
        OBJECTS.clear();
        OBJECTS.open(request.get("resource").getAsString());
        registries.open(request);
        return Lines.outcome(true);
    }

    private static JsonObject forget() throws InterruptedException {
        JsonObject answer = threads.forget();
        OBJECTS.clear();
        registries.renew();
        return answer;
    }

    private static JsonObject acquire(JsonObject request) throws Exception {
        DistributedLock lock = OBJECTS.of(request);
        long lease = Lines.number(request, "lease_ms", -1);
        Form.Prepared<DistributedLock> form = Form.prepared(forms, RegistryForms.of(request), request, lease);
        try {
            return Lines.outcome(form.on(lock).equals(true));
        } catch (InterruptedException cancelled) { // as the cause of another exception: unknown
            JsonObject answer = Lines.outcome(false);
            answer.addProperty("cancelled", true);
            return answer;
        }
    }

    private static JsonObject changed(String verb, JsonObject request) {
        DistributedLock lock = OBJECTS.of(request);
        long lease = Lines.number(request, "lease_ms", -1);
        RedisLockRegistry registry = registries.current();
        try {
            if (verb.equals("release")) lock.unlock();
            else if (lease < 0) registry.renewLock(OBJECTS.resource(request));
            else registry.renewLock(OBJECTS.resource(request), Duration.ofMillis(lease));
            return Lines.outcome(true);
        } catch (ConcurrentModificationException | IllegalStateException notOurs) {
            return Lines.outcome(false);
        }
    }
}
