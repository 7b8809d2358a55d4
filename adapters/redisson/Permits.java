import com.google.gson.JsonObject;
import java.util.List;
import org.redisson.api.RedissonClient;

/** Redisson's semaphores: Semaphore, a counter without owners, or PermitExpirableSemaphore. The argument names the class. */
public final class Permits {
    private static boolean expires;
    private static Threads threads;
    private static RedissonClient link;
    private static int permits;
    private static final Numbered<PermitObject> OBJECTS =
        new Numbered<>(name -> PermitObject.made(link, expires, name, permits));

    public static void main(String[] arguments) throws Exception {
        expires = arguments[0].equals("PermitExpirableSemaphore");
        List<Form<PermitObject>> forms = expires ? PermitForms.expiring() : PermitForms.counting();
        PermitCalls calls = new PermitCalls(expires, forms, OBJECTS);
        threads = new Threads(request -> Form.ends(forms, calls.form(request)));
        Lines.serve(threads, (verb, request) -> switch (verb) {
            case "hello" -> Traits.permits(request, arguments[0], forms);
            case "open" -> open(request, calls);
            case "cancel" -> threads.cancel(request);
            case "forget" -> forget(calls);
            case "acquire" -> calls.acquire(request);
            case "renew" -> calls.renew(request);
            default -> calls.release(request);
        });
    }

    private static JsonObject open(JsonObject request, PermitCalls calls) {
        link = Links.of(request).get(0);
        permits = request.get("permits").getAsInt();
        String resource = request.get("resource").getAsString();
        OBJECTS.open(resource);
        calls.open(request.get("lease_ms").getAsLong());
        PermitObject.made(link, expires, resource, permits);
        return Lines.outcome(true);
    }

    private static JsonObject forget(PermitCalls calls) throws InterruptedException {
        JsonObject answer = threads.forget();
        OBJECTS.clear();
        calls.clear();
        return answer;
    }
}
