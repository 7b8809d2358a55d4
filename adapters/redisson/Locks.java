import com.google.gson.JsonObject;
import java.util.List;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Redisson's locks, which have an owner and a watchdog. The arguments name the class, and the topology of its
 * servers if it is not single. */
public final class Locks {
    private static String kind;
    private static Threads threads;
    private static List<RedissonClient> links;
    private static final Numbered<LockObject> OBJECTS = new Numbered<>(name -> LockObject.made(kind, links, name));

    public static void main(String[] arguments) throws Exception {
        kind = arguments[0];
        if (arguments.length > 1) Links.topology = arguments[1];
        List<Form<RLock>> forms = kind.equals("FencedLock") ? FencedForms.all() : LockForms.all();
        LockCalls calls = new LockCalls(kind, forms, OBJECTS);
        threads = new Threads(request -> Form.ends(forms, calls.form(request)));
        Lines.serve(threads, (verb, request) -> switch (verb) {
            case "hello" -> Traits.locks(request, kind, forms);
            case "open" -> open(request, calls);
            case "cancel" -> threads.cancel(request);
            case "forget" -> forget(calls);
            case "acquire" -> calls.acquire(request);
            case "release" -> calls.release(request);
            case "token" -> calls.token(request);
            default -> calls.isHeld(request);
        });
    }

    private static JsonObject open(JsonObject request, LockCalls calls) {
        links = Links.of(request);
        OBJECTS.open(request.get("resource").getAsString());
        calls.open(request.get("fixed_lease").getAsBoolean() ? request.get("lease_ms").getAsLong() : -1);
        return Lines.outcome(true);
    }

    private static JsonObject forget(LockCalls calls) throws InterruptedException {
        JsonObject answer = threads.forget();
        OBJECTS.all().forEach(LockObject::forget);
        OBJECTS.clear();
        Links.renewWatchdogs();
        calls.clear();
        return answer;
    }
}
